#include "cli/atomic_folder.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include <chunkio/error.hpp>

#include "cli/quote.hpp"

namespace cli {
namespace {

namespace fs = std::filesystem;
using chunkio::Error;
using chunkio::ErrorCode;

[[noreturn]] void fail(const std::string& what, const std::string& path, int error) {
  const bool full = error == ENOSPC || error == EDQUOT || error == EFBIG;
  throw Error(full ? ErrorCode::no_space : ErrorCode::io_failed,
              what + " " + quote(path) + ": " + std::generic_category().message(error) +
                  (full ? "; free some space or choose another place with -o"
                        : "; choose another place with -o"));
}

[[noreturn]] void refuse_existing(const std::string& path) {
  std::error_code unknown;
  throw Error(ErrorCode::output_exists,
              quote(path) + (fs::is_directory(path, unknown)
                                 ? " exists; --force replaces the folder of an earlier export, "
                                   "or name a new folder with -o"
                                 : " exists; name a new folder with -o, or remove it first"));
}

std::string without_trailing_slashes(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

std::string mark_of(const std::string& folder) { return folder + "/" + AtomicFolder::kMark; }

/// Removes the folder, its mark last: what could not be removed can still be told from a folder of
/// somebody else.
void remove_marked(const std::string& folder, std::error_code& error) {
  std::vector<fs::path> entries;
  fs::directory_iterator at(folder, error);
  for (; !error && at != fs::directory_iterator(); at.increment(error)) {
    if (at->path().filename() != AtomicFolder::kMark) entries.push_back(at->path());
  }
  for (const fs::path& entry : entries) {
    if (!error) fs::remove_all(entry, error);
  }
  if (!error) fs::remove_all(folder, error);
}

}  // namespace

FileHandle::FileHandle(const std::string& path, int flags) noexcept
    : fd_(::open(path.c_str(), flags | O_CLOEXEC, 0666)) {}
FileHandle& FileHandle::operator=(FileHandle&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}
FileHandle::~FileHandle() { static_cast<void>(close()); }
int FileHandle::close() noexcept {
  return fd_ < 0 || ::close(std::exchange(fd_, -1)) == 0 ? 0 : errno;
}

AtomicFolder::AtomicFolder(const std::string& path, bool replace)
    : path_(without_trailing_slashes(path)), partial_(path_ + ".partial") {
  struct ::stat status {};
  if (::lstat(path_.c_str(), &status) == 0) {
    replace_ = replace && S_ISDIR(status.st_mode);
    if (!replace_) refuse_existing(path_);
  }
  int made = ::mkdir(partial_.c_str(), 0777);
  if (made != 0 && errno == EEXIST) {
    remove_leftover();
    made = ::mkdir(partial_.c_str(), 0777);
  }
  if (made != 0 && (errno == ENOENT || errno == ENOTDIR)) {
    throw Error(ErrorCode::not_found, "no folder for " + quote(path_) +
                                          ": make it first, or choose another place with -o");
  }
  if (made != 0) fail("cannot make folder", partial_, errno);
  mark_ = FileHandle(mark_of(partial_), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW);
  if (mark_.get() < 0) {
    const int error = errno;
    ::rmdir(partial_.c_str());
    fail("cannot create", mark_of(partial_), error);
  }
  // File systems without locks do without; then remove_leftover() does not dare, either.
  static_cast<void>(::flock(mark_.get(), LOCK_EX | LOCK_NB));
}

/// Removes PATH.partial if a killed process left it: it has the mark, and nobody locks that; or
/// nothing is in it.
void AtomicFolder::remove_leftover() const {
  if (::rmdir(partial_.c_str()) == 0) return;
  const FileHandle mark(mark_of(partial_), O_RDWR | O_NOFOLLOW);
  if (mark.get() < 0 || ::flock(mark.get(), LOCK_EX | LOCK_NB) != 0) {
    const bool in_use = mark.get() >= 0 && errno == EWOULDBLOCK;
    throw Error(ErrorCode::output_exists,
                quote(partial_) +
                    (in_use ? " is in use by another process; wait for it, or choose another place "
                              "with -o"
                            : " is in the way, and may not be what an unfinished export left; "
                              "remove it, or choose another place with -o"));
  }
  std::error_code error;
  remove_marked(partial_, error);
  if (error) fail("cannot remove what an unfinished export left in", partial_, error.value());
}

AtomicFolder::~AtomicFolder() {
  if (published_) return;
  // publish() may have removed it.
  const FileHandle mark(mark_of(partial_), O_RDWR | O_CREAT | O_NOFOLLOW);
  std::error_code ignored;
  remove_marked(partial_, ignored);
}

void AtomicFolder::make_folder(const std::string& name) const {
  const std::string folder = partial_ + "/" + name;
  if (::mkdir(folder.c_str(), 0777) != 0) fail("cannot make folder", folder, errno);
}

AtomicFolder::File::File(std::string path)
    : path_(std::move(path)), handle_(path_, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW) {
  if (handle_.get() < 0) fail("cannot create", path_, errno);
}

void AtomicFolder::File::write(std::span<const unsigned char> bytes) {
  write_at(size_, bytes);
  size_ += std::ssize(bytes);
}

void AtomicFolder::File::write_at(std::int64_t offset, std::span<const unsigned char> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::pwrite(handle_.get(), bytes.data(), bytes.size(), offset);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail("cannot write", path_, errno);
    offset += written;
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

void AtomicFolder::File::close() {
  if (const int error = handle_.close(); error != 0) fail("cannot write", path_, error);
}

AtomicFolder::File AtomicFolder::create(const std::string& name) const {
  return File(partial_ + "/" + name);
}

void AtomicFolder::write(const std::string& name, std::span<const unsigned char> bytes) const {
  File file = create(name);
  file.write(bytes);
  file.close();
}

int AtomicFolder::take_place() const {
  const char* const from = partial_.c_str();
  const char* const to = path_.c_str();
  if (replace_) {
    // With the mark, the old folder is what a killed process left once it is called PATH.partial.
    const FileHandle mark(mark_of(path_), O_RDWR | O_CREAT | O_NOFOLLOW);
    if (mark.get() < 0) return errno;
    if (::renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_EXCHANGE) != 0) {
      const int error = errno;
      ::unlink(mark_of(path_).c_str());
      return error;
    }
    std::error_code ignored;  // the next export removes it
    remove_marked(partial_, ignored);
    return 0;
  }
  if (::renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0) return 0;
  if (errno != EINVAL && errno != ENOSYS) return errno;
  // Some file systems know no flags. A folder replaces at most an empty one.
  struct ::stat status {};
  if (::lstat(to, &status) == 0) return EEXIST;
  return std::rename(from, to) == 0 ? 0 : errno;
}

void AtomicFolder::publish() {
  // One call for all files: an fsync for each would take longer than everything else.
  const FileHandle folder(partial_, O_RDONLY | O_DIRECTORY);
  if (folder.get() < 0 || ::syncfs(folder.get()) != 0) fail("cannot write", partial_, errno);
  // As late as can be: what a process that is killed from here on leaves has no mark.
  if (::unlink(mark_of(partial_).c_str()) != 0) fail("cannot remove", mark_of(partial_), errno);
  if (::fsync(folder.get()) != 0 && errno != EINVAL) fail("cannot write", partial_, errno);
  const int error = take_place();
  if (error == EEXIST || error == ENOTEMPTY) refuse_existing(path_);
  if (error != 0) fail("cannot rename to", path_, error);
  published_ = true;
  const std::string parent = fs::path(path_).parent_path().string();
  const FileHandle above(parent.empty() ? "." : parent, O_RDONLY | O_DIRECTORY);
  if (above.get() < 0 || (::fsync(above.get()) != 0 && errno != EINVAL)) {
    fail("cannot write to disk the folder of", path_, errno);
  }
}

}  // namespace cli
