/// A control group that limits the memory of child processes, page cache included.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

namespace bench {

/// Exists as long as the object; all children must have ended by then.
class MemoryLimit {
 public:
  /// \throws std::runtime_error that says why no group can be made (not root, no memory
  /// controller).
  explicit MemoryLimit(std::int64_t bytes);
  MemoryLimit(const MemoryLimit&) = delete;
  MemoryLimit& operator=(const MemoryLimit&) = delete;
  ~MemoryLimit();

  /// For run_child(): puts the calling process into the group.
  [[nodiscard]] std::function<bool()> enter() const;

 private:
  std::filesystem::path group_;
};

}  // namespace bench
