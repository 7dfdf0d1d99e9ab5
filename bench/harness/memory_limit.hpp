/// A control group that limits the memory of its processes, page cache included.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "harness/control_group.hpp"

namespace bench {

/// Exists as long as the object; all children must have ended by then.
class MemoryLimit {
 public:
  /// \param beside  as of make_group().
  /// \throws NoControlGroup that says why no group can be made (not root, no memory controller).
  explicit MemoryLimit(std::int64_t bytes, const std::shared_ptr<ControlGroup>& beside = {});

  /// For run_child(): puts the calling process, and what it starts from then on, into the group.
  [[nodiscard]] std::function<bool()> enter() const { return group_->enter(); }

  [[nodiscard]] const std::shared_ptr<ControlGroup>& group() const noexcept { return group_; }

 private:
  std::shared_ptr<ControlGroup> group_;
};

}  // namespace bench
