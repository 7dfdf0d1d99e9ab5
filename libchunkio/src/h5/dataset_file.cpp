#include "h5/dataset_file.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <optional>
#include <vector>

#include <hdf5.h>

#include "base/positional_io.hpp"
#include "base/shard_names.hpp"
#include "h5/attributes.hpp"
#include "h5/description_reader.hpp"
#include "h5/error_stack.hpp"
#include "h5/field_discovery.hpp"
#include "h5/file_contents.hpp"
#include "h5/image_discovery.hpp"
#include "h5/library.hpp"
#include "h5/schema.hpp"

namespace chunkio {
namespace {

using namespace h5;  // NOLINT(google-build-using-namespace): this file is part of that layer

struct stat status_of(const base::FileDescriptor& file, const std::string& path) {
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) throw base::system_error(errno, "inspect", path);
  return status;
}

std::int64_t modified_at(const struct stat& status) {
  return std::int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec;
}

/// "2026-01-31 12:00:00.000000001 UTC".
std::string time_text(std::int64_t nanoseconds) {
  constexpr std::int64_t kSecond = 1'000'000'000;
  const std::int64_t fraction = (nanoseconds % kSecond + kSecond) % kSecond;
  const auto seconds = static_cast<std::time_t>((nanoseconds - fraction) / kSecond);
  std::tm parts{};
  std::array<char, 64> text{};
  if (::gmtime_r(&seconds, &parts) == nullptr) return std::to_string(nanoseconds) + " ns";
  const std::size_t size = std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%S", &parts);
  std::snprintf(text.data() + size, text.size() - size, ".%09d UTC", static_cast<int>(fraction));
  return text.data();
}

/// X-*-of-00008.h5 for X-00003-of-00008.h5; absent for a file of another name.
std::optional<std::string> pattern_of(const std::string& file) {
  const std::size_t end = file.rfind("-of-");
  if (end == std::string::npos) return std::nullopt;
  const std::size_t before = file.find_last_not_of("0123456789", end - 1);
  if (before == std::string::npos || before + 1 == end || file[before] != '-') return std::nullopt;
  const std::string pattern = file.substr(0, before + 1) + "*" + file.substr(end);
  try {
    if (!base::ShardPattern::parse(pattern)) return std::nullopt;
  } catch (const Error&) {
    return std::nullopt;  // an impossible number of files
  }
  return pattern;
}

/// What to open instead of a folder.
std::string files_in(const std::string& folder) {
  constexpr std::size_t kMostNamed = 3;
  std::vector<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string extension = entry->path().extension().string();
    if (extension == ".h5" || extension == ".hdf5") names.push_back(entry->path().string());
  }
  if (names.empty()) return "give the path of an HDF5 file";
  std::sort(names.begin(), names.end());
  std::string text = "open one of its files: ";
  for (std::size_t i = 0; i < std::min(names.size(), kMostNamed); ++i) {
    text += (i == 0 ? "" : ", ") + printable(names[i]);
  }
  if (names.size() > kMostNamed) {
    text += " and " + std::to_string(names.size() - kMostNamed) + " more";
  }
  if (const auto pattern = pattern_of(names.front())) {
    text += "; or all files of one dataset: " + printable(*pattern);
  }
  return text;
}

/// The signature stands at byte 0, or after a user block of 512, 1024, 2048, ... bytes.
/// \throws Error corrupt_data if it is nowhere.
void check_signature(const base::FileDescriptor& file, std::int64_t size, const std::string& path) {
  constexpr std::array<unsigned char, 8> kSignature = {0x89, 'H', 'D', 'F', '\r', '\n', 0x1a, '\n'};
  for (std::int64_t offset = 0; offset + 8 <= size; offset = offset == 0 ? 512 : offset * 2) {
    std::array<std::byte, 8> bytes{};
    base::read_at(file.get(), offset, bytes, path);
    if (std::equal(
            bytes.begin(), bytes.end(), kSignature.begin(),
            [](std::byte a, unsigned char b) { return std::to_integer<unsigned char>(a) == b; })) {
      return;
    }
  }
  throw Error(ErrorCode::corrupt_data,
              path + (size == 0 ? " is empty, not an HDF5 file" : " is not an HDF5 file") +
                  "; make one with h5pack");
}

