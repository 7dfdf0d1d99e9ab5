#include "harness/device_throttle.hpp"

#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <system_error>

namespace bench {

BlockDevice device_of(const std::filesystem::path& path, const std::filesystem::path& devices) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) {
    throw NoControlGroup("cannot inspect " + path.string() + ": " + std::strerror(errno));
  }
  return device_of(gnu_dev_major(status.st_dev), gnu_dev_minor(status.st_dev), path.string(),
                   devices);
}

BlockDevice device_of(unsigned major, unsigned minor, const std::string& what,
                      const std::filesystem::path& devices) {
  const std::string number = std::to_string(major) + ":" + std::to_string(minor);
  std::error_code error;
  // A link to where the device is described; of a partition, inside the folder of its disk.
  std::filesystem::path device = std::filesystem::canonical(devices / number, error);
  if (error) {
    throw NoControlGroup(what + " lies on a file system without one disk (device " + number + ")");
  }
  if (std::filesystem::exists(device / "partition")) device = device.parent_path();
  std::ifstream in(device / "dev");
  BlockDevice disk{.number = {}, .name = device.filename().string()};
  if (!std::getline(in, disk.number)) {
    throw NoControlGroup("cannot read " + (device / "dev").string());
  }
  return disk;
}

DeviceThrottle throttle_device(const BlockDevice& device, std::int64_t bytes_per_second) {
  const std::string rate = std::to_string(bytes_per_second);
  DeviceThrottle made;
  made.group = make_group("io", [&](const Hierarchy& hierarchy) {
    const ControlGroup::Limit limit =
        hierarchy.version == 1
            ? ControlGroup::Limit{"blkio.throttle.read_bps_device", device.number + " " + rate}
            : ControlGroup::Limit{"io.max", device.number + " rbps=" + rate};
    made.description = device.name + " (" + device.number + ") reads at most " + rate +
                       " bytes a second (" + limit.file + ")";
    return limit;
  });
  return made;
}

}  // namespace bench
