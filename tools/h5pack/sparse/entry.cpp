#include "h5pack/sparse/entry.hpp"

#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <system_error>
#include <type_traits>
#include <utility>

#include <chunkio/error.hpp>

#include "cli/parse_number.hpp"
#include "h5pack/sparse/number_type.hpp"

namespace h5pack {

namespace {

using chunkio::DType;

template <class T, class Integer>
bool holds(Integer value) noexcept {
  if constexpr (std::is_floating_point_v<T>) {
    const auto stored = static_cast<T>(value);
    // 2^63 and 2^64 themselves would not convert back.
    return stored < static_cast<T>(std::numeric_limits<Integer>::max()) &&
           static_cast<Integer>(stored) == value;
  } else {
    return std::in_range<T>(value);
  }
}

/// \param value  int64 or uint64.
template <class Integer>
std::optional<std::uint64_t> encode_exactly(Integer value, DType dtype) noexcept {
  if (!with_type(dtype, [&](auto type) { return holds<decltype(type)>(value); })) {
    return std::nullopt;
  }
  return is_float(dtype) ? std::bit_cast<std::uint64_t>(static_cast<double>(value))
                         : static_cast<std::uint64_t>(value);
}

}  // namespace

bool is_float(DType dtype) noexcept { return dtype == DType::float32 || dtype == DType::float64; }

std::optional<std::uint64_t> encode_integer(std::int64_t value, DType dtype) noexcept {
  return encode_exactly(value, dtype);
}

std::optional<std::uint64_t> encode_unsigned(std::uint64_t value, DType dtype) noexcept {
  return encode_exactly(value, dtype);
}

std::optional<std::uint64_t> encode_real(double value, DType dtype) noexcept {
  if (!is_float(dtype)) {
    // Written so that NaN is refused, too.
    if (std::trunc(value) != value) return std::nullopt;
    if (std::abs(value) < 0x1p63) return encode_integer(static_cast<std::int64_t>(value), dtype);
    if (value > 0 && value < 0x1p64) {
      return encode_unsigned(static_cast<std::uint64_t>(value), dtype);
    }
    return std::nullopt;
  }
  if (dtype == DType::float32 && std::isfinite(value) && std::isinf(static_cast<float>(value))) {
    return std::nullopt;
  }
  return std::bit_cast<std::uint64_t>(value);
}

NumberText encode_text(std::string_view text, bool negated, DType dtype) noexcept {
  if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
  // Most are these.
  if (const auto integer = cli::parse_number<std::int64_t>(text)) {
    if (!negated) return {true, encode_integer(*integer, dtype)};
    if (*integer != INT64_MIN) return {true, encode_integer(-*integer, dtype)};
    return {true, encode_unsigned(std::uint64_t{1} << 63, dtype)};
  }
  const auto large = cli::parse_number<std::uint64_t>(text);
  if (large && !is_float(dtype)) {
    if (!negated) return {true, encode_unsigned(*large, dtype)};
    const bool fits = *large == std::uint64_t{1} << 63;
    return {true, fits ? encode_integer(INT64_MIN, dtype) : std::nullopt};
  }
  double real = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, status] = std::from_chars(text.data(), end, real);
  if (stop != end || text.empty()) return {};
  if (status == std::errc::result_out_of_range) return {true, std::nullopt};
  if (status != std::errc()) return {};
  return {true, encode_real(negated ? -real : real, dtype)};
}

std::optional<std::uint64_t> add(std::uint64_t a, std::uint64_t b, DType dtype) noexcept {
  if (is_float(dtype)) {
    return encode_real(std::bit_cast<double>(a) + std::bit_cast<double>(b), dtype);
  }
  if (dtype == DType::uint64) {
    std::uint64_t sum = 0;
    return __builtin_add_overflow(a, b, &sum) ? std::nullopt : std::optional(sum);
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
      } else if constexpr (std::is_unsigned_v<T>) {
        bits = encode_unsigned(number, to);
      } else {
        bits = encode_integer(number, to);
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
