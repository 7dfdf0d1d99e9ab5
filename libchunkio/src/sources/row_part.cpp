#include "sources/row_part.hpp"

#include <algorithm>
#include <cstring>

#include "base/element_fill.hpp"
#include "base/streaming_copy.hpp"

namespace chunkio::sources {
namespace {

/// Below this, the lines that a run fills half at its ends outweigh what non-temporal stores save.
constexpr std::int64_t kStreamedRunBytes = 256;

/// Copies of a length known to the compiler: a call for each run of a few bytes would take longer
/// than the run.
template <std::size_t kBytes>
void copy_runs(std::byte* to, std::int64_t to_stride, const std::byte* from,
               std::int64_t from_stride, std::int64_t count) noexcept {
  for (; count > 0; --count, to += to_stride, from += from_stride) std::memcpy(to, from, kBytes);
}

void copy_runs(std::int64_t bytes, std::byte* to, std::int64_t to_stride, const std::byte* from,
               std::int64_t from_stride, std::int64_t count) noexcept {
  switch (bytes) {
    case 1:
      return copy_runs<1>(to, to_stride, from, from_stride, count);
    case 2:
      return copy_runs<2>(to, to_stride, from, from_stride, count);
    case 3:
      return copy_runs<3>(to, to_stride, from, from_stride, count);
    case 4:
      return copy_runs<4>(to, to_stride, from, from_stride, count);
    case 6:
      return copy_runs<6>(to, to_stride, from, from_stride, count);
    case 8:
      return copy_runs<8>(to, to_stride, from, from_stride, count);
    case 12:
      return copy_runs<12>(to, to_stride, from, from_stride, count);
    case 16:
      return copy_runs<16>(to, to_stride, from, from_stride, count);
    default:
      break;
  }
  for (; count > 0; --count, to += to_stride, from += from_stride) {
    if (bytes < kStreamedRunBytes) {
      std::memcpy(to, from, static_cast<std::size_t>(bytes));
    } else {
      base::streaming_copy(to, from, static_cast<std::size_t>(bytes));
    }
  }
}

}  // namespace

RowPart::RowPart(const Shape& row, const Shape& chunk_row, std::span<const std::int64_t> position,
                 std::int64_t element_bytes)
    : stored_bytes_(element_bytes), run_bytes_(element_bytes) {
  std::array<Level, Shape::kMaxRank> levels{};  // innermost first
  std::size_t num_levels = 0;
  std::int64_t row_stride = element_bytes;
  for (std::size_t axis = row.rank(); axis-- > 0;) {
    const std::int64_t begin = position[axis] * chunk_row[axis];
    const std::int64_t count = std::min(chunk_row[axis], row[axis] - begin);
    row_offset_ += begin * row_stride;
    if (num_levels == 0 && run_bytes_ == row_stride && run_bytes_ == stored_bytes_) {
      run_bytes_ *= count;
    } else if (count > 1) {
      levels[num_levels++] = {count, stored_bytes_, row_stride};
    }
    row_stride *= row[axis];
    stored_bytes_ *= chunk_row[axis];
  }
  if (num_levels == 0) return;
  runs_ = levels[0];
  for (std::size_t level = num_levels; level-- > 1;) {
    outer_[num_outer_++] = levels[level];
    outer_count_ *= levels[level].count;
  }
}

RowPart::Place RowPart::outer_place(std::int64_t i) const noexcept {
  Place place{.stored = 0, .row = row_offset_};
  for (std::size_t level = num_outer_; level-- > 0;) {
    const std::int64_t index = i % outer_[level].count;
    i /= outer_[level].count;
    place.stored += index * outer_[level].stored_stride;
    place.row += index * outer_[level].row_stride;
  }
  return place;
}

void RowPart::copy(std::byte* row, std::int64_t from,
                   std::span<const std::byte> stored) const noexcept {
  const std::int64_t to = from + static_cast<std::int64_t>(stored.size());
  const std::int64_t last_run = (runs_.count - 1) * runs_.stored_stride;
  // A run of which some bytes are in [from, to).
  const auto copy_clipped = [&](const Place& run) {
    const std::int64_t begin = std::max(from, run.stored);
    const std::int64_t end = std::min(to, run.stored + run_bytes_);
    if (begin >= end) return;
    copy_runs(end - begin, row + run.row + (begin - run.stored), 0, stored.data() + (begin - from),
              0, 1);
  };

  // Runs lie in ascending order, so those before `from` are skipped by bisection.
  std::int64_t first = 0;
  for (std::int64_t size = outer_count_; size > 0;) {
    const std::int64_t half = size / 2;
    if (outer_place(first + half).stored + last_run + run_bytes_ <= from) {
      first += half + 1;
      size -= half + 1;
    } else {
      size = half;
    }
  }
  for (std::int64_t i = first; i < outer_count_; ++i) {
    const Place place = outer_place(i);
    if (place.stored >= to) return;
    const auto run = [&](std::int64_t index) {
      return Place{place.stored + index * runs_.stored_stride,
                   place.row + index * runs_.row_stride};
    };
    if (runs_.count == 1) {
      copy_clipped(place);
      continue;
    }
    // Runs [begin, end) lie in [from, to) as a whole; the one before and the one after may in part.
    const std::int64_t stride = runs_.stored_stride;
    const std::int64_t begin =
        from <= place.stored ? 0
                             : std::min(runs_.count, (from - place.stored + stride - 1) / stride);
    const std::int64_t room = to - place.stored - run_bytes_;
    const std::int64_t end = room < 0 ? begin : std::clamp(room / stride + 1, begin, runs_.count);
    if (begin > 0) copy_clipped(run(begin - 1));
    if (begin < end) {
      copy_runs(run_bytes_, row + run(begin).row, runs_.row_stride,
                stored.data() + (run(begin).stored - from), stride, end - begin);
    }
    if (end < runs_.count) copy_clipped(run(end));
  }
}

void RowPart::fill(std::byte* row, std::span<const std::byte> element) const noexcept {
  for (std::int64_t i = 0; i < outer_count_; ++i) {
    const Place place = outer_place(i);
    for (std::int64_t r = 0; r < runs_.count; ++r) {
      base::fill_elements(
          {row + place.row + r * runs_.row_stride, static_cast<std::size_t>(run_bytes_)}, element);
    }
  }
}

}  // namespace chunkio::sources
