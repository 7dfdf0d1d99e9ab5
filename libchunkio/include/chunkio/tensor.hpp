/// Element types, shapes, and views of memory owned by somebody else.
///
/// Value types: copy freely, safe to share between threads.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include <chunkio/error.hpp>
#include <chunkio/export.hpp>

namespace chunkio {

/// Element type, in native byte order. Values are stable: never renumber.
enum class DType : std::uint8_t {
  uint8 = 0,
  int8 = 1,
  uint16 = 2,
  int16 = 3,
  uint32 = 4,
  int32 = 5,
  uint64 = 6,
  int64 = 7,
  float32 = 8,
  float64 = 9,
  float16 = 10,   ///< IEEE binary16; of what a Normalizer gives, never of a file.
  bfloat16 = 11,  ///< The upper half of a float32; likewise.
};

/// Bytes of one element.
CHUNKIO_EXPORT std::size_t size_of(DType dtype) noexcept;
/// The NumPy name: "uint8", "float32", ...
CHUNKIO_EXPORT std::string_view to_string(DType dtype) noexcept;

/// The DType of a C++ arithmetic type. \pre T is one of the ten element types.
template <class T>
constexpr DType dtype_of() noexcept {
  if constexpr (std::is_same_v<T, std::uint8_t> || std::is_same_v<T, std::byte>) {
    return DType::uint8;
  } else if constexpr (std::is_same_v<T, std::int8_t>) {
    return DType::int8;
  } else if constexpr (std::is_same_v<T, std::uint16_t>) {
    return DType::uint16;
  } else if constexpr (std::is_same_v<T, std::int16_t>) {
    return DType::int16;
  } else if constexpr (std::is_same_v<T, std::uint32_t>) {
    return DType::uint32;
  } else if constexpr (std::is_same_v<T, std::int32_t>) {
    return DType::int32;
  } else if constexpr (std::is_same_v<T, std::uint64_t>) {
    return DType::uint64;
  } else if constexpr (std::is_same_v<T, std::int64_t>) {
    return DType::int64;
  } else if constexpr (std::is_same_v<T, float>) {
    return DType::float32;
  } else {
    static_assert(std::is_same_v<T, double>, "not an element type");
    return DType::float64;
  }
}

/// Axis order of a batch of images: nhwc = [N,H,W,C], nchw = [N,C,H,W].
enum class Layout : std::uint8_t { nhwc = 0, nchw = 1 };

CHUNKIO_EXPORT std::string_view to_string(Layout layout) noexcept;

/// Up to eight dimensions, each >= 0. Rank 0 is a scalar of one element.
class CHUNKIO_EXPORT Shape {
 public:
  static constexpr std::size_t kMaxRank = 8;

  Shape() = default;
  /// \throws Error invalid_argument for more than kMaxRank dimensions or a negative one.
  Shape(std::initializer_list<std::int64_t> dims);
  explicit Shape(std::span<const std::int64_t> dims);

  [[nodiscard]] std::size_t rank() const noexcept { return rank_; }
  [[nodiscard]] std::int64_t operator[](std::size_t axis) const noexcept { return dims_[axis]; }
  [[nodiscard]] std::span<const std::int64_t> dims() const noexcept {
    return {dims_.data(), rank_};
  }

  /// Product of all dimensions.
  /// \throws Error out_of_resources if it does not fit in 63 bits.
  [[nodiscard]] std::int64_t num_elements() const;
  /// The shape without its first axis. \pre rank() >= 1.
  [[nodiscard]] Shape without_first_axis() const;
  /// The shape with `n` put in front.
  /// \throws Error invalid_argument if the rank would exceed kMaxRank, or n is negative.
  [[nodiscard]] Shape with_first_axis(std::int64_t n) const;
  /// "[256,32,32,3]".
  [[nodiscard]] std::string to_string() const;

  friend bool operator==(const Shape&, const Shape&) = default;

 private:
  std::array<std::int64_t, kMaxRank> dims_{};
  std::size_t rank_ = 0;
};

/// A typed, row-major, contiguous view of memory that it does not own. The function that
/// returns one says how long it is valid. A default-constructed view is empty.
class TensorView {
 public:
  TensorView() = default;
  TensorView(const void* data, DType dtype, Shape shape) noexcept
      : data_(static_cast<const std::byte*>(data)), dtype_(dtype), shape_(shape) {}

  [[nodiscard]] bool empty() const noexcept { return data_ == nullptr; }
  [[nodiscard]] const std::byte* data() const noexcept { return data_; }
  [[nodiscard]] DType dtype() const noexcept { return dtype_; }
  [[nodiscard]] const Shape& shape() const noexcept { return shape_; }
  [[nodiscard]] std::size_t size_bytes() const {
    return empty() ? 0 : static_cast<std::size_t>(shape_.num_elements()) * size_of(dtype_);
  }

  /// All elements in row-major order.
  /// \throws Error invalid_argument if T is not the element type.
  template <class T>
  [[nodiscard]] std::span<const T> values() const {
    if (empty()) return {};
    if (dtype_of<T>() != dtype_) {
      throw Error(ErrorCode::invalid_argument, "tensor holds " + std::string(to_string(dtype_)) +
                                                   ", asked for " +
                                                   std::string(to_string(dtype_of<T>())));
    }
    return {reinterpret_cast<const T*>(data_), static_cast<std::size_t>(shape_.num_elements())};
  }

 private:
  const std::byte* data_ = nullptr;
  DType dtype_ = DType::uint8;
  Shape shape_;
};

}  // namespace chunkio
