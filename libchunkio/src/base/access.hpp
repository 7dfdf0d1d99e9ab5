/// The one back door to what public classes are made of: for other layers, tests and bench
/// programs.
#pragma once

#include <utility>

namespace chunkio::internal {

struct Access {
  /// What a Dataset, EpochOrder, Loader or DeviceLoader is made of. Its header must be included.
  /// \throws Error invalid_argument: it was moved from.
  template <class Class>
  [[nodiscard]] static decltype(auto) impl(const Class& object) {
    return object.impl();
  }
  /// The slot that a batch leases; null for one that was moved from.
  template <class Batch>
  [[nodiscard]] static const auto& slot(const Batch& batch) noexcept {
    return batch.slot_;
  }
  /// As DeviceLoader::resume(), on a Gpu of the caller's.
  template <class Class, class... Arguments>
  [[nodiscard]] static Class resume_on(Arguments&&... arguments) {
    return Class::resume_on(std::forward<Arguments>(arguments)...);
  }
  /// By a constructor that is not public.
  template <class Class, class... Arguments>
  [[nodiscard]] static Class make(Arguments&&... arguments) {
    return Class(std::forward<Arguments>(arguments)...);
  }
};

}  // namespace chunkio::internal
