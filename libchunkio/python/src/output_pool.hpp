/// Buffers for normalised batches, used again when Python has dropped what was in them.
#pragma once

#include <cstddef>
#include <memory>

namespace chunkio::python {

/// Thread-safe. A buffer may outlive the pool.
class OutputPool {
 public:
  /// Memory of at least `bytes` bytes, aligned to 64, on huge pages where the system gives them:
  /// the kernel takes longer to make small pages than a batch takes to be normalised. \throws
  /// std::bad_alloc.
  [[nodiscard]] std::shared_ptr<std::byte> take(std::size_t bytes);

 private:
  struct Spare;
  std::shared_ptr<Spare> spare_ = make_spare();
  static std::shared_ptr<Spare> make_spare();
};

}  // namespace chunkio::python
