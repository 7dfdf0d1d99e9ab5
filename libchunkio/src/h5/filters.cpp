#include "h5/filters.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdio>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace chunkio::h5 {
namespace {

constexpr std::size_t kChecksumBytes = 4;

/// The most that the filter makes of `size` bytes.
std::size_t max_filtered_bytes(int filter, std::size_t size) noexcept {
  if (filter == FilterStep::kFletcher32) return size + kChecksumBytes;
  return Decompressor::knows(filter) ? Decompressor::max_stored_bytes(filter, size) : size;
}

bool is_skipped(std::uint32_t mask, std::size_t filter) noexcept {
  return filter < 32 && ((mask >> filter) & 1) != 0;
}

std::string hexadecimal(std::uint32_t value) {
  std::array<char, 11> text{};
  std::snprintf(text.data(), text.size(), "0x%08x", value);
  return text.data();
}

/// Each byte of a half word exchanged with the other one.
std::uint32_t swap_halves(std::uint32_t sum) noexcept {
  return ((sum & 0x00ff00ffU) << 8) | ((sum & 0xff00ff00U) >> 8);
}

/// The bytes before the checksum that ends `bytes`.
/// \throws DamagedChunkError if it is not theirs.
std::span<const std::byte> check_fletcher32(std::span<const std::byte> bytes) {
  if (bytes.size() < kChecksumBytes) {
    throw DamagedChunkError("it has " + std::to_string(bytes.size()) +
                            " bytes, too few for its fletcher32 checksum");
  }
  const auto data = bytes.first(bytes.size() - kChecksumBytes);
  std::uint32_t stored = 0;
  for (std::size_t i = kChecksumBytes; i-- > 0;) {
    stored = stored << 8 | std::to_integer<std::uint32_t>(bytes[data.size() + i]);
  }
  const std::uint32_t computed = fletcher32(data);
  // Before version 1.6.3, HDF5 on little-endian machines summed words in their byte order.
  if (stored != computed && stored != swap_halves(computed)) {
    throw DamagedChunkError("its fletcher32 checksum is " + hexadecimal(computed) + " instead of " +
                            hexadecimal(stored));
  }
  return data;
}

#if defined(__SSE2__)

/// Interleaves kSize planes of `count` bytes; count is a multiple of 16.
///
/// Unpacking two registers interleaves their bytes. Pairing plane i with plane i + kSize/2,
/// log2(kSize) times, brings byte 0 ... kSize-1 of one element next to each other.
template <std::size_t kSize>
void interleave(const std::byte* in, std::size_t plane_bytes, std::size_t count,
                std::byte* out) noexcept {
  for (std::size_t i = 0; i < count; i += 16) {
    __m128i lanes[kSize];
    for (std::size_t plane = 0; plane < kSize; ++plane) {
      lanes[plane] =
          _mm_loadu_si128(reinterpret_cast<const __m128i*>(in + plane * plane_bytes + i));
    }
    for (std::size_t round = kSize; round > 1; round /= 2) {
      __m128i next[kSize];
      for (std::size_t pair = 0; pair < kSize / 2; ++pair) {
        next[2 * pair] = _mm_unpacklo_epi8(lanes[pair], lanes[pair + kSize / 2]);
        next[2 * pair + 1] = _mm_unpackhi_epi8(lanes[pair], lanes[pair + kSize / 2]);
      }
      std::copy(next, next + kSize, lanes);
    }
    for (std::size_t part = 0; part < kSize; ++part) {
      _mm_storeu_si128(reinterpret_cast<__m128i*>(out + i * kSize + part * 16), lanes[part]);
    }
  }
}

#endif

/// Elements [first, count) one byte at a time, in blocks that stay in the first-level cache.
void unshuffle_from(std::size_t first, const std::byte* in, std::size_t count,
                    std::size_t element_bytes, std::byte* out) noexcept {
  constexpr std::size_t kBlock = 512;
  for (std::size_t begin = first; begin < count; begin += kBlock) {
    const std::size_t end = std::min(begin + kBlock, count);
    for (std::size_t plane = 0; plane < element_bytes; ++plane) {
      for (std::size_t i = begin; i < end; ++i) {
        out[i * element_bytes + plane] = in[plane * count + i];
      }
    }
  }
}

void copy_fraction(std::span<const std::byte> in, std::size_t element_bytes,
                   std::span<std::byte> out) noexcept {
  const std::size_t fraction = in.size() % element_bytes;
  if (fraction == 0) return;
  std::memcpy(out.data() + out.size() - fraction, in.data() + in.size() - fraction, fraction);
}

}  // namespace

