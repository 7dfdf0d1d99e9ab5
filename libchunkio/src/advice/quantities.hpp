/// Quantities as findings and advice name them.
#pragma once

#include <cstdint>
#include <string>

namespace chunkio::advice {

/// \param format  of printf, for one double.
[[nodiscard]] std::string number(const char* format, double value);
/// "12 %" of 0.123.
[[nodiscard]] std::string percent(double share);
/// "1.25 GB/s", "480 MB/s", "5.1 MB/s".
[[nodiscard]] std::string byte_rate(double bytes_per_second);
/// "113.7 KiB".
[[nodiscard]] std::string bytes_text(double bytes);
/// "12 KiB", rounded up.
[[nodiscard]] std::string kibibytes(std::int64_t bytes);
[[nodiscard]] std::string milliseconds(double seconds);
/// "199x"; "1.99x" if below ten.
[[nodiscard]] std::string factor_text(double factor);
/// "1 chunk", "2 chunks".
[[nodiscard]] std::string count_text(double count, const char* noun);

}  // namespace chunkio::advice
