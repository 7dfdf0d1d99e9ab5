#include "write/encoded_part.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>

#include "base/digest.hpp"
#include "h5/schema.hpp"
#include "image/sample_decoder.hpp"

namespace chunkio::write {
namespace {

/// Of an image: bytes, height and width, orientation, digest.
constexpr std::size_t kRowBytes = 8 + 2 * 4 + 1 + 8;

template <class Number>
void append(std::string& text, const std::vector<Number>& numbers) {
  const auto bytes = std::as_bytes(std::span(numbers));
  text.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

/// Takes `count` numbers off the front of `text`, which holds them.
template <class Number>
void take(std::string_view& text, std::size_t count, std::vector<Number>& numbers) {
  static_assert(std::is_trivially_copyable_v<Number>);
  numbers.resize(count);
  std::memcpy(numbers.data(), text.data(), count * sizeof(Number));
  text.remove_prefix(count * sizeof(Number));
}

std::uint64_t digest_of(const EncodedPart& part) {
  return base::digest(std::as_bytes(std::span(part.digests)));
}

}  // namespace

ChunkRecord to_record(std::int64_t number, const EncodedPart& part, std::string_view note) {
  ChunkRecord record{
      .chunk = number, .num_rows = std::ssize(part.digests), .digest = digest_of(part), .note = {}};
  append(record.note, part.bytes);
  append(record.note, part.sizes);
  append(record.note, part.orientations);
  append(record.note, part.digests);
  record.note += note;
  return record;
}

std::optional<RecordedPart> from_record(const ChunkRecord& record) {
  std::string_view text = record.note;
  if (record.num_rows < 1 || std::cmp_greater(record.num_rows, text.size() / kRowBytes)) {
    return std::nullopt;
  }
  const auto rows = static_cast<std::size_t>(record.num_rows);
  RecordedPart found;
  take(text, rows, found.part.bytes);
  take(text, 2 * rows, found.part.sizes);
  take(text, rows, found.part.orientations);
  take(text, rows, found.part.digests);
  found.note = text;
  const auto all_from_1_to = [](const auto& numbers, std::int64_t most) {
    return std::all_of(numbers.begin(), numbers.end(),
                       [&](std::int64_t number) { return 1 <= number && number <= most; });
  };
  const bool possible = all_from_1_to(found.part.bytes, h5::kMaxSampleBytes) &&
                        all_from_1_to(found.part.sizes, image::kMaxSide) &&
                        all_from_1_to(found.part.orientations, image::Orientation::kMost);
  if (!possible || digest_of(found.part) != record.digest) return std::nullopt;
  return found;
}

}  // namespace chunkio::write
