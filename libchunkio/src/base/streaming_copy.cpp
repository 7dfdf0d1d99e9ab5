#include "base/streaming_copy.hpp"

#include <cstdint>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace chunkio::base {

#if defined(__SSE2__)

void streaming_copy(std::byte* target, const std::byte* source, std::size_t size) noexcept {
  // Whole cache lines only: flushing a half-full write-combining buffer costs a read as well.
  constexpr std::size_t kLine = 64;
  // The hardware's own prefetch stops at pages of 4 KiB, which is what a mapped file consists of;
  // and rows mostly follow each other, so what lies behind this one is wanted next. Asking for
  // bytes that are not there is harmless.
  constexpr std::size_t kAhead = 1024;
  const std::size_t head =
      (kLine - (reinterpret_cast<std::uintptr_t>(target) & (kLine - 1))) & (kLine - 1);
  if (size < head + kLine) {
    std::memcpy(target, source, size);
    return;
  }
  std::memcpy(target, source, head);
  target += head;
  source += head;
  size -= head;
  for (; size >= kLine; size -= kLine, target += kLine, source += kLine) {
    const auto* from = reinterpret_cast<const __m128i*>(source);
    auto* to = reinterpret_cast<__m128i*>(target);
    _mm_prefetch(reinterpret_cast<const char*>(source) + kAhead, _MM_HINT_NTA);
    const __m128i a = _mm_loadu_si128(from);
    const __m128i b = _mm_loadu_si128(from + 1);
    const __m128i c = _mm_loadu_si128(from + 2);
    const __m128i d = _mm_loadu_si128(from + 3);
    _mm_stream_si128(to, a);
    _mm_stream_si128(to + 1, b);
    _mm_stream_si128(to + 2, c);
    _mm_stream_si128(to + 3, d);
  }
  std::memcpy(target, source, size);
}

void store_fence() noexcept { _mm_sfence(); }

#else

void streaming_copy(std::byte* target, const std::byte* source, std::size_t size) noexcept {
  std::memcpy(target, source, size);
}

void store_fence() noexcept {}

#endif

void copy(std::byte* target, const std::byte* source, std::size_t size, Stores stores) noexcept {
  if (stores == Stores::streaming) {
    streaming_copy(target, source, size);
  } else {
    std::memcpy(target, source, size);
  }
}

}  // namespace chunkio::base
