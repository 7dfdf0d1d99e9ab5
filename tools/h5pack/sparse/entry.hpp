/// The entries of a sparse matrix on their way, and the numbers in them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <chunkio/tensor.hpp>

namespace h5pack {

/// Row and column of a matrix lie below this.
inline constexpr std::int64_t kMaxAxis = std::int64_t{1} << 32;

struct Entry {
  std::uint32_t row = 0;
  std::uint32_t column = 0;
  /// Holds a uint64 for a matrix of these, an int64 for other integers, a double for floats.
  std::uint64_t bits = 0;
};
static_assert(sizeof(Entry) == 16);

/// Takes the next entries, in the order of the source.
using EntrySink = std::function<void(std::span<const Entry>)>;

/// What becomes of several entries of one place.
enum class Duplicates { sum, last, fail };

[[nodiscard]] bool is_float(chunkio::DType dtype) noexcept;

/// The bits of a number that is to be stored as `dtype`; absent if that cannot hold it: an integer
/// is kept exactly, a fraction of a float is rounded, and nothing becomes infinite. Pure.
[[nodiscard]] std::optional<std::uint64_t> encode_integer(std::int64_t value,
                                                          chunkio::DType dtype) noexcept;
[[nodiscard]] std::optional<std::uint64_t> encode_unsigned(std::uint64_t value,
                                                           chunkio::DType dtype) noexcept;
[[nodiscard]] std::optional<std::uint64_t> encode_real(double value, chunkio::DType dtype) noexcept;

struct NumberText {
  bool is_number = false;
  std::optional<std::uint64_t> bits = {};  ///< Absent: `dtype` cannot hold it.
};
/// A number as it is written, a plus sign included. Pure. \param negated  it has a minus sign more.
[[nodiscard]] NumberText encode_text(std::string_view text, bool negated,
                                     chunkio::DType dtype) noexcept;

/// The bits of the sum of two; absent if `dtype` cannot hold it. Pure.
[[nodiscard]] std::optional<std::uint64_t> add(std::uint64_t a, std::uint64_t b,
                                               chunkio::DType dtype) noexcept;

/// Writes a number as it is stored, size_of(dtype) bytes. \pre `dtype` holds it.
void store(std::uint64_t bits, chunkio::DType dtype, std::byte* to) noexcept;

/// Encodes an array of numbers. \param numbers  out.size() of type `from`, native byte order.
/// \param place  where the number of that index is: "entry 5 of FILE".
/// \throws Error corrupt_data naming the place of the first that `to` cannot hold.
void encode(std::span<const std::byte> numbers, chunkio::DType from, chunkio::DType to,
            std::span<std::uint64_t> out, const std::function<std::string(std::size_t)>& place);

/// "3.5 does not fit int32; ..." of a number that could not be encoded.
[[nodiscard]] std::string misfit(const std::string& number, chunkio::DType dtype);

}  // namespace h5pack