const FilterStep* first_foreign_filter(std::span<const FilterStep> filters) noexcept {
  const auto foreign = std::find_if(filters.begin(), filters.end(), [](const FilterStep& filter) {
    if (filter.id == FilterStep::kShuffle)
      return filter.values.size() != 1 || filter.values[0] == 0;
    return filter.id != FilterStep::kFletcher32 && !Decompressor::knows(filter.id);
  });
  return foreign == filters.end() ? nullptr : &*foreign;
}

DamagedChunkError wrong_unfiltered_size(std::int64_t stored_bytes, std::int64_t raw_bytes) {
  return DamagedChunkError("it takes " + std::to_string(stored_bytes) +
                           " bytes in the file instead of " + std::to_string(raw_bytes));
}

ChunkDecoder::ChunkDecoder(std::span<const FilterStep> filters, std::size_t raw_bytes)
    : raw_bytes_(raw_bytes), max_stored_bytes_(raw_bytes), decompressor_(filters, raw_bytes) {
  for (const FilterStep& filter : filters) {
    steps_.push_back({filter.id, filter.id == FilterStep::kShuffle ? filter.values[0] : 0});
    max_stored_bytes_ = max_filtered_bytes(filter.id, max_stored_bytes_);
  }
}

void ChunkDecoder::check_stored_bytes(std::size_t size) const {
  if (size <= max_stored_bytes_) return;
  throw DamagedChunkError("it takes " + std::to_string(size) +
                          " bytes in the file, more than its " + std::to_string(raw_bytes_) +
                          " can become");
}

std::span<const std::byte> ChunkDecoder::decode(std::span<const std::byte> stored,
                                                std::uint32_t mask, std::span<std::byte> home,
                                                std::span<std::byte> other) {
  check_stored_bytes(stored.size());
  // Where the data is now is never where the next step writes.
  std::span<std::byte> target = other;
  std::span<std::byte> next = home;
  std::span<const std::byte> data = stored;
  for (std::size_t filter = steps_.size(); filter-- > 0;) {
    if (is_skipped(mask, filter)) continue;
    const Step& step = steps_[filter];
    if (step.id == FilterStep::kFletcher32) {
      data = check_fletcher32(data);
    } else if (Decompressor::knows(step.id)) {
      // What goes into a filter is the chunk and what the filters before it add.
      std::size_t max_bytes = raw_bytes_;
      for (std::size_t before = 0; before < filter; ++before) {
        if (is_skipped(mask, before)) continue;
        max_bytes = max_filtered_bytes(steps_[before].id, max_bytes);
      }
      data = target.first(decompressor_.undo(step.id, data, target.first(max_bytes)));
      std::swap(target, next);
    } else if (step.element_bytes > 1 && data.size() / step.element_bytes > 1) {
      unshuffle(data, step.element_bytes, target.first(data.size()));
      data = target.first(data.size());
      std::swap(target, next);
    }
  }
  if (data.size() != raw_bytes_) {
    throw DamagedChunkError("it decodes to " + std::to_string(data.size()) + " bytes instead of " +
                            std::to_string(raw_bytes_));
  }
  return data;
}

