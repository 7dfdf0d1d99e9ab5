#include "cli/atomic_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include <chunkio/error.hpp>

#include "cli/escape.hpp"

namespace cli {
namespace {

using chunkio::Error;
using chunkio::ErrorCode;

[[noreturn]] void fail(const std::string& what, const std::string& path, int error) {
  const bool full = error == ENOSPC || error == EDQUOT || error == EFBIG;
  throw Error(full ? ErrorCode::no_space : ErrorCode::io_failed,
              what + " " + escape(path) + ": " + std::strerror(error) +
                  (full ? "; free some space or choose another folder"
                        : "; choose an output you may write"));
}

[[noreturn]] void refuse_existing(const std::string& path) {
  throw Error(ErrorCode::output_exists,
              escape(path) + " exists; choose another name or overwrite it with --force");
}

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

/// A file that disappears unless it is published.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& target) : path_(target + ".XXXXXX") {
    fd_ = ::mkostemp(path_.data(), O_CLOEXEC);
    if (fd_ < 0) fail("cannot create a file beside", target, errno);
    // mkostemp makes it private; an ordinary new file follows the umask.
    const mode_t mask = ::umask(0);
    ::umask(mask);
    ::fchmod(fd_, 0666 & ~mask);
  }
  ~TemporaryFile() {
    if (fd_ >= 0) ::close(fd_);
    if (!path_.empty()) ::unlink(path_.c_str());
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  void write(std::span<const unsigned char> bytes) {
    while (!bytes.empty()) {
      const ssize_t written = ::write(fd_, bytes.data(), bytes.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) fail("cannot write", path_, errno);
      bytes = bytes.subspan(static_cast<std::size_t>(written));
    }
    if (::fsync(fd_) != 0) fail("cannot write", path_, errno);
    if (::close(std::exchange(fd_, -1)) != 0) fail("cannot write", path_, errno);
  }

  void publish(const std::string& target, bool overwrite) {
    const unsigned flags = overwrite ? 0U : static_cast<unsigned>(RENAME_NOREPLACE);
    if (::renameat2(AT_FDCWD, path_.c_str(), AT_FDCWD, target.c_str(), flags) == 0) {
      path_.clear();
      return;
    }
    // Some file systems know no flags; a hard link does not replace either. The temporary name goes
    // with the destructor.
    if (!overwrite && (errno == EINVAL || errno == ENOSYS) &&
        ::link(path_.c_str(), target.c_str()) == 0) {
      return;
    }
    if (errno == EEXIST) refuse_existing(target);
    fail("cannot create", target, errno);
  }

 private:
  std::string path_;
  int fd_ = -1;
};

}  // namespace

void check_atomic_file(const std::string& path, bool overwrite) {
  struct stat status {};
  if (::stat(path.c_str(), &status) == 0) {
    if (S_ISDIR(status.st_mode)) {
      throw Error(ErrorCode::output_exists, escape(path) + " is a folder; name a file with -o");
    }
    if (!overwrite) refuse_existing(path);
    if (!S_ISREG(status.st_mode)) {
      throw Error(ErrorCode::output_exists,
                  escape(path) + " is not a regular file and is not replaced; choose another -o");
    }
  }
  const std::string folder = folder_of(path);
  if (::stat(folder.c_str(), &status) != 0 || !S_ISDIR(status.st_mode)) {
    throw Error(ErrorCode::not_found, "the folder " + escape(folder) + " for " + escape(path) +
                                          " does not exist; create it or choose another -o");
  }
  if (::access(folder.c_str(), W_OK | X_OK) != 0) fail("cannot write into", folder, errno);
}

void write_atomic_file(const std::string& path, std::span<const unsigned char> bytes,
                       bool overwrite) {
  TemporaryFile file(path);
  file.write(bytes);
  file.publish(path, overwrite);
}

}  // namespace cli
