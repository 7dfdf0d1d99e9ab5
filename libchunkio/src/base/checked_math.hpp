/// Arithmetic on numbers that came from a file: overflow is an answer, not undefined behaviour.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <span>

namespace chunkio::base {

template <std::integral T>
[[nodiscard]] constexpr std::optional<T> checked_multiply(T a, T b) noexcept {
  T result{};
  if (__builtin_mul_overflow(a, b, &result)) return std::nullopt;
  return result;
}

template <std::integral T>
[[nodiscard]] constexpr std::optional<T> checked_add(T a, T b) noexcept {
  T result{};
  if (__builtin_add_overflow(a, b, &result)) return std::nullopt;
  return result;
}

/// Product of all factors, or nothing if it does not fit. HDF5 itself lets such products wrap to 0.
template <std::integral T>
[[nodiscard]] constexpr std::optional<T> checked_product(std::span<const T> factors) noexcept {
  std::optional<T> product = T{1};
  for (const T factor : factors) {
    product = checked_multiply(*product, factor);
    if (!product) return std::nullopt;
  }
  return product;
}

/// ceil(a / b) for a >= 0, b > 0.
[[nodiscard]] constexpr std::int64_t ceil_divide(std::int64_t a, std::int64_t b) noexcept {
  return a / b + (a % b != 0 ? 1 : 0);
}

}  // namespace chunkio::base
