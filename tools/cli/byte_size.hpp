/// Byte counts as people write them ("64MiB") and read them ("4.0 MiB").
///
/// Pure functions; thread-safe.
#pragma once

#include <cstdint>
#include <string>

namespace cli {

/// Bytes of a size such as "65536", "64KiB", "64 MiB", "1.5GiB" or "1GB".
///
/// Units, in any case and with or without blanks before them: B; KiB, MiB, GiB, TiB and the short
/// K, M, G, T are powers of 1024; KB, MB, GB, TB are powers of 1000. A fraction counts to six
/// digits and is rounded down to whole bytes.
/// \returns a number >= 0.
/// \throws chunkio::Error invalid_argument, naming the text and the accepted form.
std::int64_t parse_byte_size(const std::string& text);

/// "512 B", "4.0 MiB", "1.2 GiB": one decimal from KiB on. \pre bytes >= 0.
std::string format_bytes(std::int64_t bytes);

}  // namespace cli
