#include "harness/machine.hpp"

#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>
#include <thread>

#include "base/cpus.hpp"
#include "harness/drawn_images.hpp"
#include "harness/fio.hpp"

namespace bench {
namespace {

std::string cpu_model() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown processor";
}

std::string load_average() {
  std::ifstream file("/proc/loadavg");
  std::string minute = "?";
  std::string five = "?";
  file >> minute >> five;
  return minute + ", " + five;
}

/// "ext4 on /dev/vda1": what a path lies on.
std::string file_system_of(const std::string& path) {
  // The mount with the longest name that `path` lies below: "ID PARENT MAJOR:MINOR ROOT POINT
  // OPTIONS [TAGS] - TYPE SOURCE ...", see proc(5).
  std::error_code error;
  const std::string target = std::filesystem::canonical(path, error).string();
  std::ifstream mounts("/proc/self/mountinfo");
  std::string found = "unknown file system";
  std::size_t longest = 0;
  for (std::string line; std::getline(mounts, line);) {
    std::istringstream fields(line);
    std::string skipped, point, type, source;
    fields >> skipped >> skipped >> skipped >> skipped >> point;
    while (fields >> skipped && skipped != "-") {
    }
    if (!(fields >> type >> source)) continue;
    const bool below = point == "/" || target == point || target.starts_with(point + "/");
    if (!below || point.size() < longest) continue;
    longest = point.size();
    found = type + " on " + source;
  }
  return found;
}

}  // namespace

std::string now_text() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  ::gmtime_r(&now, &utc);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text.data();
}

std::string gibibytes(std::int64_t bytes) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.2f GiB", static_cast<double>(bytes) / (1 << 30));
  return text.data();
}

Machine this_machine() {
  utsname kernel{};
  ::uname(&kernel);
  const auto pages = static_cast<std::int64_t>(::sysconf(_SC_PHYS_PAGES));
  return {.cpu = cpu_model(),
          .cpus = static_cast<std::int64_t>(std::thread::hardware_concurrency()),
          .last_level_cache_bytes = chunkio::base::last_level_cache_bytes(),
          .memory_bytes = pages * ::sysconf(_SC_PAGESIZE),
          .kernel = std::string("Linux ") + kernel.release};
}

nlohmann::ordered_json machine_json(const std::string& folder) {
  const Machine machine = this_machine();
  return {{"cpu", machine.cpu},
          {"cpus", machine.cpus},
          {"last_level_cache_bytes", machine.last_level_cache_bytes},
          {"memory_bytes", machine.memory_bytes},
          {"kernel", machine.kernel},
          {"data_on", file_system_of(folder)}};
}

void describe_machine(Report& report) {
  const Machine machine = this_machine();
  report.add_line(now_text().substr(0, 10) + "; " + machine.cpu + ", " +
                  std::to_string(machine.cpus) + " CPUs, last-level cache " +
                  std::to_string(machine.last_level_cache_bytes >> 20) + " MiB, " +
                  gibibytes(machine.memory_bytes) + " of memory; " + machine.kernel +
                  "; load before (1 and 5 minutes) " + load_average());
  const std::string fio = reason_without_fio();
  report.add_line("HDF5 " + hdf5_version() + "; " + (fio.empty() ? fio_version() : fio) +
                  "; compiler " + __VERSION__);
}

}  // namespace bench
