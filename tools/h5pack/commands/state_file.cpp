#include "h5pack/commands/state_file.hpp"

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <string_view>
#include <system_error>

#include <chunkio/error.hpp>

#include "cli/atomic_file.hpp"
#include "cli/escape.hpp"
#include "cli/file_bytes.hpp"
#include "cli/output.hpp"
#include "cli/quote.hpp"

namespace h5pack {
namespace {

using chunkio::Error;
using chunkio::ErrorCode;

// Far above what any loader writes.
constexpr std::size_t kMaxBytes = std::size_t{64} << 10;
// How every state begins: Loader::state().
constexpr std::string_view kBeginning = "{\"chunkio_state\"";

}  // namespace

std::string read_state(const std::string& path) {
  std::string text = path == "-" ? cli::read_standard_input("the loader state", kMaxBytes + 1)
                                 : cli::read_text(path);
  if (text.empty() || text.size() > kMaxBytes) {
    throw Error(ErrorCode::corrupt_data,
                (path == "-" ? "standard input" : cli::quote(path)) +
                    (text.empty() ? " is empty" : " is too long for a loader state") +
                    "; pass what --state-out wrote");
  }
  return text;
}

void check_state_output(const std::string& path) {
  if (path == "-") return;
  cli::check_atomic_file(path, true);
  std::FILE* const file = std::fopen(path.c_str(), "rbe");
  if (file == nullptr) {
    const int number = errno;
    if (number == ENOENT) return;
    throw Error(ErrorCode::io_failed, cli::escape(path) +
                                          " exists and cannot be read, so it is not replaced: " +
                                          std::generic_category().message(number) +
                                          "; choose another name for --state-out");
  }
  std::string beginning(kBeginning.size(), '\0');
  beginning.resize(std::fread(beginning.data(), 1, beginning.size(), file));
  const int number = std::ferror(file) != 0 ? errno : 0;
  std::fclose(file);
  if (number != 0 || beginning != kBeginning) {
    throw Error(ErrorCode::output_exists,
                cli::escape(path) +
                    (number != 0         ? " exists and cannot be read"
                     : beginning.empty() ? " exists and is empty"
                                         : " exists and is no loader state") +
                    ", so it is not replaced; choose another name for --state-out");
  }
}

void write_state(const std::string& path, const std::string& state) {
  const std::string line = state + "\n";
  if (path == "-") {
    cli::print(line);
    return;
  }
  cli::write_atomic_file(path, {reinterpret_cast<const unsigned char*>(line.data()), line.size()},
                         true);
}

}  // namespace h5pack
