#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <string_view>

#include <chunkio/disk_limit.hpp>
#include <chunkio/error.hpp>

namespace chunkio {
namespace {

constexpr double kMebibyte = 1024.0 * 1024.0;

// Where a data sheet gives requests a second for queues of 1 and of 32, the latency is 1 / the
// first, and the queue is as deep as needed for the second: more at once make no difference.
constexpr std::array<DiskProfile, 6> kProfiles{{
    {"hdd",
     {.bytes_per_second = 156e6, .request_seconds = 12.7e-3, .queue_depth = 1},
     "Seagate Barracuda 7200.14 ST2000DM001 (7200 rpm, 3.5 inch), as its maker says: 156 MB/s on "
     "average over the disk, 8.5 ms average seek, and half a turn, 4.2 ms; one arm, so one request "
     "at a time"},
    {"sata-ssd",
     {.bytes_per_second = 560e6, .request_seconds = 77e-6, .queue_depth = 8},
     "Samsung 870 EVO, data sheet: 560 MB/s; 13,000 and 98,000 requests of 4 KB a second with "
     "queues of 1 and 32"},
    {"nvme",
     {.bytes_per_second = 3500e6, .request_seconds = 53e-6, .queue_depth = 32},
     "Samsung 970 EVO Plus 1 TB (PCIe 3.0 x4), data sheet: 3,500 MB/s; 19,000 and 600,000 requests "
     "of 4 KB a second with queues of 1 and 32"},
    {"nfs",
     {.bytes_per_second = 500 * kMebibyte, .request_seconds = 250e-6, .queue_depth = 64},
     "Amazon EFS (NFS 4.1), performance page of its user guide: 500 MiB/s a client, reads from 250 "
     "us; 64 slots a session is the default of Linux (nfs.max_session_slots)"},
    {"cloud-volume",
     {.bytes_per_second = 125 * kMebibyte, .request_seconds = 1e-3, .queue_depth = 3},
     "Amazon EBS gp3 without extras, user guide: 125 MiB/s, 3,000 requests a second, latency of "
     "single-digit milliseconds, taken as 1"},
    {"object-storage",
     {.bytes_per_second = 32 * 90e6, .request_seconds = 100e-3, .queue_depth = 32},
     "Amazon S3, performance pages of its user guide: first bytes from 100 ms, 85 to 90 MB/s a "
     "request; 32 requests at a time, as remote files are read by default"},
}};

[[noreturn]] void refuse(const std::string& what, std::string_view option) {
  throw Error(ErrorCode::invalid_argument, "no disk is like this: " + what, option);
}

}  // namespace

void require_valid(const DiskLimit& limit) {
  const double bandwidth = limit.bytes_per_second;
  if (bandwidth != 0 && !(bandwidth >= 1 && bandwidth <= DiskLimit::kMaxBytesPerSecond)) {
    refuse(
        "bytes_per_second must be 1 to 1e15, or 0 for no limit, not " + std::to_string(bandwidth),
        "bytes_per_second");
  }
  if (!(limit.request_seconds >= 0 && limit.request_seconds <= DiskLimit::kMaxRequestSeconds)) {
    refuse("request_seconds must be 0 to 60 seconds, not " + std::to_string(limit.request_seconds),
           "request_seconds");
  }
  if (limit.queue_depth < 0 || limit.queue_depth > DiskLimit::kMaxQueueDepth) {
    refuse("queue_depth must be 1 to 65536, or 0 for no limit, not " +
               std::to_string(limit.queue_depth),
           "queue_depth");
  }
}

std::span<const DiskProfile> disk_profiles() noexcept { return kProfiles; }

DiskLimit disk_profile(std::string_view name) {
  const auto* const found =
      std::find_if(kProfiles.begin(), kProfiles.end(),
                   [&](const DiskProfile& profile) { return profile.name == name; });
  if (found != kProfiles.end()) return found->limit;
  std::string names;
  for (const DiskProfile& profile : kProfiles) {
    names += (names.empty() ? "" : ", ") + std::string(profile.name);
  }
  throw Error(ErrorCode::invalid_argument,
              "there is no disk profile '" + std::string(name) + "', only " + names);
}

}  // namespace chunkio
