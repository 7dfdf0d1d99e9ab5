/// Large buffers for batches: aligned, on huge pages where the kernel gives them.
///
/// Rows are written with non-temporal stores at random places; with 4 KiB pages nearly every row
/// costs a TLB miss, with 2 MiB pages few do.
#pragma once

#include <cstddef>
#include <span>

namespace chunkio::base {

/// Owns `size` zeroed bytes, aligned to 2 MiB if at least that large, else to a page.
class HostBuffer {
 public:
  HostBuffer() = default;
  /// \throws Error out_of_resources if the kernel refuses.
  explicit HostBuffer(std::size_t size);
  HostBuffer(HostBuffer&& other) noexcept;
  HostBuffer& operator=(HostBuffer&& other) noexcept;
  ~HostBuffer();

  [[nodiscard]] std::byte* data() const noexcept { return data_; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] std::span<std::byte> bytes() const noexcept { return {data_, size_}; }
  /// Bytes that a buffer of `size` takes from the system.
  [[nodiscard]] static std::size_t footprint(std::size_t size) noexcept;

 private:
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace chunkio::base
