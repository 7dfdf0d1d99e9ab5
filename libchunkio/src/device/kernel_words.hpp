/// How threads of the kernel move bytes: where a GPU has an instruction of its own, and a CPU, on
/// which tests run the same threads, has none.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/host_device.hpp"
#include "device/kernel_plan.hpp"

#ifdef __CUDACC__
#include <cuda_pipeline_primitives.h>
#endif

#ifdef __CUDA_ARCH__
#define CHUNKIO_UNROLL _Pragma("unroll")
#define CHUNKIO_UNROLL_BY_4 _Pragma("unroll 4")
#define CHUNKIO_NO_UNROLL _Pragma("unroll 1")
#else
#define CHUNKIO_UNROLL
#define CHUNKIO_UNROLL_BY_4
#define CHUNKIO_NO_UNROLL
#endif

namespace chunkio::device {

/// Bytes from an address to the multiple of kWordBytes before it.
CHUNKIO_HOST_DEVICE inline int bytes_into_word(const void* address) noexcept {
  return static_cast<int>(reinterpret_cast<std::uintptr_t>(address) % kWordBytes);
}

/// Copies a word from device to shared memory; when the thread has called finish_copies(), it is
/// there. So a thread asks for all of its words before it waits for one, and needs no registers for
/// them. \pre both addresses are aligned.
CHUNKIO_HOST_DEVICE inline void copy_word(std::byte* to, std::uintptr_t from) noexcept {
#ifdef __CUDA_ARCH__
  __pipeline_memcpy_async(to, reinterpret_cast<const void*>(from), kWordBytes);
#else
  assert(bytes_into_word(to) == 0 && from % kWordBytes == 0);
  std::memcpy(to, reinterpret_cast<const void*>(from), kWordBytes);
#endif
}

CHUNKIO_HOST_DEVICE inline void finish_copies() noexcept {
#ifdef __CUDA_ARCH__
  __pipeline_commit();
  __pipeline_wait_prior(0);
#endif
}

struct alignas(kWordBytes) Word {
  std::uint32_t parts[4] = {};
};

/// Reads a word of device memory that nobody writes meanwhile. \pre `from` is aligned.
CHUNKIO_HOST_DEVICE inline Word load_word(std::uintptr_t from) noexcept {
#ifdef __CUDA_ARCH__
  const uint4 word = __ldg(reinterpret_cast<const uint4*>(from));
  return {{word.x, word.y, word.z, word.w}};
#else
  assert(from % kWordBytes == 0);
  Word word;
  std::memcpy(&word, reinterpret_cast<const void*>(from), kWordBytes);
  return word;
#endif
}

/// Writes a word to device memory, in one instruction: left to itself the compiler makes four of
/// it, of 4 bytes each. \pre `to` is aligned, `values` are as many as fill it.
template <class T>
CHUNKIO_HOST_DEVICE void store_word(T* to, const T* values) noexcept {
#ifdef __CUDA_ARCH__
  std::uint32_t parts[4];
  memcpy(parts, values, sizeof parts);
  asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(parts[0]), "r"(parts[1]),
               "r"(parts[2]), "r"(parts[3])
               : "memory");
#else
  assert(bytes_into_word(to) == 0);
  std::memcpy(to, values, kWordBytes);
#endif
}

/// `count` bytes of shared memory, from byte `at` on, four a number: read in words of 4 or 8 bytes.
/// \pre `memory` is aligned to a word; count % 4 == 0.
template <int count>
CHUNKIO_HOST_DEVICE void load_bytes(const std::byte* memory, int at,
                                    std::uint32_t* fours) noexcept {
#ifdef __CUDA_ARCH__
  if constexpr (count % 8 == 0) {
    if (at % 8 == 0) {
      CHUNKIO_UNROLL
      for (int i = 0; i < count / 8; ++i) {
        const uint2 two = reinterpret_cast<const uint2*>(memory + at)[i];
        fours[2 * i] = two.x;
        fours[2 * i + 1] = two.y;
      }
      return;
    }
  }
  const auto* const words = reinterpret_cast<const std::uint32_t*>(memory + at / 4 * 4);
  const unsigned shift = static_cast<unsigned>(at % 4) * 8;
  std::uint32_t low = words[0];
  CHUNKIO_UNROLL
  for (int i = 0; i < count / 4; ++i) {
    const std::uint32_t high = i + 1 < count / 4 || shift != 0 ? words[i + 1] : 0;
    fours[i] = __funnelshift_r(low, high, shift);
    low = high;
  }
#else
  std::memcpy(fours, memory + at, count);
#endif
}

}  // namespace chunkio::device
