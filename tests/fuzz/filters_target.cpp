/// Stored chunks: undoing filters. A number of the pipeline, the chunk's size (2 bytes), which
/// filters were skipped (1 byte), and the stored bytes.
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "fuzz/fuzz_target.hpp"
#include "h5/filters.hpp"

namespace chunkio::fuzz {
namespace {

using h5::FilterStep;

std::vector<std::vector<FilterStep>> pipelines() {
  const FilterStep shuffle{.id = FilterStep::kShuffle, .name = "shuffle", .values = {4}};
  const FilterStep checksum{.id = FilterStep::kFletcher32, .name = "fletcher32"};
  std::vector<std::vector<FilterStep>> all;
  for (const int filter : {FilterStep::kDeflate, FilterStep::kLzf, FilterStep::kBlosc,
                           FilterStep::kLz4, FilterStep::kZstandard}) {
    if (!h5::Decompressor::knows(filter)) {
      all.push_back({shuffle});  // numbers stay what they are where a library is missing
      continue;
    }
    all.push_back({{.id = filter, .name = "compression"}});
  }
  all.push_back({shuffle, {.id = FilterStep::kDeflate, .name = "deflate"}, checksum});
  all.push_back({checksum, {.id = FilterStep::kLzf, .name = "lzf"}});
  return all;
}

}  // namespace

bool run(std::span<const std::byte> input) {
  static const std::vector<std::vector<FilterStep>> kPipelines = pipelines();
  InputReader reader(input);
  const auto& filters = kPipelines[reader.take<std::uint8_t>() % kPipelines.size()];
  const std::size_t raw_bytes = std::size_t{reader.take<std::uint16_t>()} + 1;
  const std::uint32_t mask = reader.take<std::uint8_t>();
  h5::ChunkDecoder decoder(filters, raw_bytes);
  std::vector<std::byte> home(decoder.buffer_bytes()), other(decoder.buffer_bytes());
  // Of its own size, so that reading behind it is noticed.
  const std::vector<std::byte> stored(reader.rest().begin(), reader.rest().end());
  try {
    (void)decoder.decode(stored, mask, home, other);
    return true;
  } catch (const h5::DamagedChunkError&) {
    return false;
  }
}

}  // namespace chunkio::fuzz
