#include "cli/chunk_filter.hpp"

#include <string_view>

#include <chunkio/error.hpp>

#include "cli/quote.hpp"

namespace cli {

chunkio::ChunkFilter parse_filter(const std::string& text) {
  constexpr std::string_view kShuffle = "shuffle+";
  constexpr std::string_view kDeflate = "deflate:";
  std::string_view rest = text;
  if (rest == "none") return {};
  chunkio::ChunkFilter filter;
  filter.shuffle = rest.starts_with(kShuffle);
  if (filter.shuffle) rest.remove_prefix(kShuffle.size());
  if (rest.starts_with(kDeflate) && rest.size() == kDeflate.size() + 1 && rest.back() >= '1' &&
      rest.back() <= '9') {
    filter.deflate_level = rest.back() - '0';
    return filter;
  }
  throw chunkio::Error(chunkio::ErrorCode::invalid_argument,
                       "--filter must be none, deflate:N or shuffle+deflate:N with N from 1 (fast) "
                       "to 9 (small), not " +
                           quote(text));
}

CLI::Option* add_filter(CLI::App& app, chunkio::ChunkFilter& target) {
  return app
      .add_option_function<std::string>(
          "--filter", [&target](const std::string& text) { target = parse_filter(text); },
          "How to compress chunks: none, deflate:N or shuffle+deflate:N (1 to 9). Compressed files "
          "are smaller and slower to read")
      ->type_name("")
      ->default_str(target.to_string());
}

}  // namespace cli
