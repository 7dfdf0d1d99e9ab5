#include "io/disk_cache.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <exception>
#include <filesystem>
#include <map>
#include <system_error>
#include <utility>
#include <vector>

#include <chunkio/error.hpp>

#include "base/digest.hpp"

namespace chunkio::io {
namespace {

/// Pieces that are looked at together: those of a request.
constexpr std::size_t kPieces = 512;
/// Of the disk, this part is left to others.
constexpr std::int64_t kLeftShare = 20;
/// How long what was found out about the folder is believed, and a vain search for room.
constexpr std::chrono::seconds kLookEvery{1};
constexpr std::chrono::seconds kRemoveEvery{10};
constexpr std::string_view kSuffix = ".chunkio";
/// Of the name of an object's file: its digest.
constexpr std::size_t kDigits = 32;

/// Never 0, which means that there is none.
std::uint64_t piece_digest(std::span<const std::byte> piece) noexcept {
  return std::max<std::uint64_t>(base::digest(piece), 1);
}

std::size_t num_pieces(std::size_t bytes) noexcept {
  constexpr auto kBytes = static_cast<std::size_t>(DiskCache::kPieceBytes);
  return (bytes + kBytes - 1) / kBytes;
}

/// \returns piece `index` of `bytes`.
template <class Byte>
std::span<Byte> piece_of(std::span<Byte> bytes, std::size_t index) noexcept {
  constexpr auto kBytes = static_cast<std::size_t>(DiskCache::kPieceBytes);
  return bytes.subspan(index * kBytes, std::min(kBytes, bytes.size() - index * kBytes));
}

std::string file_name(std::string_view object) {
  return base::long_digest_text(object) + std::string(kSuffix);
}

/// Whether a file in the folder is one of ours: others are never touched.
bool is_object(std::string_view name) noexcept {
  return name.size() == kDigits + kSuffix.size() && name.ends_with(kSuffix) &&
         name.find_first_not_of("0123456789abcdef") == kDigits;
}

Error cannot_keep(const std::string& folder, const std::string& reason) {
  return Error(ErrorCode::io_failed,
               "cannot keep remote files in " + folder + ": " + reason +
                   "; choose another folder with remote_cache",
               "remote_cache");
}

struct Kept {
  timespec opened = {};
  std::string path = {};
  std::int64_t bytes = 0;
};

/// Of all processes; what goes away meanwhile is left out.
std::vector<Kept> objects_in(const std::string& folder) {
  std::vector<Kept> objects;
  std::error_code failed;
  for (std::filesystem::directory_iterator entry(folder, failed), end; !failed && entry != end;
       entry.increment(failed)) {
    struct stat status = {};
    if (!is_object(entry->path().filename().string()) ||
        ::lstat(entry->path().c_str(), &status) != 0 || !S_ISREG(status.st_mode)) {
      continue;
    }
    objects.push_back({.opened = status.st_mtim,
                       .path = entry->path().string(),
                       .bytes = std::int64_t{512} * status.st_blocks});
  }
  return objects;
}

/// \returns false if a process has it open.
bool remove_if_unused(const std::string& path) noexcept {
  const base::FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  return file.valid() && ::flock(file.get(), LOCK_EX | LOCK_NB) == 0 && ::unlink(path.c_str()) == 0;
}

}  // namespace

std::shared_ptr<CacheFolder> CacheFolder::shared(const std::string& path) {
  static std::mutex mutex;
  static std::map<std::string, std::weak_ptr<CacheFolder>> of_process;
  std::error_code failed;
  std::filesystem::create_directories(path, failed);
  const std::string absolute = std::filesystem::canonical(path, failed).string();
  if (failed) throw cannot_keep(path, failed.message());
  const std::lock_guard lock(mutex);
  std::weak_ptr<CacheFolder>& known = of_process[absolute];
  std::shared_ptr<CacheFolder> folder = known.lock();
  if (!folder) known = folder = std::shared_ptr<CacheFolder>(new CacheFolder(absolute));
  return folder;
}

base::FileDescriptor CacheFolder::open(const std::string& name, std::int64_t bytes) {
  const std::string path = path_ + "/" + name;
  for (;;) {
    base::FileDescriptor file(
        ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!file.valid()) throw cannot_keep(path_, std::strerror(errno));
    // Where a file system knows no locks, nothing is removed.
    while (::flock(file.get(), LOCK_SH) != 0 && errno == EINTR) {
    }
    struct stat status = {};
    if (::fstat(file.get(), &status) != 0) throw cannot_keep(path_, std::strerror(errno));
    if (status.st_nlink == 0) continue;  // another process removed it meanwhile
    if (status.st_uid != ::geteuid()) throw cannot_keep(path_, "a file in it is another user's");
    ::futimens(file.get(), nullptr);
    if (status.st_size < bytes && ::ftruncate(file.get(), bytes) != 0) {
      throw cannot_keep(path_, std::strerror(errno));
    }
    return file;
  }
}

std::int64_t CacheFolder::room(std::int64_t most) const noexcept {
  return std::min(most - used_bytes_, free_bytes_);
}

void CacheFolder::look() {
  used_bytes_ = 0;
  for (const Kept& object : objects_in(path_)) used_bytes_ += object.bytes;
  struct statvfs disk = {};
  if (::statvfs(path_.c_str(), &disk) != 0) {
    free_bytes_ = 0;
    return;
  }
  const auto block_bytes = static_cast<std::int64_t>(disk.f_frsize);
  free_bytes_ = block_bytes * static_cast<std::int64_t>(disk.f_bavail) -
                block_bytes * static_cast<std::int64_t>(disk.f_blocks) / kLeftShare;
}

void CacheFolder::remove_unused(std::int64_t bytes, std::int64_t most) {
  std::vector<Kept> objects = objects_in(path_);
  std::sort(objects.begin(), objects.end(), [](const Kept& a, const Kept& b) {
    return std::pair(a.opened.tv_sec, a.opened.tv_nsec) <
           std::pair(b.opened.tv_sec, b.opened.tv_nsec);
  });
  for (const Kept& object : objects) {
    if (room(most) >= bytes) return;
    if (!remove_if_unused(object.path)) continue;
    used_bytes_ -= object.bytes;
    free_bytes_ += object.bytes;
  }
}

bool CacheFolder::take(std::int64_t bytes, std::int64_t most) noexcept try {
  const std::lock_guard lock(mutex_);
  const Clock::time_point now = Clock::now();
  if (now - looked_ >= kLookEvery) {
    look();
    looked_ = now;
  }
  if (room(most) < bytes && now - removed_ >= kRemoveEvery) {
    remove_unused(bytes, most);
    if (room(most) < bytes) removed_ = now;
  }
  if (room(most) < bytes) return false;
  used_bytes_ += bytes;
  free_bytes_ -= bytes;
  return true;
} catch (const std::exception&) {
  return false;  // no memory to look at the folder
}

DiskCache::DiskCache(const std::string& folder, std::int64_t most_bytes, std::string_view object,
                     std::int64_t object_bytes)
    : folder_(CacheFolder::shared(folder)),
      most_bytes_(most_bytes),
      object_bytes_(object_bytes),
      file_(folder_->open(file_name(object), digest_offset(object_bytes + kPieceBytes - 1))) {}

std::int64_t DiskCache::digest_offset(std::int64_t offset) const noexcept {
  const std::int64_t begin = (object_bytes_ + kPieceBytes - 1) / kPieceBytes * kPieceBytes;
  return begin + offset / kPieceBytes * static_cast<std::int64_t>(sizeof(std::uint64_t));
}

bool DiskCache::read_digests(std::int64_t offset, std::span<std::uint64_t> digests) const noexcept
    try {
  base::read_at(file_.get(), digest_offset(offset), std::as_writable_bytes(digests),
                folder_->path());
  return true;
} catch (const std::exception&) {
  return false;
}

void DiskCache::write_digests(std::int64_t offset,
                              std::span<const std::uint64_t> digests) const noexcept try {
  base::write_at(file_.get(), digest_offset(offset), std::as_bytes(digests), folder_->path());
} catch (const std::exception&) {
  // They are not there, or do not match.
}

std::size_t DiskCache::read(std::int64_t offset, std::span<std::byte> out) const noexcept try {
  std::size_t done = 0;
  while (done < out.size()) {
    std::array<std::uint64_t, kPieces> room{};
    const std::int64_t begin = offset + static_cast<std::int64_t>(done);
    const std::span digests =
        std::span(room).first(std::min(kPieces, num_pieces(out.size() - done)));
    if (!read_digests(begin, digests)) return done;
    const auto num_kept =
        static_cast<std::size_t>(std::find(digests.begin(), digests.end(), 0) - digests.begin());
    const auto kept = out.subspan(
        done, std::min(num_kept * static_cast<std::size_t>(kPieceBytes), out.size() - done));
    base::read_at(file_.get(), begin, kept, folder_->path());
    for (std::size_t i = 0; i < num_kept; ++i) {
      const auto piece = piece_of(kept, i);
      if (piece_digest(piece) != digests[i]) return done;
      done += piece.size();
    }
    if (num_kept < digests.size()) return done;
  }
  return done;
} catch (const std::exception&) {
  return 0;  // the disk cannot read it
}

std::size_t DiskCache::missing(std::int64_t offset, std::size_t bytes) const noexcept {
  std::array<std::uint64_t, kPieces> room{};
  const std::span digests = std::span(room).first(std::min(kPieces, num_pieces(bytes)));
  if (!read_digests(offset, digests)) return bytes;
  // A piece that does not match: after a crash those behind it will not, either.
  if (digests.front() != 0) return bytes;
  const auto next = std::find_if(digests.begin(), digests.end(),
                                 [](std::uint64_t digest) { return digest != 0; });
  return std::min(bytes, static_cast<std::size_t>(next - digests.begin()) *
                             static_cast<std::size_t>(kPieceBytes));
}

bool DiskCache::holds(std::int64_t offset, std::size_t bytes) const noexcept {
  std::array<std::uint64_t, kPieces> room{};
  for (std::size_t rest = num_pieces(bytes); rest > 0;) {
    const std::span digests = std::span(room).first(std::min(kPieces, rest));
    if (!read_digests(offset, digests)) return false;
    if (std::find(digests.begin(), digests.end(), 0) != digests.end()) return false;
    offset += static_cast<std::int64_t>(digests.size()) * kPieceBytes;
    rest -= digests.size();
  }
  return true;
}

void DiskCache::keep(std::int64_t offset, std::span<const std::byte> bytes) noexcept try {
  struct stat status = {};
  // Nobody would find what is kept in a file that was removed.
  if (::fstat(file_.get(), &status) != 0 || status.st_nlink == 0) return;
  while (!bytes.empty()) {
    std::array<std::uint64_t, kPieces> room{};
    const auto part =
        bytes.first(std::min(bytes.size(), kPieces * static_cast<std::size_t>(kPieceBytes)));
    const std::span digests = std::span(room).first(num_pieces(part.size()));
    if (!folder_->take(static_cast<std::int64_t>(part.size()), most_bytes_)) return;
    for (std::size_t i = 0; i < digests.size(); ++i) {
      digests[i] = piece_digest(piece_of(part, i));
    }
    base::write_at(file_.get(), offset, part, folder_->path());
    write_digests(offset, digests);
    offset += static_cast<std::int64_t>(part.size());
    bytes = bytes.subspan(part.size());
  }
} catch (const std::exception&) {
  // The disk is full, or fails: they come from the server again.
}

}  // namespace chunkio::io
