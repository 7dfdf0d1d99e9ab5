/// Numbers and sizes as the report writes them.
///
/// Pure functions; thread-safe. Values are finite and >= 0.
#pragma once

#include <cstdint>
#include <string>

#include "results.hpp"

namespace bench {

/// Three significant digits and thousands separators: "41,200", "12.3", "0.0421".
[[nodiscard]] std::string rounded(double value);

/// All digits, with thousands separators: "41,234".
[[nodiscard]] std::string count_text(std::int64_t value);

/// Three significant digits and an SI prefix: "41.2k", "985".
[[nodiscard]] std::string short_si(double value);

/// The same with a unit: "1.92 GB/s" of ("B/s"), "12 images/s".
[[nodiscard]] std::string si(double value, const std::string& unit);

/// Powers of 1024, three significant digits, no trailing zeros: "4 MiB", "1.5 GiB", "512 B".
[[nodiscard]] std::string size_text(std::int64_t bytes);

/// "93.4 %" of 0.934; near 0 and 1 two digits, and what is neither is not written as 0 or 100 %.
[[nodiscard]] std::string percent_text(double share);

/// "93 %" of 0.934, for prose; one digit below 10 %.
[[nodiscard]] std::string share_text(double share);

/// A text of the functions here as it stands beside an axis: "20 %" of "20.0 %".
[[nodiscard]] std::string tick_text(const std::string& text);

/// "12.5 s", "4 min 10 s", "2 h 5 min".
[[nodiscard]] std::string duration_text(double seconds);

/// "1 thread", "2 threads".
[[nodiscard]] std::string plural(std::int64_t count, const std::string& noun);

}  // namespace bench
