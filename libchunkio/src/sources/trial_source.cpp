#include "sources/trial_source.hpp"

#include <algorithm>
#include <array>
#include <exception>
#include <utility>

#include <chunkio/error.hpp>

namespace chunkio::sources {
namespace {

constexpr std::array kStores = {base::Stores::streaming, base::Stores::cached};
// As far ahead of the group reads are rows prefetched, so that as much later the last of them are
// there.
constexpr std::int64_t kPrefetchedBytes = std::int64_t{64} << 20;

std::vector<std::string> names_of_ways(const std::vector<SourceKind>& kinds) {
  std::vector<std::string> names;
  for (const SourceKind kind : kinds) {
    names.emplace_back(to_string(kind));
    names.push_back(names.back() + " with ordinary stores");
  }
  return names;
}

double all_seconds(const ReadCost& cost) {
  return cost.read_seconds + cost.decode_seconds + cost.copy_seconds;
}

/// Of rows that are read again and again.
double lasting_seconds(const ReadCost& cost) { return all_seconds(cost) - cost.once_seconds; }

/// Whether both ends of the rows were in the page cache, but not all between, so that the disk was
/// waited for: mapping in what is there takes a tenth of copying it.
bool waited_for_disk(const ReadCost& cost) {
  return cost.read_seconds + cost.once_seconds > lasting_seconds(cost) - cost.read_seconds;
}

}  // namespace

SourceTrials::SourceTrials(std::vector<SourceKind> kinds, TrialLimits limits)
    : kinds_(std::move(kinds)), trial_(names_of_ways(kinds_), limits) {
  static_assert(kStores.size() == kNumStores);
}

TrialSource::TrialSource(std::vector<std::unique_ptr<ChunkSource>> sources,
                         std::shared_ptr<SourceTrials> trials, std::int64_t row_bytes,
                         InPageCache in_page_cache, ThreadClock thread_clock)
    : sources_(std::move(sources)),
      trials_(std::move(trials)),
      row_bytes_(row_bytes),
      in_page_cache_(std::move(in_page_cache)),
      thread_clock_(std::move(thread_clock)) {}

bool TrialSource::depends_on_page_cache() const noexcept {
  const Trial& trial = trials_->trial_;
  return !trial.settled() || trial.choice() / kStores.size() != trials_->first_;
}

bool TrialSource::come_from_disk(const RowGroup& group, std::span<const RowTarget> rows) const {
  if (!depends_on_page_cache()) return false;
  if (bytes_until_read_ > 0) return true;
  return !in_page_cache_(
      {.begin = group.first_row + rows.front().row, .end = group.first_row + rows.back().row + 1});
}

ReadCost TrialSource::place(const RowGroup& group, std::span<const RowTarget> rows,
                            std::stop_token stop) const {
  if (rows.empty()) return {};
  const bool from_disk = come_from_disk(group, rows);
  const std::int64_t bytes = static_cast<std::int64_t>(rows.size()) * row_bytes_;
  if (bytes_until_read_ > 0) bytes_until_read_ -= bytes;
  Trial& trial = trials_->trial_;
  const Trial::Share share =
      from_disk ? Trial::Share{.way = trials_->first_ * kStores.size()} : trial.begin(bytes);
  const std::size_t source = share.way / kStores.size();
  RowGroup tried = group;
  tried.stores = kStores[share.way % kStores.size()];
  try {
    const double start = share.turn ? thread_clock_() : 0;
    const ReadCost cost = sources_[source]->place(tried, rows, stop);
    const double all = all_seconds(cost);
    const double worked = share.turn && all > 0 ? (thread_clock_() - start) / all : 1;
    if (waited_for_disk(cost)) {
      trial.give_up(share, bytes);
    } else {
      trial.end(share, bytes, worked * lasting_seconds(cost));
    }
    return cost;
  } catch (const Error& error) {
    trial.give_up(share, bytes);
    if (error.code() == ErrorCode::cancelled || trial.settled()) throw;
    return place_otherwise(source, std::current_exception(), group, rows, stop);
  } catch (...) {
    trial.give_up(share, bytes);
    throw;
  }
}

ReadCost TrialSource::place_otherwise(std::size_t failed, const std::exception_ptr& error,
                                      const RowGroup& group, std::span<const RowTarget> rows,
                                      const std::stop_token& stop) const {
  for (std::size_t source = 0; source < sources_.size(); ++source) {
    if (source == failed) continue;
    try {
      const ReadCost cost = sources_[source]->place(group, rows, stop);
      trials_->drop(failed);
      return cost;
    } catch (const Error& other) {
      if (other.code() == ErrorCode::cancelled) throw;
    }
  }
  // It is the file that is at fault.
  std::rethrow_exception(error);
}

void SourceTrials::drop(std::size_t source) {
  bool others_left = true;
  for (std::size_t stores = 0; stores < kNumStores; ++stores) {
    others_left = trial_.drop(source * kNumStores + stores) && others_left;
  }
  if (others_left && first_ == source) first_ = trial_.choice() / kNumStores;
}

std::unique_ptr<const ByteSource> TrialSource::prefetch(const RowGroup& group,
                                                        const RowRange& wanted) const noexcept {
  if (depends_on_page_cache() && !in_page_cache_(wanted)) {
    bytes_until_read_ = kPrefetchedBytes;
  }
  // All of them ask for the same bytes in the same way.
  return sources_[trials_->first_]->prefetch(group, wanted);
}

std::int64_t TrialSource::memory_bytes(std::int64_t threads) const noexcept {
  return chunkio::memory_bytes(sources_, threads);
}

}  // namespace chunkio::sources
