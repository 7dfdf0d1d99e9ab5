#include "cli/snippets.hpp"

#include <algorithm>
#include <cctype>

#include "cli/escape.hpp"
#include "cli/text_layout.hpp"

namespace cli {

std::string string_literal(std::string_view text) {
  // escape() adds backslashes for what cannot be shown, and leaves those of the name alone.
  std::string out = "\"";
  for (;;) {
    const std::size_t backslash = text.find('\\');
    for (const char c : escape(text.substr(0, backslash))) {
      if (c == '"') out += '\\';
      out += c;
    }
    if (backslash == std::string_view::npos) return out + "\"";
    out += "\\\\";
    text.remove_prefix(backslash + 1);
  }
}

std::string shell_word(std::string_view text) {
  const bool plain = !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 ||
           std::string_view("/._-+=:,@%").find(static_cast<char>(c)) != std::string_view::npos;
  });
  if (plain) return std::string(text);
  return escape("'" + replaced(std::string(text), "'", "'\\''") + "'");
}

std::string h5py_line(const std::string& path, const chunkio::ChunkCacheSettings& cache) {
  return "h5py.File(" + string_literal(path) +
         ", \"r\", rdcc_nslots=" + std::to_string(cache.rdcc_nslots) +
         ", rdcc_nbytes=" + std::to_string(cache.rdcc_nbytes) +
         ", rdcc_w0=" + decimals(cache.rdcc_w0, 2) + ")";
}

}  // namespace cli
