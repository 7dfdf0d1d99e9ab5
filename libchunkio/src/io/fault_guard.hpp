/// Turns SIGBUS on a mapped file into an error.
///
/// Touching a page of a mapping that the file no longer reaches, or that the disk cannot deliver,
/// raises SIGBUS. The guard's handler, for addresses in guarded ranges only, puts a page of zeros
/// in place and notes the fault, so that the copy in progress runs to its end; whoever copied then
/// asks and throws. No jump out of the handler: code that it interrupts is never left half done.
/// Any other SIGBUS goes to the handler that was there before.
#pragma once

#include <cstddef>

namespace chunkio::io {

/// Guards one mapping. The handler is installed with the first guard of the process and stays.
class FaultGuard {
 public:
  /// \throws Error out_of_resources if too many mappings are guarded, io_failed if no handler can
  /// be installed.
  FaultGuard(const std::byte* begin, std::size_t size);
  FaultGuard(const FaultGuard&) = delete;
  FaultGuard& operator=(const FaultGuard&) = delete;
  ~FaultGuard();

  /// Whether any page of the mapping has ever faulted. Its contents cannot be trusted from then on.
  [[nodiscard]] bool faulted() const noexcept;

 private:
  std::size_t index_;
};

}  // namespace chunkio::io
