/// A slower disk than the one there is, to try out what training from it would be like.
///
///     const chunkio::DiskLimit disk = chunkio::disk_profile("hdd");
///     chunkio::Loader loader(dataset, {.io = {.disk_limit = disk}});
///
/// Data flow: DiskLimit -> LoaderOptions::io.disk_limit -> every read of the images is delayed as
/// if such a disk delivered it. Values and pure functions; thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include <chunkio/export.hpp>

namespace chunkio {

/// How fast a disk answers. A request is a range of bytes that lie together in a file, however
/// long. It waits for a place in the queue, then `request_seconds`, then for its bytes, which share
/// the bandwidth with those of all other requests. A request that begins where the last one ended
/// has no latency, since disks, networks and kernels read ahead.
///
/// Requests a second are limited through queue and latency: queue_depth / request_seconds.
struct DiskLimit {
  static constexpr double kMaxBytesPerSecond = 1e15;
  static constexpr double kMaxRequestSeconds = 60;
  static constexpr std::int64_t kMaxQueueDepth = 65'536;

  /// Bytes a second of all requests together: 0 (default, unlimited), or 1 to 1e15. Time without
  /// requests is not saved up.
  double bytes_per_second = 0;
  /// Latency of a request, 0 (default) to 60 seconds.
  double request_seconds = 0;
  /// Requests that are answered at once, 0 (default: any number) to 65,536.
  std::int64_t queue_depth = 0;

  friend bool operator==(const DiskLimit&, const DiskLimit&) = default;
};

/// \throws Error invalid_argument, naming the value that no disk can have.
CHUNKIO_EXPORT void require_valid(const DiskLimit& limit);

/// A kind of disk by its published figures.
struct DiskProfile {
  std::string_view name = {};
  DiskLimit limit = {};
  std::string_view source = {};  ///< Where the figures are from, in a sentence.
};

/// hdd, sata-ssd, nvme, nfs, cloud-volume and object-storage.
[[nodiscard]] CHUNKIO_EXPORT std::span<const DiskProfile> disk_profiles() noexcept;

/// The figures of the profile of that name. \throws Error invalid_argument, naming those there are.
[[nodiscard]] CHUNKIO_EXPORT DiskLimit disk_profile(std::string_view name);

}  // namespace chunkio
