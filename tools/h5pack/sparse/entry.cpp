#include "h5pack/sparse/entry.hpp"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include <chunkio/error.hpp>

#include "h5pack/sparse/number_type.hpp"

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

void encode(std::span<const std::byte> numbers, DType from, DType to, std::span<std::uint64_t> out,
            const std::function<std::string(std::size_t)>& place) {
  with_type(from, [&](auto type) {
    using T = decltype(type);
    for (std::size_t i = 0; i < out.size(); ++i) {
      T number;
      std::memcpy(&number, numbers.data() + i * sizeof(T), sizeof(T));
      std::optional<std::uint64_t> bits;
      if constexpr (std::is_floating_point_v<T>) {
        bits = encode_real(static_cast<double>(number), to);
      } else if (std::in_range<std::int64_t>(number)) {
        bits = encode_integer(static_cast<std::int64_t>(number), to);
      }
      if (!bits) {
        throw chunkio::Error(chunkio::ErrorCode::corrupt_data,
                             place(i) + ": " + misfit(std::to_string(number), to));
      }
      out[i] = *bits;
    }
  });
}

std::string misfit(const std::string& number, DType dtype) {
  return number + " does not fit " + std::string(to_string(dtype)) +
         (is_float(dtype) ? " exactly" : "") + "; choose another --dtype";
}

}  // namespace h5pack
