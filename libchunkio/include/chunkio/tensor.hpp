/// Tensors: views of memory owned by somebody else, with an element type and a shape.
///
///     const chunkio::Tensor images = batch["images"];  // uint8 [B,H,W,C]
///     const std::int64_t rows = images.shape()[0];
///     for (const std::uint8_t value : images.values<std::uint8_t>()) sum += value;
///
/// Value types: copy freely, safe to share between threads. They own no memory: what returns a
/// tensor says how long it is valid.
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

/// Where memory is. The numbers are DLPack's: never renumber.
enum class DeviceType : std::uint8_t {
  cpu = 1,   ///< Host memory, page-locked or not.
  cuda = 2,  ///< The memory of a GPU.
};

CHUNKIO_EXPORT std::string_view to_string(DeviceType type) noexcept;

/// A device, by kind and number.
struct Device {
  DeviceType type = DeviceType::cpu;
  int index = 0;  ///< Of a GPU; 0 for host memory.

  friend bool operator==(const Device&, const Device&) = default;
};

/// A typed, row-major, contiguous view of memory that it does not own, on the host or on a GPU. The
/// function that returns one says how long it is valid. A default-constructed one is empty.
class Tensor {
 public:
  Tensor() = default;
  /// Of memory that is only read.
  Tensor(const void* data, DType dtype, Shape shape, Device device = {}) noexcept
      : data_(static_cast<const std::byte*>(data)), dtype_(dtype), shape_(shape), device_(device) {}
  /// Of memory that may be written, too.
  [[nodiscard]] static Tensor writable(void* data, DType dtype, Shape shape,
                                       Device device = {}) noexcept {
    Tensor made(data, dtype, shape, device);
    made.read_only_ = false;
    return made;
  }

  /// Whether there is no memory at all, as of labels that a file does not have.
  [[nodiscard]] bool empty() const noexcept { return data_ == nullptr; }
  /// In memory of device(): only work on that device can read what is on a GPU.
  [[nodiscard]] const std::byte* data() const noexcept { return data_; }
  /// The same, to be written. \throws Error invalid_argument for memory that is only read.
  [[nodiscard]] std::byte* mutable_data() const {
    if (read_only_ && data_ != nullptr) {
      throw Error(ErrorCode::invalid_argument, "this tensor is read-only; copy it to change it");
    }
    return const_cast<std::byte*>(data_);
  }
  [[nodiscard]] bool read_only() const noexcept { return read_only_; }
  [[nodiscard]] DType dtype() const noexcept { return dtype_; }
  [[nodiscard]] const Shape& shape() const noexcept { return shape_; }
  /// In elements, one for each axis; zeros behind them.
  [[nodiscard]] std::array<std::int64_t, Shape::kMaxRank> strides() const {
    std::array<std::int64_t, Shape::kMaxRank> strides{};
    for (std::size_t axis = 0; axis < shape_.rank(); ++axis) {
      strides[axis] = Shape(shape_.dims().subspan(axis + 1)).num_elements();
    }
    return strides;
  }
  [[nodiscard]] Device device() const noexcept { return device_; }
  /// \throws Error out_of_resources for more than 2^63 bytes.
  [[nodiscard]] std::size_t size_bytes() const {
    if (empty()) return 0;
    const auto elements = static_cast<std::uint64_t>(shape_.num_elements());
    if (elements > (std::uint64_t{1} << 63) / size_of(dtype_)) {
      throw Error(ErrorCode::out_of_resources, "a tensor " + shape_.to_string() + " of " +
                                                   std::string(to_string(dtype_)) +
                                                   " has more than 2^63 bytes");
    }
    return static_cast<std::size_t>(elements) * size_of(dtype_);
  }

  /// All elements in row-major order. For host memory.
  /// \throws Error invalid_argument if T is not the element type, or the memory is on a GPU.
  template <class T>
  [[nodiscard]] std::span<const T> values() const {
    if (empty()) return {};
    if (device_.type != DeviceType::cpu) {
      throw Error(ErrorCode::invalid_argument,
                  "the values of this tensor are on a GPU; copy them to the host first");
    }
    if (dtype_of<T>() != dtype_) {
      throw Error(ErrorCode::invalid_argument, "tensor holds " + std::string(to_string(dtype_)) +
                                                   ", asked for " +
                                                   std::string(to_string(dtype_of<T>())));
    }
    return {reinterpret_cast<const T*>(data_), static_cast<std::size_t>(shape_.num_elements())};
  }

  friend bool operator==(const Tensor&, const Tensor&) = default;

 private:
  const std::byte* data_ = nullptr;
  DType dtype_ = DType::uint8;
  Shape shape_;
  Device device_;
  bool read_only_ = true;
};

/// Rows of a CSR matrix [rows, columns], of which only some values are stored: those of row i are
/// [indptr[i], indptr[i + 1]) of `indices` and `values`. The other values are 0. A view, as Tensor.
struct SparseTensor {
  Tensor indptr = {};   ///< [rows + 1], from 0 on; int32 or int64, as `indices`.
  Tensor indices = {};  ///< [n]: the column of each value, in the order in which the file has them.
  Tensor values = {};   ///< [n].
  std::int64_t columns = 0;

  [[nodiscard]] std::int64_t rows() const noexcept {
    return indptr.empty() ? 0 : indptr.shape()[0] - 1;
  }
};

namespace internal {

/// What every export asks before it hands `owner` over with `tensor`.
/// \throws Error invalid_argument.
template <class Owner>
void require_exportable(const Owner& owner, const Tensor& tensor) {
  if constexpr (requires { owner.contains(tensor); }) {
    if (!tensor.empty() && !owner.contains(tensor)) {
      throw Error(ErrorCode::invalid_argument,
                  "the tensor is not of this batch, whose lease would not keep its memory valid");
    }
  }
  if (tensor.empty() && tensor.shape().num_elements() > 0) {
    throw Error(ErrorCode::invalid_argument,
                "there is nothing to export: the tensor is empty, as that of labels which a file "
                "does not have");
  }
}

}  // namespace internal
}  // namespace chunkio