/// libhdf5 opens by name, so somebody could have put another file there meanwhile.
void check_same_file(const Dataset::Impl& impl) {
  const std::string& path = impl.info.path;
  void* handle = nullptr;
  check_status(H5Fget_vfd_handle(impl.file.get(), H5P_DEFAULT, &handle), "inspect", path);
  struct stat ours {};
  struct stat theirs {};
  if (::fstat(impl.descriptor.get(), &ours) != 0 ||
      ::fstat(*static_cast<const int*>(handle), &theirs) != 0) {
    throw base::system_error(errno, "inspect", path);
  }
  if (ours.st_dev != theirs.st_dev || ours.st_ino != theirs.st_ino) {
    throw Error(ErrorCode::io_failed, path + " was replaced while it was opened; open it again");
  }
}

/// A link over shards says what to open instead. Asked before any dataset is opened: libhdf5
/// decodes the mappings of a virtual dataset with the dataset, from a heap without checksums, and
/// some damage there ends the process. \throws Error refused_by_policy.
void refuse_link(const FileId& file, const std::string& path) {
  const auto pattern =
      AttributeReader(file.get(), "the root group", path).text(root_attribute::kShardPattern);
  if (!pattern || !base::ShardPattern::parse(*pattern)) return;
  const std::size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "" : path.substr(0, slash + 1);
  throw Error(ErrorCode::refused_by_policy, path +
                                                " holds no images, it links files that do; open '" +
                                                folder + printable(*pattern) + "' instead");
}

/// What is to be read must have been opened the first time: libhdf5 keeps a header of which it
/// found a part damaged, and later opens the object without that part, attributes missing. \throws
/// Error corrupt_data.
void refuse_damaged(const FileContents& contents, const OpenOptions& options) {
  for (const std::string& wanted :
       {options.images.empty() ? std::string(kImages) : without_leading_slash(options.images),
        without_leading_slash(options.labels), std::string(kLabels), std::string("label"),
        std::string(kSampleDigests)}) {
    for (const DamagedObject& object : contents.damaged) {
      if (wanted != object.name && !wanted.starts_with(object.name + "/")) continue;
      throw Error(ErrorCode::corrupt_data,
                  object.reason + "; the file is damaged, copy or download it again");
    }
  }
}

}  // namespace

std::shared_ptr<const Dataset::Impl> h5::open_dataset_file(const std::string& path,
                                                           const OpenOptions& options,
                                                           LinkFiles link_files) try {
  auto impl = std::make_shared<Dataset::Impl>();
  DatasetInfo& info = impl->info;
  info.path = path;
  if (std::error_code error; std::filesystem::is_directory(path, error)) {
    throw Error(ErrorCode::unsupported, path + " is a folder; " + files_in(path));
  }
  impl->descriptor = base::FileDescriptor::open_for_reading(path);
  const struct stat status = status_of(impl->descriptor, path);
  impl->file_bytes = status.st_size;
  impl->modified_nanoseconds = modified_at(status);
  check_signature(impl->descriptor, impl->file_bytes, path);

  const auto guard = Library::lock();
  impl->file = open_file(path);
  check_same_file(*impl);
  impl->external = options.allow_external ? External::allowed : External::refused;
  if (link_files == LinkFiles::refused) refuse_link(impl->file, path);
  const FileContents contents = list_datasets(impl->file, path, impl->external);
  refuse_damaged(contents, options);
  info.damaged_objects = contents.damaged;
  open_images(*impl, contents, options);
  read_description(impl->file.get(), impl->images->dataset.get(), info);
  find_fields(*impl, contents, options, link_files);
  return impl;
} catch (const Error& error) {
  if (error.code() != ErrorCode::hdf5_failed) throw;
  // What libhdf5 cannot make sense of in a file that it opened is damage.
  throw Error(ErrorCode::corrupt_data,
              std::string(error.what()) + "; the file is damaged, copy or download it again");
}

void Dataset::Impl::check_unchanged() const {
  for (const auto& shard : shards) shard->check_unchanged();
  if (!shards.empty()) return;
  const struct stat status = status_of(descriptor, info.path);
  if (status.st_size == file_bytes && modified_at(status) == modified_nanoseconds) return;
  const std::string change = status.st_size != file_bytes
                                 ? "it has " + std::to_string(status.st_size) + " bytes, it had " +
                                       std::to_string(file_bytes)
                                 : "it was written to at " + time_text(modified_at(status)) +
                                       ", it was last changed at " +
                                       time_text(modified_nanoseconds);
  throw Error(ErrorCode::corrupt_data,
              info.path + " was changed while being read: " + change +
                  " when it was opened; open it again when its writer is done");
}

}  // namespace chunkio
