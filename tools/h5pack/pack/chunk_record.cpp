#include "h5pack/pack/chunk_record.hpp"

#include <utility>

#include <nlohmann/json.hpp>

#include <chunkio/error.hpp>

#include "cli/json_text.hpp"

namespace h5pack {

namespace {

using chunkio::Error;
using chunkio::ErrorCode;
using json = nlohmann::json;

ErrorCode code_named(const std::string& name) {
  for (const ErrorCode code : {ErrorCode::unsupported, ErrorCode::refused_by_policy,
                               ErrorCode::not_found, ErrorCode::io_failed}) {
    if (to_string(code) == name) return code;
  }
  return ErrorCode::corrupt_data;
}

}  // namespace

void ChunkRecord::add(const ChunkRecord& other) {
  skipped.insert(skipped.end(), other.skipped.begin(), other.skipped.end());
  sizes.merge(other.sizes);
  pixels.merge(other.pixels);
  num_limited += other.num_limited;
}

std::string to_note(const ChunkRecord& record) {
  json skipped = json::array();
  for (const SkippedImage& image : record.skipped) {
    skipped.push_back({image.place, image.row, to_string(image.code), image.reason});
  }
  json sizes = json::array();
  for (const auto& [size, count] : record.sizes.counts()) {
    sizes.push_back({size.first, size.second, count});
  }
  json note = {{"first", record.first_place},
               {"end", record.end_place},
               {"skipped", std::move(skipped)},
               {"sizes", std::move(sizes)},
               {"pixels", record.pixels.values()}};
  if (record.num_limited > 0) note["limited"] = record.num_limited;
  return cli::json_text(note);
}

ChunkRecord from_note(std::string_view note, std::int64_t channels, chunkio::Layout layout) {
  try {
    const json stored = json::parse(note);
    ChunkRecord record{.first_place = stored.at("first"),
                       .end_place = stored.at("end"),
                       .pixels = PixelStatistics(channels, layout)};
    for (const json& image : stored.at("skipped")) {
      record.skipped.push_back({image.at(0), image.at(1), code_named(image.at(2)), image.at(3)});
    }
    for (const json& size : stored.at("sizes")) {
      record.sizes.add({size.at(0), size.at(1)}, size.at(2));
    }
    record.num_limited = stored.value("limited", std::int64_t{0});
    record.pixels.restore(stored.at("pixels").get<std::vector<std::uint64_t>>());
    return record;
  } catch (const json::exception& error) {
    throw Error(ErrorCode::corrupt_data,
                std::string("the journal's note of a chunk cannot be understood (") + error.what() +
                    "); start afresh with --force");
  }
}

ChunkRecord record_of(const chunkio::ResumedChunk& resumed, std::int64_t channels,
                      chunkio::Layout layout) {
  ChunkRecord record = from_note(resumed.note, channels, layout);
  if (std::cmp_not_equal(record.pixels.num_images(), resumed.num_rows)) {
    throw Error(ErrorCode::corrupt_data, "the journal of an earlier run has sums of " +
                                             std::to_string(record.pixels.num_images()) +
                                             " images for chunk " + std::to_string(resumed.chunk) +
                                             ", which has " + std::to_string(resumed.num_rows) +
                                             "; start again with --force");
  }
  return record;
}

}  // namespace h5pack
