/// Brings written chunks to disk in groups: pixels first, then their records.
///
/// A group is one fdatasync of the pixels, one append to the journal and one fdatasync of that, so
/// that a record never says more than the disk holds. The first failure is final: after a failed
/// fdatasync the kernel may have dropped pages and call them clean, so that trying again would
/// succeed over lost pixels. Thread-safe.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <span>
#include <vector>

#include "write/journal.hpp"
#include "write/partial_file.hpp"

namespace chunkio::write {

class GroupCommit {
 public:
  /// Keeps references to both, and has them kept once a group is committed.
  /// \param group_bytes  pixels of a group; what was written in two seconds is one, too.
  /// \param committed  whether the journal holds chunks already.
  /// \param on_committed  called with each group that is on disk, one after the other. What it
  ///                      throws is a failure, too.
  GroupCommit(PartialFile& pixels, Journal& journal, std::int64_t group_bytes, bool committed,
              std::function<void(std::span<const ChunkRecord>)> on_committed);

  /// Notes that a chunk of `bytes` bytes was written; commits if a group is complete and nobody
  /// else is at it. \throws Error io_failed, no_space; std::bad_alloc.
  void add(ChunkRecord record, std::int64_t bytes);
  /// Commits what was added. \throws Error io_failed, no_space; std::bad_alloc.
  void commit();
  /// \throws what add() or commit() threw first.
  void check() const;
  [[nodiscard]] bool committed() const noexcept { return committed_; }

 private:
  void commit_in_turn();

  PartialFile& pixels_;
  Journal& journal_;
  const std::int64_t group_bytes_;
  std::atomic<bool> committed_;
  const std::function<void(std::span<const ChunkRecord>)> on_committed_;

  std::mutex turn_mutex_;     ///< Held while a group is brought to disk. Locked before the other.
  mutable std::mutex mutex_;  ///< Guards everything below.
  std::vector<ChunkRecord> pending_;
  std::int64_t pending_bytes_ = 0;
  std::chrono::steady_clock::time_point begun_;
  std::exception_ptr failure_;
};

}  // namespace chunkio::write
