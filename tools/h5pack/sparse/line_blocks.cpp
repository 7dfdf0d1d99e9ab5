#include "h5pack/sparse/line_blocks.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include <chunkio/error.hpp>

namespace h5pack {

namespace {

constexpr std::size_t kBlockBytes = std::size_t{1} << 20;
constexpr std::size_t kMaxLineBytes = std::size_t{16} << 20;

/// Where the last complete line ends, or 0. Quotes inside of quotes are doubled, so that each
/// changes whether text is quoted.
std::size_t end_of_lines(std::string_view text, bool quotes) {
  if (!quotes || text.find('"') == std::string_view::npos) return text.rfind('\n') + 1;
  std::size_t end = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '"') quoted = !quoted;
    if (text[i] == '\n' && !quoted) end = i + 1;
  }
  return end;
}

}  // namespace

std::optional<LineBlock> LineBlocks::next() {
  LineBlock block{.text = std::move(rest_), .first_line = line_};
  rest_.clear();
  std::size_t end = 0;
  while (!ended_ && end == 0) {
    if (block.text.size() > kMaxLineBytes) {
      throw chunkio::Error(chunkio::ErrorCode::corrupt_data,
                           stream_.name() + " line " + std::to_string(line_) +
                               " is longer than 16 MiB" +
                               (quotes_ ? "; is a quote never closed?" : ""));
    }
    const std::size_t before = block.text.size();
    block.text.resize(before + kBlockBytes);
    const std::size_t count = stream_.read(std::span(block.text).subspan(before));
    block.text.resize(before + count);
    ended_ = count < kBlockBytes;
    end = end_of_lines(block.text, quotes_);
  }
  if (!ended_) {
    rest_ = block.text.substr(end);
    block.text.resize(end);
  }
  if (block.text.empty()) return std::nullopt;
  line_ += std::count(block.text.begin(), block.text.end(), '\n');
  return block;
}

}  // namespace h5pack
