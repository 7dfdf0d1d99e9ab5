/// Blocks of remote files, the ones used last: a reader of metadata comes back to them, a few bytes
/// at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace chunkio::io {

/// Thread-safe.
class BlockCache {
 public:
  using Block = std::shared_ptr<const std::vector<std::byte>>;
  /// Number of a file, and of a block in it.
  using Key = std::pair<std::uint64_t, std::int64_t>;

  explicit BlockCache(std::size_t most_blocks) : most_blocks_(most_blocks) {}

  /// Null: it is not there.
  [[nodiscard]] Block find(const Key& key) {
    const std::lock_guard lock(mutex_);
    const auto found = blocks_.find(key);
    if (found == blocks_.end()) return nullptr;
    used_.splice(used_.begin(), used_, found->second);
    return found->second->second;
  }
  void add(const Key& key, Block block) {
    const std::lock_guard lock(mutex_);
    const auto [place, is_new] = blocks_.try_emplace(key);
    if (!is_new) return;
    used_.emplace_front(key, std::move(block));
    place->second = used_.begin();
    if (used_.size() <= most_blocks_) return;
    blocks_.erase(used_.back().first);
    used_.pop_back();
  }
  /// All blocks of a file.
  void forget(std::uint64_t file) {
    const std::lock_guard lock(mutex_);
    for (auto block = blocks_.lower_bound({file, 0});
         block != blocks_.end() && block->first.first == file; block = blocks_.erase(block)) {
      used_.erase(block->second);
    }
  }

 private:
  using Used = std::list<std::pair<Key, Block>>;  // the one used last is first

  const std::size_t most_blocks_;
  std::mutex mutex_;
  Used used_;
  std::map<Key, Used::iterator> blocks_;
};

}  // namespace chunkio::io
