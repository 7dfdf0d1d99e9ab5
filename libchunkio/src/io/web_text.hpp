/// Texts that web servers take and give.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

namespace chunkio::io {

/// As it stands in a URL: all but letters, digits, - . _ ~ and / becomes %XX.
[[nodiscard]] inline std::string percent_encoded(std::string_view text) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~/";
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string encoded;
  for (const char letter : text) {
    if (kPlain.find(letter) != std::string_view::npos) {
      encoded += letter;
      continue;
    }
    const auto byte = static_cast<unsigned char>(letter);
    encoded += '%';
    encoded += kDigits[byte >> 4];
    encoded += kDigits[byte & 15];
  }
  return encoded;
}

/// What stands in the first element <name> of an XML text; empty: there is none.
[[nodiscard]] inline std::string xml_element(std::string_view text, std::string_view name) {
  const std::string begin_tag = "<" + std::string(name) + ">";
  const std::size_t tag = text.find(begin_tag);
  if (tag == std::string_view::npos) return {};
  const std::size_t begin = tag + begin_tag.size();
  const std::size_t end = text.find('<', begin);
  return std::string(text.substr(begin, end == std::string_view::npos ? 0 : end - begin));
}

/// What an error of an object store is called, in <Code>: a word, and nothing else of a text that
/// may hold more than a log should.
[[nodiscard]] inline std::string error_code_of(std::string_view text) {
  const std::string code = xml_element(text, "Code");
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  return std::all_of(code.begin(), code.end(), is_letter) ? code : std::string();
}

}  // namespace chunkio::io
