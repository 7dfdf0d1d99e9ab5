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

/// Of this machine, for the results. \param folder  where the files are that are measured.
[[nodiscard]] nlohmann::ordered_json machine_json(const std::string& folder);

/// Date, processor, memory, kernel and load; versions of HDF5, fio and the compiler.
void describe_machine(Report& report);

}  // namespace bench
