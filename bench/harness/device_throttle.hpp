/// A device that reads slowly, for the processes of a control group: this library, h5py and any
/// other program alike.
///
/// Version 1 of control groups (blkio.throttle.read_bps_device) and version 2 (io.max). What comes
/// from the page cache is as fast as ever.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "harness/control_group.hpp"

namespace bench {

/// A whole disk; of partitions the kernel throttles none.
struct BlockDevice {
  std::string number;  ///< "254:0".
  std::string name;    ///< "vda".
};

/// The disk that a file or folder lies on.
/// \param devices  in place of /sys/dev/block, for tests.
/// \throws NoControlGroup: there is no such file, or its file system has no one device (overlay,
///         tmpfs, NFS).
[[nodiscard]] BlockDevice device_of(const std::filesystem::path& path,
                                    const std::filesystem::path& devices = "/sys/dev/block");
/// The same by its number. \param what  for messages.
[[nodiscard]] BlockDevice device_of(unsigned major, unsigned minor, const std::string& what,
                                    const std::filesystem::path& devices);

struct DeviceThrottle {
  std::shared_ptr<ControlGroup> group;
  /// "vda (254:0) reads at most 10485760 bytes a second (blkio.throttle.read_bps_device)".
  std::string description;
};

/// \throws NoControlGroup that says why this cannot be.
[[nodiscard]] DeviceThrottle throttle_device(const BlockDevice& device,
                                             std::int64_t bytes_per_second);

}  // namespace bench
