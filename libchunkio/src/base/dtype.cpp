#include <algorithm>

#include <chunkio/tensor.hpp>

#include "base/checked_math.hpp"

namespace chunkio {

std::size_t size_of(DType dtype) noexcept {
  switch (dtype) {
    case DType::uint8:
    case DType::int8:
      return 1;
    case DType::uint16:
    case DType::int16:
    case DType::float16:
    case DType::bfloat16:
      return 2;
    case DType::uint32:
    case DType::int32:
    case DType::float32:
      return 4;
    case DType::uint64:
    case DType::int64:
    case DType::float64:
      return 8;
  }
  return 0;
}

Shape::Shape(std::initializer_list<std::int64_t> dims)
    : Shape(std::span<const std::int64_t>(dims.begin(), dims.size())) {}

Shape::Shape(std::span<const std::int64_t> dims) : rank_(dims.size()) {
  if (dims.size() > kMaxRank) {
    throw Error(ErrorCode::invalid_argument,
                "a shape has at most 8 axes, got " + std::to_string(dims.size()));
  }
  if (std::any_of(dims.begin(), dims.end(), [](std::int64_t d) { return d < 0; })) {
    throw Error(ErrorCode::invalid_argument, "a shape has no negative axis");
  }
  std::copy(dims.begin(), dims.end(), dims_.begin());
}

std::int64_t Shape::num_elements() const {
  const auto product = base::checked_product(dims());
  if (!product) {
    throw Error(ErrorCode::out_of_resources,
                "shape " + to_string() + " has more elements than 63 bits count");
  }
  return *product;
}

Shape Shape::without_first_axis() const { return Shape(dims().subspan(1)); }

Shape Shape::with_first_axis(std::int64_t n) const {
  std::array<std::int64_t, kMaxRank + 1> dims_with{};
  dims_with[0] = n;
  std::copy(dims().begin(), dims().end(), dims_with.begin() + 1);
  return Shape(std::span<const std::int64_t>(dims_with.data(), rank_ + 1));
}

std::string Shape::to_string() const {
  std::string text = "[";
  for (std::size_t axis = 0; axis < rank_; ++axis) {
    if (axis > 0) text += ',';
    text += std::to_string(dims_[axis]);
  }
  return text + "]";
}

}  // namespace chunkio
