#include "h5pack/sparse/spill_file.hpp"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include <chunkio/error.hpp>

#include "cli/quote.hpp"

namespace h5pack {

namespace {

using chunkio::Error;
using chunkio::ErrorCode;

[[noreturn]] void fail(const std::string& action, const std::string& folder, int number) {
  const bool full = number == ENOSPC || number == EDQUOT || number == EFBIG;
  throw Error(full ? ErrorCode::no_space : ErrorCode::io_failed,
              "cannot " + action + " a temporary file in " + cli::quote(folder) + ": " +
                  std::generic_category().message(number) +
                  (full ? "; free some space, or write to another disk with -o" : ""));
}

}  // namespace

SpillFile::SpillFile(const std::string& output)
    : folder_(std::filesystem::path(output).parent_path().string()) {
  if (folder_.empty()) folder_ = ".";
  fd_ = ::open(folder_.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (fd_ >= 0) return;
  // Not every file system has files without names.
  std::string name = output + ".spill.XXXXXX";
  fd_ = ::mkostemp(name.data(), O_CLOEXEC);
  if (fd_ < 0) fail("make", folder_, errno);
  ::unlink(name.c_str());
}

SpillFile::~SpillFile() { ::close(fd_); }

void SpillFile::write(std::int64_t offset, std::span<const std::byte> bytes) const {
  while (!bytes.empty()) {
    const ::ssize_t count = ::pwrite(fd_, bytes.data(), bytes.size(), offset);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail("write", folder_, errno);
    offset += count;
    bytes = bytes.subspan(static_cast<std::size_t>(count));
  }
}

void SpillFile::read(std::int64_t offset, std::span<std::byte> bytes) const {
  while (!bytes.empty()) {
    const ::ssize_t count = ::pread(fd_, bytes.data(), bytes.size(), offset);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) fail("read", folder_, count < 0 ? errno : EIO);
    offset += count;
    bytes = bytes.subspan(static_cast<std::size_t>(count));
  }
}

}  // namespace h5pack
