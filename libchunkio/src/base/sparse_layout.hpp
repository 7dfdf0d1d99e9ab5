/// Where the parts of a CSR matrix lie in one piece of memory: offsets, columns, values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>

#include <chunkio/error.hpp>
#include <chunkio/tensor.hpp>

namespace chunkio::base {

class SparseLayout {
 public:
  SparseLayout() = default;
  /// \throws Error unsupported: more entries than an int32 counts, which columns of that type need.
  SparseLayout(std::int64_t rows, std::int64_t num_entries, std::int64_t columns, DType value,
               DType index)
      : rows_(rows), num_entries_(num_entries), columns_(columns), value_(value), index_(index) {
    if (index == DType::int32 && num_entries > std::numeric_limits<std::int32_t>::max()) {
      throw Error(
          ErrorCode::unsupported,
          std::to_string(rows) + " rows have " + std::to_string(num_entries) +
              " entries, more than the int32 offsets count that go with int32 columns; take "
              "fewer rows at a time");
    }
  }

  /// Most bytes of `rows` rows with `num_entries` entries.
  [[nodiscard]] static std::int64_t bytes(std::int64_t rows, std::int64_t num_entries, DType value,
                                          DType index) noexcept {
    return align((rows + 1) * size(index)) + align(num_entries * size(index)) +
           num_entries * size(value);
  }
  [[nodiscard]] std::size_t bytes() const noexcept {
    return static_cast<std::size_t>(bytes(rows_, num_entries_, value_, index_));
  }

  /// \param offsets  of rows + 1, from any number on; written from 0 on.
  void write_offsets(std::span<const std::int64_t> offsets, std::byte* memory) const noexcept {
    if (index_ == DType::int32) {
      write(offsets, reinterpret_cast<std::int32_t*>(memory));
    } else {
      write(offsets, reinterpret_cast<std::int64_t*>(memory));
    }
  }
  [[nodiscard]] std::span<std::byte> indices(std::byte* memory) const noexcept {
    return {memory + align((rows_ + 1) * size(index_)),
            static_cast<std::size_t>(num_entries_ * size(index_))};
  }
  [[nodiscard]] std::span<std::byte> values(std::byte* memory) const noexcept {
    return {indices(memory).data() + align(num_entries_ * size(index_)),
            static_cast<std::size_t>(num_entries_ * size(value_))};
  }
  /// Read-only. \param memory  outlives it.
  [[nodiscard]] SparseTensor tensor(const std::byte* memory) const {
    const std::byte* const indices = memory + align((rows_ + 1) * size(index_));
    const std::byte* const values = indices + align(num_entries_ * size(index_));
    return {.indptr = {memory, index_, Shape{rows_ + 1}},
            .indices = {indices, index_, Shape{num_entries_}},
            .values = {values, value_, Shape{num_entries_}},
            .columns = columns_};
  }

 private:
  static std::int64_t size(DType dtype) noexcept {
    return static_cast<std::int64_t>(size_of(dtype));
  }
  static std::int64_t align(std::int64_t bytes) noexcept {
    constexpr std::int64_t kCacheLine = 64;
    return (bytes + kCacheLine - 1) / kCacheLine * kCacheLine;
  }
  template <class Index>
  static void write(std::span<const std::int64_t> offsets, Index* out) noexcept {
    for (std::size_t i = 0; i < offsets.size(); ++i) {
      out[i] = static_cast<Index>(offsets[i] - offsets.front());
    }
  }

  std::int64_t rows_ = 0;
  std::int64_t num_entries_ = 0;
  std::int64_t columns_ = 0;
  DType value_ = DType::float32;
  DType index_ = DType::int32;
};

}  // namespace chunkio::base
