/// A control group that limits the memory of its processes, page cache included.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "control_group.hpp"

namespace bench {

/// Exists as long as the object; all children must have ended by then.
class MemoryLimit {
 public:
  /// \throws NoControlGroup that says why no group can be made (not root, no memory controller).
  explicit MemoryLimit(std::int64_t bytes);

  /// For run_child(): puts the calling process, and what it starts from then on, into the group.
  [[nodiscard]] std::function<bool()> enter() const { return group_->enter(); }

 private:
  std::unique_ptr<ControlGroup> group_;
};

}  // namespace bench
