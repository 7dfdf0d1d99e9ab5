/// What figures were taken on, and when.
#pragma once

#include <cstdint>
#include <string>

#include "harness/figure.hpp"

namespace bench {

/// UTC, "2026-11-22T10:00:00Z". Thread-safe.
[[nodiscard]] std::string now_text();

/// "1.50 GiB".
std::string gibibytes(std::int64_t bytes);

struct Machine {
  std::string cpu = {};
  std::int64_t cpus = 0;
  std::int64_t last_level_cache_bytes = 0;
  std::int64_t memory_bytes = 0;
  std::string kernel = {};  ///< "Linux 6.1.0".
};
[[nodiscard]] Machine this_machine();

/// "ext4 on /dev/vda1": what a path lies on.
[[nodiscard]] std::string file_system_of(const std::string& path);

/// Date, processor, memory, kernel and load; versions of HDF5, fio and the compiler.
void describe_machine(Report& report);

}  // namespace bench
