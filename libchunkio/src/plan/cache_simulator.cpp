#include "plan/cache_simulator.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include <chunkio/error.hpp>

#include "base/checked_math.hpp"

namespace chunkio::plan {
namespace {

constexpr std::int64_t kMaxChunkBytes = std::numeric_limits<std::uint32_t>::max();
constexpr std::uint64_t kMaxSlots = std::uint64_t{1} << 30;  // 4 GiB; libhdf5 takes twice that

[[noreturn]] void refuse(const std::string& what) {
  throw Error(ErrorCode::invalid_argument, "cannot simulate a chunk cache: " + what);
}

/// Bits of a count of `n` >= 1 things that is rounded up to a power of two: log2 of that.
unsigned bits_of_count(std::int64_t n) {
  return static_cast<unsigned>(std::bit_width(static_cast<std::uint64_t>(n) - 1));
}

/// Elements that lie without a gap where a box of sides `box` is part of one of sides `outer`.
std::int64_t run_elements(std::span<const std::int64_t> box, std::span<const std::int64_t> outer) {
  std::int64_t elements = 1;
  for (std::size_t axis = box.size(); axis-- > 0;) {
    elements *= box[axis];
    if (box[axis] != outer[axis]) break;
  }
  return elements;
}

}  // namespace

double CacheCounts::hit_rate() const {
  if (visits == 0) return 0;
  return 1 - static_cast<double>(loads + piece_reads) / static_cast<double>(visits);
}

double CacheCounts::read_amplification() const {
  if (read_bytes == 0) return 0;
  return static_cast<double>(file_bytes) / static_cast<double>(read_bytes);
}

CacheSimulator::CacheSimulator(StoredGeometry geometry, const ChunkCacheSettings& settings)
    : geometry_(std::move(geometry)), rank_(geometry_.shape.rank()), w0_(settings.rdcc_w0) {
  const Shape& shape = geometry_.shape;
  const Shape& chunk = geometry_.chunk_shape;
  if (rank_ == 0 || chunk.rank() != rank_) {
    refuse("chunks " + chunk.to_string() + " do not cut a dataset of shape " + shape.to_string());
  }
  if (!(w0_ >= 0 && w0_ <= 1)) refuse("rdcc_w0 = " + std::to_string(w0_) + " is not within 0..1");
  if (geometry_.element_bytes < 1) refuse("elements need at least 1 byte");
  std::optional<std::int64_t> chunk_bytes = geometry_.element_bytes;
  std::optional<std::int64_t> sample_bytes = geometry_.element_bytes;
  std::optional<std::int64_t> num_chunks = 1;
  for (std::size_t axis = rank_; axis-- > 0;) {
    if (shape[axis] < 1 || chunk[axis] < 1) {
      refuse("an axis is empty: shape " + shape.to_string() + ", chunks " + chunk.to_string());
    }
    shape_[axis] = shape[axis];
    chunk_shape_[axis] = chunk[axis];
    grid_[axis] = base::ceil_divide(shape[axis], chunk[axis]);
    grid_strides_[axis] = num_chunks.value_or(0);
    hash_bits_[axis] = bits_of_count(grid_[axis]);
    if (num_chunks) num_chunks = base::checked_multiply(*num_chunks, grid_[axis]);
    if (chunk_bytes) chunk_bytes = base::checked_multiply(*chunk_bytes, chunk[axis]);
    if (axis > 0 && sample_bytes) {
      sample_bytes = base::checked_multiply(*sample_bytes, shape[axis]);
      whole_samples_ = whole_samples_ && chunk[axis] == shape[axis];
    }
  }
  if (!chunk_bytes || *chunk_bytes > kMaxChunkBytes) {
    refuse("chunks " + chunk.to_string() + " reach 4 GiB, HDF5's limit");
  }
  if (!num_chunks || *num_chunks > std::numeric_limits<std::int32_t>::max()) {
    throw Error(ErrorCode::out_of_resources,
                "cannot simulate a chunk cache: a dataset of shape " + shape.to_string() +
                    " in chunks " + chunk.to_string() + " has more than 2^31 - 1 chunks");
  }
  if (!sample_bytes) refuse("shape " + shape.to_string() + " exceeds 63 bits");
  if (!geometry_.stored_bytes.empty() && std::ssize(geometry_.stored_bytes) != *num_chunks) {
    refuse(std::to_string(geometry_.stored_bytes.size()) + " stored sizes for " +
           std::to_string(*num_chunks) + " chunks");
  }
  chunk_bytes_ = *chunk_bytes;
  sample_bytes_ = *sample_bytes;

  if (settings.rdcc_nslots == 0 || settings.rdcc_nbytes == 0) return;  // libhdf5: no cache at all
  num_slots_ = settings.rdcc_nslots;
  limit_bytes_ = settings.rdcc_nbytes;
  // No hash has more bits than count the chunks, so a huge table needs no memory here.
  unsigned bits = 0;
  for (std::size_t axis = 0; axis < rank_; ++axis) bits += hash_bits_[axis];
  const std::uint64_t used_slots = std::min(num_slots_, std::uint64_t{1} << bits);
  if (used_slots > kMaxSlots) {
    throw Error(ErrorCode::out_of_resources, "cannot simulate a chunk cache of " +
                                                 std::to_string(num_slots_) + " slots, only of " +
                                                 std::to_string(kMaxSlots));
  }
  slots_.assign(static_cast<std::size_t>(used_slots), kNone);
}

std::int64_t CacheSimulator::stored_bytes(std::int64_t chunk) const {
  if (geometry_.stored_bytes.empty()) return chunk_bytes_;
  return geometry_.stored_bytes[static_cast<std::size_t>(chunk)];
}

void CacheSimulator::read(std::int64_t first, std::int64_t count) {
  if (first < 0 || count < 1 || count > shape_[0] || first > shape_[0] - count) {
    refuse("rows " + std::to_string(first) + ".." + std::to_string(first) + "+" +
           std::to_string(count) + " are not in a dataset of " + std::to_string(shape_[0]));
  }
  const std::int64_t chunk = first / chunk_shape_[0];
  if (whole_samples_ && first + count <= (chunk + 1) * chunk_shape_[0]) {
    // Nearly all there is to simulate. Axes along which there is one chunk add nothing to the hash.
    const std::int64_t bytes = count * sample_bytes_;
    ++counts_.reads;
    counts_.read_bytes += bytes;
    visit({.chunk = chunk,
           .hash = static_cast<std::uint64_t>(chunk),
           .wanted_bytes = bytes,
           .runs = 1});
    return;
  }
  Position from{};
  Position size = shape_;
  from[0] = first;
  size[0] = count;
  read_box(std::span(from).first(rank_), std::span(size).first(rank_));
}

void CacheSimulator::read_each(std::span<const std::int64_t> samples) {
  for (const std::int64_t sample : samples) read(sample);
}

void CacheSimulator::read_box(std::span<const std::int64_t> first,
                              std::span<const std::int64_t> count) {
  if (first.size() != rank_ || count.size() != rank_) refuse("a box of another rank");
  Position from{};  // grid positions
  Position to{};    // the last ones
  for (std::size_t axis = 0; axis < rank_; ++axis) {
    if (first[axis] < 0 || count[axis] < 1 || count[axis] > shape_[axis] ||
        first[axis] > shape_[axis] - count[axis]) {
      refuse("a box reaches beyond shape " + geometry_.shape.to_string() + " on axis " +
             std::to_string(axis));
    }
    from[axis] = first[axis] / chunk_shape_[axis];
    to[axis] = (first[axis] + count[axis] - 1) / chunk_shape_[axis];
  }
  ++counts_.reads;

  // Chunks are visited in the order of their numbers.
  Position at = from;
  for (;;) {
    Visit made{.hash = static_cast<std::uint64_t>(at[0])};
    Position box{};
    std::int64_t elements = 1;
    for (std::size_t axis = 0; axis < rank_; ++axis) {
      const std::int64_t begin = at[axis] * chunk_shape_[axis];
      const std::int64_t end = begin + chunk_shape_[axis];
      box[axis] = std::min(end, first[axis] + count[axis]) - std::max(begin, first[axis]);
      elements *= box[axis];
      made.chunk += at[axis] * grid_strides_[axis];
      if (axis > 0) {
        made.hash = (made.hash << hash_bits_[axis]) ^ static_cast<std::uint64_t>(at[axis]);
      }
    }
    made.wanted_bytes = elements * geometry_.element_bytes;
    const std::span<const std::int64_t> sides = std::span(box).first(rank_);
    made.runs = elements / std::min(run_elements(sides, std::span(chunk_shape_).first(rank_)),
                                    run_elements(sides, count));
    counts_.read_bytes += made.wanted_bytes;
    visit(made);

    std::size_t axis = rank_;
    while (axis > 0 && at[axis - 1] == to[axis - 1]) {
      --axis;
      at[axis] = from[axis];
    }
    if (axis == 0) return;
    ++at[axis - 1];
  }
}

void CacheSimulator::visit(const Visit& made) {
  ++counts_.visits;
  std::uint32_t slot = 0;
  if (num_slots_ > 0) {
    slot = static_cast<std::uint32_t>(made.hash % num_slots_);
    const EntryIndex index = slots_[slot];
    if (index != kNone && entry(index).chunk == made.chunk) {
      ++counts_.hits;
      move_back_by_one(index);
      Entry& found = entry(index);
      const bool was_complete = found.unread_bytes == 0;
      found.unread_bytes -= std::min(found.unread_bytes, made.wanted_bytes);
      if (!was_complete && found.unread_bytes == 0) ++num_complete_;
      return;
    }
  }

  const bool fits = num_slots_ > 0 && static_cast<std::uint64_t>(chunk_bytes_) <= limit_bytes_;
  if (geometry_.filtered || fits) {
    ++counts_.loads;
    ++counts_.requests;
    counts_.file_bytes += stored_bytes(made.chunk);
  } else {
    ++counts_.piece_reads;
    counts_.requests += made.runs;
    counts_.file_bytes += made.wanted_bytes;
  }
  if (fits) keep(made, slot);
}

void CacheSimulator::keep(const Visit& made, std::uint32_t slot) {
  if (slots_[slot] != kNone) evict(slots_[slot]);
  make_room();

  EntryIndex index = unused_;
  if (index == kNone) {
    index = static_cast<EntryIndex>(entries_.size());
    entries_.emplace_back();
  } else {
    unused_ = entry(index).next;
  }
  entry(index) = {.previous = last_,
                  .next = kNone,
                  .slot = slot,
                  .chunk = static_cast<std::int32_t>(made.chunk),
                  .unread_bytes = chunk_bytes_ - made.wanted_bytes};
  slots_[slot] = index;
  (last_ == kNone ? first_ : entry(last_).next) = index;
  last_ = index;
  ++num_held_;
  if (entry(index).unread_bytes == 0) ++num_complete_;
}

void CacheSimulator::make_room() {
  const auto full = [this] {
    return static_cast<std::uint64_t>((num_held_ + 1) * chunk_bytes_) > limit_bytes_;
  };
  // In libhdf5 both walks go on side by side. But all chunks have one size, so the first eviction
  // makes room, unless the second walk never starts: only then the cache grows beyond its limit.
  const auto head_start = static_cast<std::int64_t>(static_cast<double>(num_held_) * w0_);
  const bool takes_any = head_start < num_held_;
  EntryIndex at = first_;
  for (std::int64_t step = 0; step <= head_start && at != kNone && num_complete_ > 0 && full();
       ++step) {
    const EntryIndex next = entry(at).next;
    if (entry(at).unread_bytes == 0) evict(at);
    at = next;
  }
  while (takes_any && first_ != kNone && full()) evict(first_);
}

void CacheSimulator::evict(EntryIndex index) {
  Entry& gone = entry(index);
  (gone.previous == kNone ? first_ : entry(gone.previous).next) = gone.next;
  (gone.next == kNone ? last_ : entry(gone.next).previous) = gone.previous;
  slots_[gone.slot] = kNone;
  gone.next = unused_;
  unused_ = index;
  if (gone.unread_bytes == 0) --num_complete_;
  --num_held_;
  ++counts_.evictions;
}

void CacheSimulator::move_back_by_one(EntryIndex index) {
  Entry& moved = entry(index);
  const EntryIndex passed = moved.next;
  if (passed == kNone) return;
  Entry& other = entry(passed);
  (moved.previous == kNone ? first_ : entry(moved.previous).next) = passed;
  (other.next == kNone ? last_ : entry(other.next).previous) = index;
  other.previous = moved.previous;
  moved.next = other.next;
  moved.previous = passed;
  other.next = index;
}

}  // namespace chunkio::plan
