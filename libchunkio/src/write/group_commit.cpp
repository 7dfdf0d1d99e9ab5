#include "write/group_commit.hpp"

#include <utility>

namespace chunkio::write {
namespace {

constexpr std::chrono::seconds kGroupTime{2};

}  // namespace

GroupCommit::GroupCommit(PartialFile& pixels, Journal& journal, std::int64_t group_bytes,
                         bool committed,
                         std::function<void(std::span<const ChunkRecord>)> on_committed)
    : pixels_(pixels),
      journal_(journal),
      group_bytes_(group_bytes),
      committed_(committed),
      on_committed_(std::move(on_committed)),
      begun_(std::chrono::steady_clock::now()) {}

void GroupCommit::add(ChunkRecord record, std::int64_t bytes) {
  {
    const std::lock_guard lock(mutex_);
    try {
      pending_.push_back(std::move(record));
    } catch (...) {
      // A chunk that is in the file and in no group would never be read back.
      if (!failure_) failure_ = std::current_exception();
      throw;
    }
    pending_bytes_ += bytes;
    const bool complete =
        pending_bytes_ >= group_bytes_ || std::chrono::steady_clock::now() - begun_ >= kGroupTime;
    if (!complete) return;
  }
  const std::unique_lock turn(turn_mutex_, std::try_to_lock);
  if (turn.owns_lock()) commit_in_turn();
}

void GroupCommit::commit() {
  const std::lock_guard turn(turn_mutex_);
  commit_in_turn();
}

void GroupCommit::commit_in_turn() {
  std::vector<ChunkRecord> group;
  {
    const std::lock_guard lock(mutex_);
    if (failure_) std::rethrow_exception(failure_);
    group.swap(pending_);
    pending_bytes_ = 0;
    begun_ = std::chrono::steady_clock::now();
  }
  if (group.empty()) return;
  try {
    pixels_.sync_content();
    journal_.append(group);
    journal_.sync();
    pixels_.keep();
    journal_.file().keep();
    committed_ = true;
    on_committed_(group);
  } catch (...) {
    const std::lock_guard lock(mutex_);
    if (!failure_) failure_ = std::current_exception();
    throw;
  }
}

void GroupCommit::check() const {
  const std::lock_guard lock(mutex_);
  if (failure_) std::rethrow_exception(failure_);
}

}  // namespace chunkio::write
