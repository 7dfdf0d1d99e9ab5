#include "h5pack/sparse/entry.hpp"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

namespace h5pack {

namespace {

using chunkio::DType;

template <class T>
bool holds(std::int64_t value) noexcept {
  if constexpr (std::is_floating_point_v<T>) {
    const auto stored = static_cast<T>(value);
    // 2^63 itself would not convert back.
    return stored < static_cast<T>(std::numeric_limits<std::int64_t>::max()) &&
           static_cast<std::int64_t>(stored) == value;
  } else {
    return std::in_range<T>(value);
  }
}

/// Calls `work` with a value of the C++ type.
template <class Work>
auto with_type(DType dtype, const Work& work) {
  switch (dtype) {
    case DType::uint8:
      return work(std::uint8_t{});
    case DType::int8:
      return work(std::int8_t{});
    case DType::uint16:
      return work(std::uint16_t{});
    case DType::int16:
      return work(std::int16_t{});
    case DType::uint32:
      return work(std::uint32_t{});
    case DType::int32:
      return work(std::int32_t{});
    case DType::uint64:
      return work(std::uint64_t{});
    case DType::int64:
      return work(std::int64_t{});
    case DType::float64:
      return work(double{});
    default:
      return work(float{});
  }
}

}  // namespace

bool is_float(DType dtype) noexcept { return dtype == DType::float32 || dtype == DType::float64; }

std::optional<std::uint64_t> encode_integer(std::int64_t value, DType dtype) noexcept {
  if (!with_type(dtype, [&](auto type) { return holds<decltype(type)>(value); })) {
    return std::nullopt;
  }
  return is_float(dtype) ? std::bit_cast<std::uint64_t>(static_cast<double>(value))
                         : std::bit_cast<std::uint64_t>(value);
}

std::optional<std::uint64_t> encode_real(double value, DType dtype) noexcept {
  if (!is_float(dtype)) {
    // Written so that NaN is refused, too.
    if (!(std::trunc(value) == value && std::abs(value) < 0x1p63)) return std::nullopt;
    return encode_integer(static_cast<std::int64_t>(value), dtype);
  }
  if (dtype == DType::float32 && std::isfinite(value) && std::isinf(static_cast<float>(value))) {
    return std::nullopt;
  }
  return std::bit_cast<std::uint64_t>(value);
}

std::optional<std::uint64_t> add(std::uint64_t a, std::uint64_t b, DType dtype) noexcept {
  if (is_float(dtype)) {
    return encode_real(std::bit_cast<double>(a) + std::bit_cast<double>(b), dtype);
  }
  std::int64_t sum = 0;
  if (__builtin_add_overflow(std::bit_cast<std::int64_t>(a), std::bit_cast<std::int64_t>(b),
                             &sum)) {
    return std::nullopt;
  }
  return encode_integer(sum, dtype);
}

void store(std::uint64_t bits, DType dtype, std::byte* to) noexcept {
  with_type(dtype, [&](auto type) {
    using T = decltype(type);
    T value{};
    if constexpr (std::is_floating_point_v<T>) {
      value = static_cast<T>(std::bit_cast<double>(bits));
    } else {
      value = static_cast<T>(std::bit_cast<std::int64_t>(bits));
    }
    std::memcpy(to, &value, sizeof(value));
  });
}

std::string misfit(const std::string& number, DType dtype) {
  return number + " does not fit " + std::string(to_string(dtype)) +
         (is_float(dtype) ? " exactly" : "") + "; choose another --dtype";
}

}  // namespace h5pack
