/// Turns SIGBUS on a mapped file into an error.
///
/// Touching a page of a mapping that the file no longer reaches, or that the disk cannot deliver,
/// raises SIGBUS. The guard's handler, for addresses in guarded ranges only, puts a page of zeros
/// in place and notes the fault, so that the copy in progress runs to its end and then fails.
/// The handler never jumps: code that it interrupts is never left half done. Any other
/// SIGBUS goes to the handler that was there before.
///
/// No other copy delivers those zeros. Before the next copy the file is mapped anew, which takes
/// them away, once no copy runs; one that ran beside the fault in another thread may have met them,
/// and runs again. So a bad page fails every copy that touches it, and no other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <shared_mutex>

namespace chunkio::io {

/// Guards one mapping. The handler is installed with the first guard of the process and stays.
class FaultGuard {
 public:
  /// \param begin, size  a mapping (PROT_READ, MAP_SHARED) of the file `fd` from its first byte.
  ///                     Both outlive the guard.
  /// \throws Error out_of_resources if too many mappings are guarded, io_failed if no handler can
  /// be installed.
  FaultGuard(std::byte* begin, std::size_t size, int fd);
  FaultGuard(const FaultGuard&) = delete;
  FaultGuard& operator=(const FaultGuard&) = delete;
  ~FaultGuard();

  /// Calls copy(), which reads the mapping in this thread, until nothing disturbed it. Thread-safe.
  /// \returns false if copy() touched a page that cannot be read: what it read is not the file.
  /// \throws Error io_failed if the file cannot be mapped anew, and what copy() throws.
  template <class Copy>
  [[nodiscard]] bool read(Copy copy) const {
    for (;;) {
      const Mark mark = before_copy();
      {
        const std::shared_lock lock(mapping_);
        copy();
      }
      switch (after_copy(mark)) {
        case Outcome::whole:
          return true;
        case Outcome::faulted:
          return false;
        case Outcome::disturbed:
          break;
      }
    }
  }

 private:
  enum class Outcome : std::uint8_t { whole, faulted, disturbed };
  struct Mark {
    std::uint64_t in_mapping = 0;  // faults so far
    std::uint64_t in_thread = 0;
  };

  /// Takes all pages of zeros away first.
  [[nodiscard]] Mark before_copy() const;
  [[nodiscard]] Outcome after_copy(const Mark& mark) const noexcept;
  void map_anew() const;

  std::byte* begin_;
  std::size_t size_;
  int fd_;
  std::size_t index_;
  mutable std::shared_mutex mapping_;  // shared while it is read, exclusive while it is replaced
};

}  // namespace chunkio::io
