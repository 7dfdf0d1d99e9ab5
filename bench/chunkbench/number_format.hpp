/// Numbers and sizes as the report writes them.
///
/// Pure functions; thread-safe. Values are finite and >= 0.
#pragma once

#include <cstdint>
#include <string>

#include "chunkbench/results.hpp"

namespace bench {

/// Three significant digits and thousands separators: "41,200", "12.3", "0.0421".
[[nodiscard]] std::string rounded(double value);

/// Three significant digits and an SI prefix: "1.92 GB/s" of ("B/s"), "41.2k" without a unit.
[[nodiscard]] std::string si(double value, const std::string& unit = "");

/// "1.92 GB/s (1.88 GB/s to 1.96 GB/s, 5 rounds)": median and range, each as `text` writes it; the
/// unit behind the median only.
[[nodiscard]] std::string spread_text(const Sampled& sampled, std::string (*text)(double),
                                      const std::string& unit = "");

/// As cli::format_bytes(), without a zero behind the point: "4 MiB", "1.5 GiB".
[[nodiscard]] std::string size_text(std::int64_t bytes);

/// "93.4 %" of 0.934; near 0 and 1 two digits, and what is neither is not written as 0 or 100 %.
[[nodiscard]] std::string percent_text(double share);

/// "1 thread", "2 threads".
[[nodiscard]] std::string plural(std::int64_t count, const std::string& noun);

}  // namespace bench
