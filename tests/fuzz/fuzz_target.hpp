/// What each fuzzing program has: a function that takes any bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace chunkio::fuzz {

/// No input is longer.
inline constexpr std::size_t kMaxInput = std::size_t{1} << 16;

/// Gives them to what is tested, and catches the errors that it may throw. Whatever else happens is
/// a finding.
/// \returns whether they were accepted, as an input must be that changes begin with.
bool run(std::span<const std::byte> input);

/// Changes an input of `size` bytes in `buffer`, which may grow to all of it: numbers become others
/// that matter to readers of lengths and addresses, runs of bytes move, the end is cut.
/// \returns the new size.
[[nodiscard]] std::size_t mutate(std::span<std::byte> buffer, std::size_t size, std::uint64_t seed);

/// Takes numbers off the front of an input; they are 0 behind its end.
class InputReader {
 public:
  explicit InputReader(std::span<const std::byte> input) : rest_(input) {}

  template <class Number>
  Number take() {
    Number number{};
    for (std::size_t i = 0; i < sizeof number && !rest_.empty(); ++i) {
      reinterpret_cast<std::byte*>(&number)[i] = rest_.front();
      rest_ = rest_.subspan(1);
    }
    return number;
  }
  [[nodiscard]] std::span<const std::byte> rest() const noexcept { return rest_; }

 private:
  std::span<const std::byte> rest_;
};

}  // namespace chunkio::fuzz
