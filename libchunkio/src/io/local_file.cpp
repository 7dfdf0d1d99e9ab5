#include "io/local_file.hpp"

#include <sys/stat.h>
#include <sys/vfs.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <ctime>
#include <utility>

#include "io/page_cache.hpp"

namespace chunkio::io {
namespace {

// File systems of this machine alone, by their magic numbers (statfs(2)). All others (NFS, SMB,
// FUSE, 9P, Lustre, CephFS, GPFS, BeeGFS, AFS, ...) count as shared: their pages can vanish or
// go stale under a mapping, and no list of them is ever complete.
constexpr std::array<std::int64_t, 24> kLocalFileSystems = {
    0xEF53,      // ext2, ext3, ext4
    0x58465342,  // XFS
    0x9123683E,  // Btrfs
    0x2FC12FC1,  // ZFS
    0xF2F52010,  // F2FS
    0xCA451A4E,  // bcachefs
    0x3153464A,  // JFS
    0x52654973,  // ReiserFS
    0x3434,      // NILFS
    0x01021994,  // tmpfs
    0x858458F6,  // ramfs
    0x958458F6,  // hugetlbfs
    0x794C7630,  // overlayfs
    0x61756673,  // aufs
    0x73717368,  // SquashFS
    0xE0F5E1E2,  // EROFS
    0x9660,      // ISO 9660
    0x15013346,  // UDF
    0x4D44,      // FAT
    0x2011BAB0,  // exFAT
    0x5346544E,  // NTFS
    0x7366746E,  // NTFS3
    0x4244,      // HFS
    0x482B,      // HFS+
};

struct stat status_of(int fd, const std::string& path) {
  struct stat status {};
  if (::fstat(fd, &status) != 0) throw base::system_error(errno, "inspect", path);
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

}  // namespace

LocalFile::LocalFile(const std::string& path)
    : LocalFile(base::FileDescriptor::open_for_reading(path), path) {}

LocalFile::LocalFile(base::FileDescriptor file, std::string path)
    : LocalFile(file.get(), std::move(path)) {
  own_ = std::move(file);
}

LocalFile::LocalFile(int fd, std::string path) : fd_(fd), path_(std::move(path)) {
  const struct stat status = status_of(fd_, path_);
  size_ = status.st_size;
  shows_pages_ = io::shows_pages(fd_);
  modified_ = modified_at(status);
}

std::uint64_t LocalFile::version() const {
  const struct stat status = status_of(fd_, path_);
  // An odd factor mixes the size into all bits.
  return static_cast<std::uint64_t>(modified_at(status)) ^
         (static_cast<std::uint64_t>(status.st_size) * 0x9E3779B97F4A7C15);
}

std::string LocalFile::change() const {
  const struct stat status = status_of(fd_, path_);
  if (status.st_size != size_) {
    return "it has " + std::to_string(status.st_size) + " bytes, it had " + std::to_string(size_);
  }
  return "it was written to at " + time_text(modified_at(status)) + ", it was last changed at " +
         time_text(modified_);
}

ReadTime LocalFile::read_at(std::int64_t offset, std::span<std::byte> out,
                            const std::stop_token& /*stop*/) const {
  return base::read_at_timed(fd_, offset, out, path_);
}

std::unique_ptr<const ByteSource> LocalFile::prefetch(
    std::span<const ByteRange> ranges) const noexcept {
  for (const ByteRange& range : ranges) read_ahead(fd_, range.begin, range.end);
  return nullptr;
}

const LocalFile* as_local_file(const ByteSource& source) noexcept {
  return dynamic_cast<const LocalFile*>(&source);
}

std::shared_ptr<const LocalFile> as_local_file(
    const std::shared_ptr<const ByteSource>& source) noexcept {
  return std::dynamic_pointer_cast<const LocalFile>(source);
}

bool is_local_file_system(std::int64_t type) noexcept {
  // On 32-bit systems the kernel's number is signed.
  return std::find(kLocalFileSystems.begin(), kLocalFileSystems.end(), type & 0xFFFFFFFF) !=
         kLocalFileSystems.end();
}

bool on_local_file_system(const ByteSource& source) noexcept {
  const LocalFile* file = as_local_file(source);
  struct statfs file_system {};
  return file != nullptr && ::fstatfs(file->fd(), &file_system) == 0 &&
         is_local_file_system(file_system.f_type);
}

}  // namespace chunkio::io
