#include "read/slot_filler.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <optional>
#include <span>
#include <utility>

namespace chunkio::read {

SlotFiller::Scratch::Scratch(const RowGroups& groups) {
  const auto max_rows = static_cast<std::size_t>(groups.max_length());
  places_.reserve(max_rows);
  targets_.reserve(max_rows);
  if (groups.is_selection()) offsets_.reserve(max_rows);
}

SlotFiller::SlotFiller(const RowGroups& groups, std::vector<StreamedArray> arrays,
                       CachedFields fields, const RingLayout& layout, std::int64_t lane_batch)
    : groups_(groups),
      arrays_(std::move(arrays)),
      fields_(std::move(fields)),
      lane_batch_(lane_batch) {
  for (std::size_t field = 0; field < fields_.size(); ++field) {
    if (fields_[field].empty()) continue;
    cached_.push_back({.field = field,
                       .row_bytes = layout.fields[field].row_bytes,
                       .values = fields_[field].data()});
  }
  for (const StreamedArray& array : arrays_) {
    streamed_row_bytes_ += static_cast<std::int64_t>(array.row_bytes);
  }
}

std::int64_t SlotFiller::footprint(const RowGroups& groups, std::int64_t num_threads) {
  const std::size_t row_bytes =
      sizeof(RowPlace) + sizeof(RowTarget) + (groups.is_selection() ? sizeof(std::uint32_t) : 0);
  return num_threads * groups.max_length() * static_cast<std::int64_t>(row_bytes);
}

void SlotFiller::resize(WindowRows& rows, std::size_t num_batches) const {
  rows.ids.resize(num_batches);
  rows.streamed.resize(num_batches * arrays_.size());
  rows.cached.resize(num_batches * cached_.size());
}

void SlotFiller::point_at(WindowRows& rows, std::size_t batch, const internal::BatchSlot& slot,
                          std::size_t first_row) const {
  const std::size_t num_batches = rows.ids.size();
  rows.ids[batch] = slot.sample_ids + first_row;
  for (std::size_t i = 0; i < arrays_.size(); ++i) {
    const StreamedArray& array = arrays_[i];
    std::byte* const values = array.field ? slot.fields[*array.field] : slot.leading;
    rows.streamed[i * num_batches + batch] = values + first_row * array.row_bytes;
  }
  for (std::size_t i = 0; i < cached_.size(); ++i) {
    const CachedField& field = cached_[i];
    rows.cached[i * num_batches + batch] = slot.fields[field.field] + first_row * field.row_bytes;
  }
}

// One pass for each thing that is written, so that each loop has few streams of memory and no
// branch: with images of 3 KiB, looking for their places would else take a tenth of the time of
// copying them.

Prefetched SlotFiller::prefetch(const RowGroup& group, const RowRange& wanted) const noexcept {
  Prefetched all;
  for (std::size_t i = 0; i < arrays_.size(); ++i) {
    auto one = arrays_[i].source->prefetch(group, wanted);
    if (!one) continue;
    try {
      all.resize(arrays_.size());
      all[i] = std::move(one);
    } catch (const std::bad_alloc&) {
      return {};  // the workers that need the bytes read them
    }
  }
  return all;
}

void SlotFiller::fill(const plan::WindowPlan& plan, const WindowRows& rows,
                      const plan::GroupRead& read, const RowGroup& group,
                      const Prefetched& prefetched, Scratch& scratch, const std::stop_token& stop,
                      ReadCost& cost) const {
  find_places(plan, read, scratch);
  fill_ids(rows, group.first_row, scratch);
  fill_cached(rows, group.first_row, scratch);
  DamagedRowList damaged;
  for (std::size_t i = 0; i < arrays_.size(); ++i) {
    find_targets(rows, i, scratch);
    RowGroup rows_of_array = group;
    if (!prefetched.empty()) rows_of_array.prefetched = prefetched[i].get();
    try {
      cost += arrays_[i].source->place(rows_of_array, scratch.targets_, stop);
    } catch (const DamagedRows& error) {
      cost += error.cost;
      damaged.add(error);
    }
  }
  damaged.raise({});
}

void SlotFiller::find_places(const plan::WindowPlan& plan, const plan::GroupRead& read,
                             Scratch& scratch) const {
  const std::span rows = std::span(plan.rows).subspan(read.first, read.count);
  scratch.places_.resize(rows.size());
  // Delivery indexes relative to the first sample of the window's first batch fit 32 bits
  // (EpochOrder bounds the window), and 32-bit division is several times cheaper than 64-bit.
  const auto lane_batch = static_cast<std::uint32_t>(lane_batch_);
  const auto shift = static_cast<std::uint32_t>(plan.first_index % lane_batch_);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::uint32_t index = rows[i].index + shift;
    const std::uint32_t batch = index / lane_batch;
    scratch.places_[i] = {.offset = rows[i].row, .batch = batch, .row = index - batch * lane_batch};
  }
  if (!groups_.is_selection()) return;
  groups_.offsets(read.group, scratch.offsets_);
  for (RowPlace& place : scratch.places_) place.offset = scratch.offsets_[place.offset];
}

void SlotFiller::fill_ids(const WindowRows& rows, std::int64_t first_row,
                          const Scratch& scratch) const {
  // Each goes to another cache line, all over the window: they are fetched ahead of the stores.
  constexpr std::size_t kAhead = 32;
  const std::span<const RowPlace> places = scratch.places_;
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (i + kAhead < places.size()) {
      const RowPlace& later = places[i + kAhead];
      __builtin_prefetch(rows.ids[later.batch] + later.row, 1);
    }
    rows.ids[places[i].batch][places[i].row] = first_row + places[i].offset;
  }
}

void SlotFiller::fill_cached(const WindowRows& rows, std::int64_t first_row,
                             const Scratch& scratch) const {
  for (std::size_t i = 0; i < cached_.size(); ++i) {
    const std::size_t row_bytes = cached_[i].row_bytes;
    const std::byte* const values =
        cached_[i].values + static_cast<std::size_t>(first_row) * row_bytes;
    std::byte* const* const starts = rows.cached.data() + i * rows.ids.size();
    const auto copy_rows = [&](auto bytes) {
      for (const RowPlace& place : scratch.places_) {
        std::memcpy(starts[place.batch] + place.row * bytes(), values + place.offset * bytes(),
                    bytes());
      }
    };
    // Labels have a size that is worth a loop without calls.
    if (row_bytes == sizeof(std::int64_t)) {
      copy_rows([] { return sizeof(std::int64_t); });
    } else {
      copy_rows([row_bytes] { return row_bytes; });
    }
  }
}

void SlotFiller::find_targets(const WindowRows& rows, std::size_t array, Scratch& scratch) const {
  const std::size_t row_bytes = arrays_[array].row_bytes;
  std::byte* const* const starts = rows.streamed.data() + array * rows.ids.size();
  scratch.targets_.resize(scratch.places_.size());
  for (std::size_t i = 0; i < scratch.places_.size(); ++i) {
    const RowPlace& place = scratch.places_[i];
    scratch.targets_[i] = {.row = place.offset,
                           .target = starts[place.batch] + place.row * row_bytes};
  }
}

bool SlotFiller::mark_skipped(const WindowRows& rows, const RowGroup& group,
                              std::span<const RowRange> skipped, const Scratch& scratch) const {
  bool any = false;
  for (const RowPlace& place : scratch.places_) {
    if (!contains(skipped, group.first_row + place.offset)) continue;
    rows.ids[place.batch][place.row] = internal::BatchSlot::kSkipped;
    any = true;
  }
  return any;
}

}  // namespace chunkio::read
