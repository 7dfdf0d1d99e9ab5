/// What figures were taken on, and when.
#pragma once

#include <cstdint>
#include <string>

#include "figure.hpp"

namespace bench {

/// The largest cache of the first CPU; 0 if unknown.
std::int64_t last_level_cache_bytes();

/// "1.50 GiB".
std::string gibibytes(std::int64_t bytes);

/// Date, processor, memory, kernel and load; versions of HDF5, fio and the compiler.
void describe_machine(Report& report);

}  // namespace bench
