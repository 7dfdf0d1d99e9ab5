/// Writes an array of which few elements are not zero: each cache line once, bypassing the cache.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace chunkio::device {

/// Zeroing an array and writing the others into it afterwards would fetch a line for each of them.
template <class T>
class DenseLines {
 public:
  /// \param begin, end  elements of `array` that are written.
  DenseLines(T* array, std::int64_t begin, std::int64_t end)
      : begin_(array + begin),
        end_(array + end),
        array_(array),
        line_(reinterpret_cast<std::byte*>(reinterpret_cast<std::uintptr_t>(begin_) / kLine *
                                           kLine)) {}

  /// \pre `at` is behind that of the last call.
  void put(std::int64_t at, T value) noexcept {
    auto* const target = reinterpret_cast<std::byte*>(array_ + at);
    if (target - line_ >= kLine) advance(target);
    std::memcpy(elements_.data() + (target - line_), &value, sizeof(T));
  }
  /// Writes what is left. Call base::store_fence() before telling another thread.
  void finish() noexcept {
    const auto* const end = reinterpret_cast<std::byte*>(end_);
    while (line_ < end) write_line();
  }

 private:
  static constexpr std::ptrdiff_t kLine = 64;

  /// Goes on to the line of `target`.
  void advance(const std::byte* target) noexcept {
    write_line();
    while (target - line_ >= kLine) {
      stream(line_, zeros());
      line_ += kLine;
    }
  }

  static const std::byte* zeros() noexcept {
    alignas(kLine) static constexpr std::array<std::byte, kLine> kZeros{};
    return kZeros.data();
  }

  /// Writes what was put into the line, and begins the next.
  void write_line() noexcept {
    auto* const begin = reinterpret_cast<std::byte*>(begin_);
    auto* const end = reinterpret_cast<std::byte*>(end_);
    if (line_ >= begin && end - line_ >= kLine) {
      stream(line_, elements_.data());
    } else if (begin < end) {  // others write the rest
      std::byte* const from = std::max(line_, begin);
      const std::byte* const to = std::min(line_ + kLine, end);
      if (from < to) {
        std::memcpy(from, elements_.data() + (from - line_), static_cast<std::size_t>(to - from));
      }
    }
    elements_.fill(std::byte{0});
    line_ += kLine;
  }

  static void stream(std::byte* target, const std::byte* source) noexcept {
#if defined(__SSE2__)
    const auto* const from = reinterpret_cast<const __m128i*>(source);
    auto* const to = reinterpret_cast<__m128i*>(target);
    for (int i = 0; i < 4; ++i) _mm_stream_si128(to + i, _mm_load_si128(from + i));
#else
    std::memcpy(target, source, kLine);
#endif
  }

  T* begin_;
  T* end_;
  T* array_;
  std::byte* line_;  // the line that elements_ become
  alignas(kLine) std::array<std::byte, kLine> elements_{};
};

}  // namespace chunkio::device
