#include "write/partial_file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <utility>

#include <chunkio/error.hpp>

#include "base/checked_math.hpp"

namespace chunkio::write {
namespace {

Error in_use(const std::string& path) {
  return Error(ErrorCode::output_exists,
               path + " is in use by another process; wait for it, or choose another name");
}

/// \returns false if another process holds a lock that excludes this one.
bool try_lock(int fd, int kind) { return ::flock(fd, kind | LOCK_NB) == 0 || errno != EWOULDBLOCK; }

/// The existing file of that name, which no writer holds; invalid if it is not there.
/// \throws Error output_exists, io_failed.
base::FileDescriptor lock_existing(const std::string& path, int flags) {
  base::FileDescriptor existing(::open(path.c_str(), flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!existing.valid()) {
    if (errno == ENOENT || errno == ENOTDIR) return existing;
    throw base::system_error(errno, "open", path, "remove it by hand");
  }
  if (!try_lock(existing.get(), LOCK_EX)) throw in_use(path);
  return existing;
}

}  // namespace

PartialFile::PartialFile(std::string path, base::FileDescriptor file, OwnerLock lock, bool kept)
    : path_(std::move(path)), file_(std::move(file)), lock_(lock), kept_(kept) {
  this->lock();
}

PartialFile PartialFile::create(const std::string& path, OwnerLock lock) {
  // Copied before there is a file: if memory ran out after it, nobody would remove the file.
  std::string copy = path;
  base::FileDescriptor file(
      ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666));
  if (file.valid()) return PartialFile(std::move(copy), std::move(file), lock, false);
  const int error_number = errno;
  if (error_number == EEXIST) {
    static_cast<void>(lock_existing(path, O_RDONLY));
    throw Error(ErrorCode::output_exists,
                path +
                    " is left over from a run that did not finish; set resume to go on with it, "
                    "or overwrite to start again",
                "resume", "overwrite");
  }
  throw base::system_error(error_number, "create", path,
                           error_number == ENOENT || error_number == ENOTDIR
                               ? "make the folder " + folder_of(path) + " first"
                               : "write to a folder that you may write to");
}

std::optional<PartialFile> PartialFile::take_up(const std::string& path, OwnerLock lock) {
  base::FileDescriptor existing = lock_existing(path, O_RDWR);
  if (!existing.valid()) return std::nullopt;
  struct stat status {};
  if (::fstat(existing.get(), &status) != 0) throw base::system_error(errno, "inspect", path);
  if (!S_ISREG(status.st_mode)) {
    throw Error(ErrorCode::output_exists, path + " is not a regular file; remove it by hand");
  }
  return PartialFile(path, std::move(existing), lock, true);
}

PartialFile PartialFile::begin(const std::string& target, const PublishOptions& options) {
  const std::string partial = partial_of(target);
  if (options.overwrite) discard(partial);
  return create(partial, OwnerLock::shared);
}

PartialFile PartialFile::begin_afresh(const std::string& target, bool discard_leftover) {
  const std::string partial = partial_of(target);
  if (discard_leftover) discard(partial);
  if (!exists(partial)) discard(journal_of(target));
  return create(partial, OwnerLock::shared);
}

void PartialFile::discard(const std::string& path) {
  // Removed under its lock, so that no file of a writer that starts just now goes with it.
  const base::FileDescriptor existing = lock_existing(path, O_RDONLY);
  if (existing.valid() && ::unlink(path.c_str()) != 0 && errno != ENOENT) {
    throw base::system_error(errno, "remove", path, "remove it by hand");
  }
}

PartialFile::~PartialFile() {
  if (file_.valid() && !kept_ && is_ours()) ::unlink(path_.c_str());
}

std::int64_t PartialFile::size() const {
  struct stat status {};
  if (::fstat(file_.get(), &status) != 0) throw base::system_error(errno, "inspect", path_);
  return status.st_size;
}

void PartialFile::lock() const {
  if (!try_lock(file_.get(), lock_ == OwnerLock::shared ? LOCK_SH : LOCK_EX) || !is_ours()) {
    throw in_use(path_);
  }
}

/// Whether the name still stands for the file we hold.
bool PartialFile::is_ours() const noexcept {
  struct stat ours {};
  struct stat named {};
  return ::fstat(file_.get(), &ours) == 0 && ::lstat(path_.c_str(), &named) == 0 &&
         ours.st_dev == named.st_dev && ours.st_ino == named.st_ino;
}

void PartialFile::reserve(std::int64_t bytes) const {
  const std::string action = "reserve " + std::to_string(bytes) + " bytes for";
  const std::string hint = "free some space, or write to another disk";
  // Asked for rather than met: beyond this limit the kernel kills a process that does not expect
  // it.
  struct rlimit limit {};
  if (::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
      std::cmp_greater(bytes, limit.rlim_cur)) {
    throw base::system_error(EFBIG, action, path_, "raise the file size limit (ulimit -f)");
  }
  int status = 0;
  do {
    status = ::fallocate(file_.get(), FALLOC_FL_KEEP_SIZE, 0, bytes);
  } while (status != 0 && errno == EINTR);
  if (status == 0) return;
  if (errno != EOPNOTSUPP && errno != ENOSYS) {
    throw base::system_error(errno, action, path_, hint);
  }
  struct statvfs volume {};
  struct stat current {};
  if (::fstatvfs(file_.get(), &volume) != 0 || ::fstat(file_.get(), &current) != 0) {
    throw base::system_error(errno, "inspect the file system of", path_);
  }
  const std::int64_t used = current.st_blocks * 512;
  if (std::cmp_less(volume.f_bavail,
                    base::ceil_divide(std::max<std::int64_t>(bytes - used, 0),
                                      static_cast<std::int64_t>(volume.f_frsize)))) {
    throw base::system_error(ENOSPC, action, path_, hint);
  }
}

void PartialFile::sync() const {
  if (::fsync(file_.get()) != 0) throw base::system_error(errno, "write to disk", path_);
}

void PartialFile::sync_content() const {
  if (::fdatasync(file_.get()) != 0) throw base::system_error(errno, "write to disk", path_);
}

void PartialFile::publish(const std::string& target, bool replace) {
  const std::string action = "rename " + path_ + " to";
  if (!is_ours()) throw in_use(path_);
  if (replace) {
    if (::rename(path_.c_str(), target.c_str()) != 0) {
      throw base::system_error(errno, action, target);
    }
  } else if (::renameat2(AT_FDCWD, path_.c_str(), AT_FDCWD, target.c_str(), RENAME_NOREPLACE) !=
             0) {
    if (errno == EEXIST) throw output_exists(target);
    if (errno != EINVAL && errno != ENOSYS) throw base::system_error(errno, action, target);
    // The file system cannot rename without replacing, but a link never replaces.
    if (::link(path_.c_str(), target.c_str()) != 0) {
      if (errno == EEXIST) throw output_exists(target);
      throw base::system_error(errno, action, target);
    }
    ::unlink(path_.c_str());
  }
  keep();
}

Error output_exists(const std::string& path) {
  return Error(ErrorCode::output_exists, path + " exists; choose another name, or set overwrite",
               "overwrite");
}

void check_target(const std::string& path, bool overwrite) {
  if (path.empty()) throw Error(ErrorCode::invalid_argument, "the output has no name");
  if (path.find('\0') != std::string::npos) {
    throw Error(ErrorCode::invalid_argument, "the output's name holds a zero byte");
  }
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) return;
  if (S_ISDIR(status.st_mode)) {
    throw Error(ErrorCode::output_exists, path + " is a folder; give the name of a file");
  }
  // A symbolic link would be replaced, too, and not what it points to.
  if (!S_ISREG(status.st_mode)) {
    throw Error(ErrorCode::output_exists,
                path + " is not a regular file; give another name, or remove it first");
  }
  if (!overwrite) throw output_exists(path);
}

bool exists(const std::string& path) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) == 0) return true;
  if (errno == ENOENT || errno == ENOTDIR) return false;
  throw base::system_error(errno, "inspect", path);
}

std::string partial_of(const std::string& target) { return target + ".partial"; }
std::string journal_of(const std::string& target) { return partial_of(target) + ".journal"; }

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.find_last_of('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

void sync_folder(const std::string& folder) {
  const base::FileDescriptor descriptor(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  // EINVAL: the file system has nothing to sync for a folder.
  if (!descriptor.valid() || (::fsync(descriptor.get()) != 0 && errno != EINVAL)) {
    throw base::system_error(errno, "write to disk the folder", folder);
  }
}

void sync_published(const std::string& target) {
  try {
    sync_folder(folder_of(target));
  } catch (const Error& error) {
    throw Error(error.code(), target + " is complete, but may be gone after a power cut: " +
                                  error.what() + "; run sync, and check the disk");
  }
}

}  // namespace chunkio::write