std::uint32_t fletcher32(std::span<const std::byte> bytes) noexcept {
  // Problem. For words w_0 ... w_(n-1): sum1 = sum of w_i, sum2 = sum of (n - i) w_i, both modulo
  // 65535 and, unless all words are 0, in 1 ... 65535 (end-around carries never give 0).
  // Words go to kLanes lanes in turn, so that the additions are independent. After K rounds lane l
  // has a = sum of its words and b = sum of (K - round) * word; word l of a round has the weight
  // kLanes * (K - round) - l, so sum2 grows by kLanes * b - l * a for each lane.
  // Words are taken in this machine's order. Exchanging the bytes of a word multiplies it by 256
  // modulo 65535, and both sums are linear: one multiplication at the end makes up for it.
  constexpr std::size_t kLanes = 16;
  constexpr std::size_t kRounds = 256;  // b stays below 2^32: 256 * 257 / 2 * 65535 < 2^31.01
  constexpr std::uint64_t kModulus = 65535;
  std::uint64_t sum1 = 0;
  std::uint64_t sum2 = 0;
  bool all_zero = true;
  const std::byte* data = bytes.data();
  std::size_t words = bytes.size() / 2;
  while (words >= kLanes) {
    const std::size_t rounds = std::min(words / kLanes, kRounds);
    std::array<std::uint32_t, kLanes> a{};
    std::array<std::uint32_t, kLanes> b{};
    for (std::size_t round = 0; round < rounds; ++round) {
      std::array<std::uint16_t, kLanes> lane;
      std::memcpy(lane.data(), data, sizeof lane);
      data += sizeof lane;
      for (std::size_t l = 0; l < kLanes; ++l) a[l] += lane[l];
      for (std::size_t l = 0; l < kLanes; ++l) b[l] += a[l];
    }
    const std::size_t count = rounds * kLanes;
    sum2 += count * sum1;
    for (std::size_t l = 0; l < kLanes; ++l) {
      all_zero = all_zero && a[l] == 0;
      sum1 += a[l];
      sum2 += kLanes * std::uint64_t{b[l]} - l * std::uint64_t{a[l]};
    }
    sum1 %= kModulus;
    sum2 %= kModulus;
    words -= count;
  }
  const auto add = [&](std::uint16_t word) {
    all_zero = all_zero && word == 0;
    sum1 += word;
    sum2 += sum1;
  };
  for (; words > 0; --words, data += 2) {
    std::uint16_t word = 0;
    std::memcpy(&word, data, 2);
    add(word);
  }
  if (bytes.size() % 2 != 0) {
    const std::array<std::byte, 2> last{bytes.back(), std::byte{0}};
    add(std::bit_cast<std::uint16_t>(last));
  }
  if (all_zero) return 0;
  const std::uint64_t factor = std::endian::native == std::endian::little ? 256 : 1;
  const auto reduce = [&](std::uint64_t sum) {
    const std::uint64_t residue = sum % kModulus * factor % kModulus;
    return static_cast<std::uint32_t>(residue == 0 ? kModulus : residue);
  };
  return reduce(sum2) << 16 | reduce(sum1);
}

void unshuffle_portable(std::span<const std::byte> in, std::size_t element_bytes,
                        std::span<std::byte> out) noexcept {
  unshuffle_from(0, in.data(), in.size() / element_bytes, element_bytes, out.data());
  copy_fraction(in, element_bytes, out);
}

void unshuffle(std::span<const std::byte> in, std::size_t element_bytes,
               std::span<std::byte> out) noexcept {
#if defined(__SSE2__)
  const std::size_t count = in.size() / element_bytes;
  const std::size_t whole = count / 16 * 16;
  switch (element_bytes) {
    case 2:
      interleave<2>(in.data(), count, whole, out.data());
      break;
    case 4:
      interleave<4>(in.data(), count, whole, out.data());
      break;
    case 8:
      interleave<8>(in.data(), count, whole, out.data());
      break;
    default:
      unshuffle_portable(in, element_bytes, out);
      return;
  }
  unshuffle_from(whole, in.data(), count, element_bytes, out.data());
  copy_fraction(in, element_bytes, out);
#else
  unshuffle_portable(in, element_bytes, out);
#endif
}

}  // namespace chunkio::h5
