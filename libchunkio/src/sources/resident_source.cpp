#include "sources/resident_source.hpp"

#include <algorithm>
#include <utility>

#include <chunkio/error.hpp>

#include "base/checked_math.hpp"
#include "base/stopwatch.hpp"
#include "base/streaming_copy.hpp"
#include "base/trace.hpp"

namespace chunkio::sources {

namespace {

/// Groups up to the last that has samples.
std::int64_t numbers_of(const RowGroups& groups) noexcept {
  return groups.number_of(groups.extent(groups.num_groups() - 1).begin) + 1;
}

}  // namespace

ResidentSource::ResidentSource(RowGroups groups, std::int64_t row_bytes,
                               std::unique_ptr<ChunkSource> source)
    : groups_(std::move(groups)),
      row_bytes_(static_cast<std::size_t>(row_bytes)),
      source_(std::move(source)),
      rows_(static_cast<std::size_t>(groups_.num_samples()) * row_bytes_) {
  group_of_.assign(static_cast<std::size_t>(numbers_of(groups_)), -1);
  first_sample_.resize(group_of_.size());
  states_.resize(group_of_.size());
  std::int64_t sample = 0;
  for (std::int64_t group = 0; group < groups_.num_groups(); ++group) {
    const std::size_t number = number_of(groups_.extent(group).begin);
    group_of_[number] = group;
    first_sample_[number] = sample;
    sample += groups_.length(group);
  }
}

std::optional<std::int64_t> ResidentSource::kept_bytes(const RowGroups& groups,
                                                       std::int64_t row_bytes) noexcept {
  constexpr auto kTables =
      static_cast<std::int64_t>(sizeof(std::int64_t) + sizeof(std::int64_t) + sizeof(State));
  const auto rows = base::checked_multiply(groups.num_samples(), row_bytes);
  // Far from the limit, so that rounding up to pages stays below it.
  if (!rows || *rows > std::int64_t{1} << 62) return std::nullopt;
  return static_cast<std::int64_t>(base::HostBuffer::footprint(static_cast<std::size_t>(*rows))) +
         numbers_of(groups) * kTables;
}

std::size_t ResidentSource::number_of(std::int64_t row) const noexcept {
  return static_cast<std::size_t>(groups_.number_of(row));
}

std::byte* ResidentSource::memory_of(std::size_t number) const noexcept {
  return rows_.data() + static_cast<std::size_t>(first_sample_[number]) * row_bytes_;
}

ReadCost ResidentSource::place(const RowGroup& group, std::span<const RowTarget> rows,
                               std::stop_token stop) const {
  ReadCost cost;
  if (rows.empty()) return cost;
  const std::size_t number = number_of(group.first_row);
  const std::optional<DamagedRows> damaged = make_present(group, number, stop, cost);
  const base::TraceRange range(base::Stage::copy);
  base::Stopwatch watch;
  const std::byte* const samples = memory_of(number);
  if (groups_.is_selection()) {
    thread_local std::vector<std::uint32_t> offsets;
    groups_.offsets(group_of_[number], offsets);
    auto sample = offsets.begin();  // both are ascending
    for (const RowTarget& row : rows) {
      sample = std::lower_bound(sample, offsets.end(), row.row);
      const auto at = static_cast<std::size_t>(sample - offsets.begin());
      base::streaming_copy(row.target, samples + at * row_bytes_, row_bytes_);
    }
  } else {
    for (const RowTarget& row : rows) {
      base::streaming_copy(row.target, samples + row.row * row_bytes_, row_bytes_);
    }
  }
  base::store_fence();
  cost.copy_seconds += watch.lap();
  if (damaged) {
    DamagedRows mismatch(*damaged);
    mismatch.cost = cost;
    throw mismatch;
  }
  return cost;
}

std::optional<DamagedRows> ResidentSource::make_present(const RowGroup& group, std::size_t number,
                                                        const std::stop_token& stop,
                                                        ReadCost& cost) const {
  {
    std::unique_lock lock(mutex_);
    base::Stopwatch watch;
    changed_.wait(lock, [&] { return states_[number] != State::loading; });
    cost.read_seconds += watch.lap();  // another thread brings it
    if (states_[number] == State::present) {
      const auto known = damaged_.find(number);
      return known == damaged_.end() ? std::nullopt : std::optional(known->second);
    }
    states_[number] = State::loading;
  }
  State result = State::absent;
  std::optional<DamagedRows> damaged;
  const auto finish = [&] {
    {
      const std::lock_guard lock(mutex_);
      states_[number] = result;
    }
    changed_.notify_all();
  };
  try {
    std::vector<std::uint32_t> offsets;
    groups_.offsets(group_of_[number], offsets);
    std::vector<RowTarget> targets;
    targets.reserve(offsets.size());
    std::byte* target = memory_of(number);
    for (const std::uint32_t row : offsets) {
      targets.push_back({.row = row, .target = target});
      target += row_bytes_;
    }
    cost += source_->place(group, targets, stop);
    result = State::present;
  } catch (const DamagedRows& error) {
    cost += error.cost;
    try {
      damaged = error;
      const std::lock_guard lock(mutex_);
      damaged_.try_emplace(number, error);
      result = State::present;
    } catch (...) {
      finish();
      throw;
    }
  } catch (...) {
    finish();
    throw;
  }
  finish();
  return damaged;
}

std::unique_ptr<const ByteSource> ResidentSource::prefetch(
    const RowGroup& group, const RowRange& /*wanted*/) const noexcept {
  {
    const std::lock_guard lock(mutex_);
    if (states_[number_of(group.first_row)] != State::absent) return nullptr;
  }
  // The first group read brings all its samples.
  const std::size_t number = number_of(group.first_row);
  return source_->prefetch(
      group, {groups_.row(group_of_[number], 0),
              groups_.row(group_of_[number], groups_.length(group_of_[number]) - 1) + 1});
}

std::int64_t ResidentSource::memory_bytes(std::int64_t threads) const noexcept {
  const auto lists = threads * groups_.group_samples() *
                     static_cast<std::int64_t>(sizeof(RowTarget) + 2 * sizeof(std::uint32_t));
  // What is constructed has a size.
  return source_->memory_bytes(threads) + lists +
         *kept_bytes(groups_, static_cast<std::int64_t>(row_bytes_));
}

}  // namespace chunkio::sources
