#include "h5/error_stack.hpp"

#include <cerrno>
#include <vector>

namespace chunkio::h5 {
namespace {

/// H5E_walk2_t; no exception may pass through libhdf5's frames.
herr_t collect_description(unsigned /*depth*/, const H5E_error2_t* error, void* data) noexcept {
  try {
    if (error->desc != nullptr && *error->desc != '\0') {
      static_cast<std::vector<std::string>*>(data)->emplace_back(error->desc);
    }
    return 0;
  } catch (...) {
    return -1;
  }
}

std::string_view base_name(std::string_view path) {
  const std::size_t slash = path.find_last_of('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

/// libhdf5's POSIX driver puts "errno = N" into its text.
bool means_no_space(std::string_view cause) {
  for (const int error_number : {ENOSPC, EDQUOT, EFBIG}) {
    if (cause.find("errno = " + std::to_string(error_number) + ",") != std::string_view::npos) {
      return true;
    }
  }
  return false;
}

}  // namespace

std::string describe_error_stack() {
  std::vector<std::string> descriptions;
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_DOWNWARD, &collect_description, &descriptions);
  if (descriptions.empty()) return {};
  // What lies between the first and the last repeats them in libhdf5's inner terms.
  std::string text = descriptions.front();
  if (descriptions.size() > 1) text += ": " + descriptions.back();
  return printable(text);
}

Error hdf5_error(std::string_view action, std::string_view path, std::source_location where) {
  std::string cause = describe_error_stack();
  if (cause.empty()) cause = "unknown cause";
  std::string message = "cannot ";
  message.append(action).append(" ").append(path).append(": libhdf5: ").append(cause);
  message.append(" (").append(base_name(where.file_name())).append(":");
  message.append(std::to_string(where.line())).append(")");
  return Error(means_no_space(cause) ? ErrorCode::no_space : ErrorCode::hdf5_failed, message);
}

hid_t check_id(hid_t id, std::string_view action, std::string_view path,
               std::source_location where) {
  if (id < 0) throw hdf5_error(action, path, where);
  return id;
}

std::string printable(std::string_view name) {
  constexpr std::size_t kMaxBytes = 200;
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string text;
  for (const char character : name) {
    if (text.size() >= kMaxBytes) return text + "...";
    const auto byte = static_cast<unsigned char>(character);
    if (byte < 0x20 || byte == 0x7f || byte == '\\') {
      text += "\\x";
      text += kHex[byte >> 4];
      text += kHex[byte & 15];
    } else {
      text += character;
    }
  }
  return text;
}

}  // namespace chunkio::h5
