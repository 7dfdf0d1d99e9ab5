#include "cli/escape.hpp"

#include <array>
#include <cstdint>
#include <cstdio>

namespace cli {
namespace {

/// Bytes of the UTF-8 character at the start of `text`, if it is well-formed and no C1 control;
/// else 0.
std::size_t printable_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
  const std::uint8_t first = byte(0);
  if (first >= 0x20 && first < 0x7f) return 1;
  const std::size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < length) return 0;
  std::uint32_t code = first & (0x7fU >> length);
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0U) != 0x80U) return 0;
    code = code << 6U | (byte(i) & 0x3fU);
  }
  static constexpr std::array<std::uint32_t, 5> kSmallest = {0, 0, 0x80, 0x800, 0x10000};
  const bool valid =
      code >= kSmallest[length] && code <= 0x10ffff && !(code >= 0xd800 && code <= 0xdfff);
  // C1 controls, line separators and the marks that reverse text would spoil the line, too.
  const bool harmful =
      code < 0xa0 || (code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
  return valid && !harmful ? length : 0;
}

}  // namespace

std::string escape(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    if (const std::size_t length = printable_length(text); length != 0) {
      out += text.substr(0, length);
      text.remove_prefix(length);
      continue;
    }
    switch (text.front()) {
      case '\n':
        out += "\\n";
        break;
      case '\t':
        out += "\\t";
        break;
      case '\r':
        out += "\\r";
        break;
      default: {
        std::array<char, 8> buffer{};
        std::snprintf(buffer.data(), buffer.size(), "\\x%02x",
                      static_cast<unsigned>(static_cast<std::uint8_t>(text.front())));
        out += buffer.data();
      }
    }
    text.remove_prefix(1);
  }
  return out;
}

}  // namespace cli
