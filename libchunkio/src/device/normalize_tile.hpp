/// What each thread of the kernel does, as functions of its number and that of its block: compiled
/// for the device, where the kernel calls them, and for the CPU, where a test does.
///
/// A block makes a tile, some rows of one output image. It brings the bytes of the image that
/// these show into shared memory, in words of 16 bytes whatever their alignment (`stage`, by all
/// threads), and then writes words of 16 bytes of the output (`write`, by all threads), each thread
/// one after the other: what crop, flip and axis order scatter is scattered in shared memory only,
/// and device memory sees whole words on both sides. Between the two is a barrier. Within one of
/// them no thread reads what another one writes, and no two write the same byte.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include <chunkio/tensor.hpp>

#include "device/gpu.hpp"
#include "device/kernel_plan.hpp"
#include "device/kernel_words.hpp"
#include "device/labels_step.hpp"
#include "device/value.hpp"

namespace chunkio::device {

static_assert(kKernelSlack >= std::size_t{kWordBytes}, "what lies behind images is read");

/// The rows of the output that a block makes, and the pixels of the image behind them, which lie
/// in shared memory as they lie in device memory, modulo the size of a word.
struct Tile {
  std::int64_t sample;   ///< Of the batch.
  std::int32_t number;   ///< Of the tile in its image.
  std::int32_t row;      ///< Of the images.
  std::int32_t first_y;  ///< Rows [first_y, first_y + num_rows) of the output are made.
  std::int32_t num_rows;
  std::int32_t top;   ///< Row of the image that the first of them shows: negative above it.
  std::int32_t left;  ///< Column, likewise.
  bool flipped;
  bool whole;                ///< Whole rows of the image, which are staged one behind the other.
  std::uintptr_t image;      ///< In device memory.
  std::int64_t plane_bytes;  ///< There.
  std::byte* staged;         ///< In shared memory.

  /// Address in device memory of the first pixel of a row, which may be in the padding, outside.
  CHUNKIO_HOST_DEVICE std::uintptr_t source(const KernelPlan& plan, int plane, int y) const {
    const std::int64_t pixel = (std::int64_t{top} + y) * plan.crop.image_width + left;
    return image + static_cast<std::uintptr_t>(plane * plane_bytes + pixel * plan.pixel_bytes);
  }
  /// How far it lies behind a whole word. In 32 bits, which cost less and of which four count.
  CHUNKIO_HOST_DEVICE int misaligned(const KernelPlan& plan, int plane, int y) const {
    const auto pixel =
        static_cast<std::uint32_t>(top + y) * static_cast<std::uint32_t>(plan.crop.image_width) +
        static_cast<std::uint32_t>(left);
    return static_cast<int>(
        (static_cast<std::uint32_t>(image) +
         static_cast<std::uint32_t>(plane) * static_cast<std::uint32_t>(plane_bytes) +
         pixel * static_cast<std::uint32_t>(plan.pixel_bytes)) %
        kWordBytes);
  }
  CHUNKIO_HOST_DEVICE int plane_words(const KernelPlan& plan) const {
    return num_rows * plan.row_words;
  }
  /// Where the first pixel of a row lies behind `staged`.
  CHUNKIO_HOST_DEVICE int begin(const KernelPlan& plan, int plane, int y) const {
    const int words = plane * plane_words(plan);
    return whole ? words * kWordBytes + misaligned(plan, plane, 0) +
                       y * plan.crop.width * plan.pixel_bytes
                 : (words + y * plan.row_words) * kWordBytes + misaligned(plan, plane, y);
  }
};

/// What block `block` of work.num_rows * plan.tiles makes.
/// \param staged  shared_bytes(plan) bytes of shared memory, aligned to a word.
CHUNKIO_HOST_DEVICE inline Tile tile_of(const KernelPlan& plan, int channels, const BatchWork& work,
                                        unsigned block, std::byte* staged) {
  const CropPlan& sizes = plan.crop;
  const bool single = plan.tiles == 1;  // Then no division is needed, which takes long.
  const std::int64_t sample = single ? block : block / static_cast<unsigned>(plan.tiles);
  const int number = single ? 0 : static_cast<int>(block % static_cast<unsigned>(plan.tiles));
  const RowTask task = work.tasks[sample];
  const int first_y = number * plan.tile_rows;
  const int num_rows = std::min(plan.tile_rows, sizes.height - first_y);
  const int top = task.crop.top + first_y;
  const std::int64_t pixels = std::int64_t{sizes.image_height} * sizes.image_width;
  const std::int64_t image = plan.in_order ? sample : task.row;
  return {.sample = sample,
          .number = number,
          .row = task.row,
          .first_y = first_y,
          .num_rows = num_rows,
          .top = top,
          .left = task.crop.left,
          .flipped = task.crop.flipped,
          .whole = task.crop.left == 0 && sizes.width == sizes.image_width && top >= 0 &&
                   top + num_rows <= sizes.image_height,
          .image = reinterpret_cast<std::uintptr_t>(work.images) +
                   static_cast<std::uintptr_t>(image * pixels * channels),
          .plane_bytes = pixels,
          .staged = staged};
}

/// Of four bytes, of which the first one is byte `at`, those of [from, to); the others are 0.
CHUNKIO_HOST_DEVICE inline std::uint32_t bytes_between(std::uint32_t four, int at, int from,
                                                       int to) noexcept {
  const int skip = std::min(std::max(from - at, 0), 4);
  const int keep = std::min(std::max(to - at, 0), 4);
  const auto below = [](int n) { return n == 4 ? ~0U : (1U << (8 * n)) - 1; };
  return four & below(keep) & ~below(skip);
}

/// number / divisor, by multiplying; exact for numbers as small as those of a tile.
/// \param inverse  2^64 / divisor, rounded up.
CHUNKIO_HOST_DEVICE inline int quotient(int number, int divisor, std::uint64_t inverse) noexcept {
  if (divisor == 1) return number;
  const auto divided = static_cast<std::uint64_t>(number);
#ifdef __CUDA_ARCH__
  return static_cast<int>(__umul64hi(inverse, divided));
#else
  __extension__ using Wide = unsigned __int128;
  return static_cast<int>(Wide{inverse} * divided >> 64);
#endif
}

/// The share of a thread in bringing a tile's pixels to shared memory.
CHUNKIO_HOST_DEVICE inline void stage(const KernelPlan& plan, const Tile& tile, int thread) {
  const int bytes = plan.crop.width * plan.pixel_bytes;
  if (tile.whole) {
    for (int plane = 0; plane < plan.planes; ++plane) {
      const int misaligned = tile.misaligned(plan, plane, 0);
      const std::uintptr_t from = tile.source(plan, plane, 0) - static_cast<unsigned>(misaligned);
      std::byte* const to = tile.staged + plane * tile.plane_words(plan) * kWordBytes;
      const int words = (misaligned + tile.num_rows * bytes + kWordBytes - 1) / kWordBytes;
      CHUNKIO_UNROLL_BY_4
      for (int word = thread; word < words; word += plan.threads) {
        copy_word(to + word * kWordBytes, from + static_cast<unsigned>(word * kWordBytes));
      }
    }
    finish_copies();
    return;
  }
  // Rows that begin anywhere, with zeros where the image has no pixel.
  const bool padded = tile.left < 0 || tile.left + plan.crop.width > plan.crop.image_width;
  CHUNKIO_UNROLL_BY_4
  for (int i = thread; i < plan.planes * tile.plane_words(plan); i += plan.threads) {
    const int r = quotient(i, plan.row_words, plan.row_words_inverse);
    const int plane = plan.planes == 1 ? 0 : r / tile.num_rows;
    const int y = r - plane * tile.num_rows;
    const int at = (i - r * plan.row_words) * kWordBytes;
    const int misaligned = tile.misaligned(plan, plane, y);
    if (at >= misaligned + bytes) continue;
    const bool inside = tile.top + y >= 0 && tile.top + y < plan.crop.image_height;
    // Bytes of the staged row that the image has.
    const int begin = misaligned + std::max(-tile.left, 0) * plan.pixel_bytes;
    const int end =
        inside ? misaligned +
                     std::min(plan.crop.image_width - tile.left, plan.crop.width) * plan.pixel_bytes
               : 0;
    const std::uintptr_t from =
        tile.source(plan, plane, y) - static_cast<unsigned>(misaligned) + static_cast<unsigned>(at);
    std::byte* const to = tile.staged + i * kWordBytes;
    const bool shown = at < end && at + kWordBytes > begin;
    if (shown && (!padded || (at >= begin && at + kWordBytes <= end))) {
      copy_word(to, from);
      continue;
    }
    Word value{};
    if (shown) {
      value = load_word(from);
      CHUNKIO_UNROLL
      for (int k = 0; k < 4; ++k) {
        value.parts[k] = bytes_between(value.parts[k], at + 4 * k, begin, end);
      }
    }
    *reinterpret_cast<Word*>(to) = value;
  }
  finish_copies();
}

/// In which row of the tile a pixel of it is.
CHUNKIO_HOST_DEVICE inline int row_of(const KernelPlan& plan, int pixel) noexcept {
  return quotient(pixel, plan.crop.width, plan.width_inverse);
}

template <DType dtype>
CHUNKIO_HOST_DEVICE typename Element<dtype>::Type made_of(std::byte value,
                                                          ChannelScale scale) noexcept {
  return Element<dtype>::of(normalized_fast(static_cast<std::uint32_t>(value), scale));
}

/// An element of the output by itself: channel c of a pixel of the tile.
template <DType dtype>
CHUNKIO_HOST_DEVICE auto element_at(const KernelPlan& plan, const Tile& tile, int pixel, int c) {
  const int y = row_of(plan, pixel);
  const int x = pixel - y * plan.crop.width;
  const int column = tile.flipped ? plan.crop.width - 1 - x : x;
  const bool by_turns = plan.planes == 1;
  const int at =
      tile.begin(plan, by_turns ? 0 : c, y) + column * plan.pixel_bytes + (by_turns ? c : 0);
  return made_of<dtype>(tile.staged[at], plan.channels[c]);
}

/// The share of a thread in writing `count` elements: `word(first, values)` makes the elements of a
/// word, `one(i)` a single one. Whole words, but where they lie partly outside.
template <class T, class MakeWord, class MakeOne>
CHUNKIO_HOST_DEVICE void write_run(const KernelPlan& plan, T* output, int count, int thread,
                                   MakeWord make_word, MakeOne make_one) {
  constexpr int kLanes = kWordBytes / static_cast<int>(sizeof(T));
  const int misaligned = bytes_into_word(output) / static_cast<int>(sizeof(T));
  const int words = (misaligned + count + kLanes - 1) / kLanes;
  for (int word = thread; word < words; word += plan.threads) {
    const int first = word * kLanes - misaligned;
    if (first >= 0 && first + kLanes <= count) {
      T values[static_cast<std::size_t>(kLanes)];
      make_word(first, values);
      store_word(output + first, values);
    } else {
      CHUNKIO_NO_UNROLL
      for (int i = std::max(first, 0); i < std::min(first + kLanes, count); ++i) {
        output[i] = make_one(i);
      }
    }
  }
}

/// The share of a thread in writing pixels of one channel, one behind the other.
template <int channels, DType dtype, class T>
CHUNKIO_HOST_DEVICE void write_plane(const KernelPlan& plan, const Tile& tile, T* output, int c,
                                     int thread) {
  constexpr int kLanes = kWordBytes / static_cast<int>(sizeof(T));
  const ChannelScale scale = plan.channels[c];
  const bool by_turns = plan.planes == 1;
  const int plane = by_turns ? 0 : c;
  const int byte = by_turns ? c : 0;
  const int width = plan.crop.width;
  const std::byte* const begin = tile.staged + tile.begin(plan, plane, 0) + byte;
  const bool in_order = tile.whole && !tile.flipped;
  const auto one = [&](int i) { return element_at<dtype>(plan, tile, i, c); };
  const auto word = [&](int first, T* values) {
    if (in_order && by_turns) {
      CHUNKIO_UNROLL
      for (int i = 0; i < kLanes; ++i) {
        values[i] = made_of<dtype>(begin[(first + i) * channels], scale);
      }
    } else if (in_order) {
      CHUNKIO_UNROLL
      for (int i = 0; i < kLanes; ++i) values[i] = made_of<dtype>(begin[first + i], scale);
    } else if (width >= kLanes) {
      // The end of a row, and the beginning of the next one.
      const int step = tile.flipped ? -plan.pixel_bytes : plan.pixel_bytes;
      const int y = row_of(plan, first);
      const int x = first - y * width;
      const int left = width - x;
      const int start = byte + (tile.flipped ? (width - 1) * plan.pixel_bytes : 0);
      const int here = tile.begin(plan, plane, y) + start + x * step;
      const int next = tile.begin(plan, plane, y + 1) + start - left * step;
      CHUNKIO_UNROLL
      for (int i = 0; i < kLanes; ++i) {
        values[i] = made_of<dtype>(tile.staged[(i < left ? here : next) + i * step], scale);
      }
    } else {
      CHUNKIO_UNROLL
      for (int i = 0; i < kLanes; ++i) values[i] = one(first + i);
    }
  };
  write_run(plan, output, tile.num_rows * width, thread, word, one);
}

/// The same of all channels at once, which the input interleaves: the pixels behind a word of each
/// plane are read once, many bytes at a time.
/// \pre plan.joined. \param plane  elements from one plane of the output to the next.
template <int channels, DType dtype, bool flipped, class T>
CHUNKIO_HOST_DEVICE void write_planes(const KernelPlan& plan, const Tile& tile, T* output,
                                      std::int64_t plane, int thread) {
  constexpr int kLanes = kWordBytes / static_cast<int>(sizeof(T));
  const int width = plan.crop.width;
  const int count = tile.num_rows * width;
  const int misaligned = bytes_into_word(output) / static_cast<int>(sizeof(T));
  const int words = (misaligned + count + kLanes - 1) / kLanes;
  const int begin = tile.begin(plan, 0, 0);
  for (int word = thread; word < words; word += plan.threads) {
    const int first = word * kLanes - misaligned;
    bool joined = first >= 0 && first + kLanes <= count;
    int at = begin + first * channels;
    if (joined && (flipped || !tile.whole)) {
      const int y = row_of(plan, first);
      const int x = first - y * width;
      at = tile.begin(plan, 0, y) + (flipped ? width - x - kLanes : x) * channels;
      joined = x + kLanes <= width;
    }
    if (!joined) {
      CHUNKIO_NO_UNROLL
      for (int i = std::max(first, 0); i < std::min(first + kLanes, count); ++i) {
        CHUNKIO_NO_UNROLL
        for (int c = 0; c < channels; ++c) {
          output[c * plane + i] = element_at<dtype>(plan, tile, i, c);
        }
      }
      continue;
    }
    std::uint32_t fours[static_cast<std::size_t>(kLanes * channels / 4)];
    load_bytes<kLanes * channels>(tile.staged, at, fours);
    CHUNKIO_UNROLL
    for (int c = 0; c < channels; ++c) {
      T values[static_cast<std::size_t>(kLanes)];
      CHUNKIO_UNROLL
      for (int i = 0; i < kLanes; ++i) {
        const int pixel = flipped ? kLanes - 1 - i : i;
        values[i] =
            Element<dtype>::of(normalized_byte(fours, pixel * channels + c, plan.channels[c]));
      }
      store_word(output + c * plane + first, values);
    }
  }
}

/// The share of a thread in writing pixels with all their channels.
template <int channels, DType dtype, class T>
CHUNKIO_HOST_DEVICE void write_pixels(const KernelPlan& plan, const Tile& tile, T* output,
                                      int thread) {
  constexpr int kLanes = kWordBytes / static_cast<int>(sizeof(T));
  const int width = plan.crop.width;
  const bool by_turns = plan.planes == 1;
  const int begin = tile.begin(plan, 0, 0);
  const bool in_order = by_turns && !tile.flipped && (tile.whole || width * channels % kLanes == 0);
  const auto one = [&](int i) { return element_at<dtype>(plan, tile, i / channels, i % channels); };
  // All words of a thread begin with the same channel: KernelPlan::threads says why. The scales
  // from it on are looked up with constant numbers only, so that all of it stays in registers.
  const int misaligned = bytes_into_word(output) / static_cast<int>(sizeof(T));
  const int channel = (thread * kLanes + (channels - 1) * misaligned) % channels;
  ChannelScale scales[static_cast<std::size_t>(channels)];
  CHUNKIO_UNROLL
  for (int i = 0; i < channels; ++i) {
    scales[i] = plan.channels[i];
    CHUNKIO_UNROLL
    for (int k = 0; k < channels; ++k) {
      if ((channel + i) % channels == k) scales[i] = plan.channels[k];
    }
  }
  const auto word = [&](int first, T* values) {
    int at = begin + first;
    bool joined = in_order;
    if (in_order && !tile.whole) {
      const int y = row_of(plan, first / channels);
      const int in_row = first - y * width * channels;
      at = tile.begin(plan, 0, y) + in_row;
      joined = in_row + kLanes <= width * channels;
    }
    if (joined) {
      std::uint32_t fours[static_cast<std::size_t>(kLanes / 4)];
      load_bytes<kLanes>(tile.staged, at, fours);
      CHUNKIO_UNROLL
      for (int i = 0; i < kLanes; ++i) {
        values[i] = Element<dtype>::of(normalized_byte(fours, i, scales[i % channels]));
      }
    } else if (by_turns && width >= kLanes) {
      const int pixel = first / channels;
      const int step = tile.flipped ? -channels : channels;
      const int y = row_of(plan, pixel);
      const int x = pixel - y * width;
      int left = width - x;
      const int start = tile.flipped ? (width - 1) * channels : 0;
      int here = tile.begin(plan, 0, y) + start + x * step;
      const int next = tile.begin(plan, 0, y + 1) + start;
      int c = channel;
      CHUNKIO_UNROLL
      for (int i = 0; i < kLanes; ++i) {
        values[i] = made_of<dtype>(tile.staged[here + c], scales[i % channels]);
        if (++c == channels) {
          c = 0;
          here = --left == 0 ? next : here + step;
        }
      }
    } else {
      CHUNKIO_UNROLL
      for (int i = 0; i < kLanes; ++i) values[i] = one(first + i);
    }
  };
  write_run(plan, output, tile.num_rows * width * channels, thread, word, one);
}

/// The share of a thread in writing the output of a tile whose pixels are staged.
/// \param joined  whether plan.joined.
template <int channels, DType dtype, Layout output_layout, bool joined>
CHUNKIO_HOST_DEVICE void write(const KernelPlan& plan, const Tile& tile, const BatchWork& work,
                               int thread) {
  using T = typename Element<dtype>::Type;
  const CropPlan& sizes = plan.crop;
  const std::int64_t pixels = std::int64_t{sizes.height} * sizes.width;
  const std::int64_t pixels_before = std::int64_t{tile.first_y} * sizes.width;
  T* const output = reinterpret_cast<T*>(work.output) + tile.sample * pixels * channels;
  if constexpr (output_layout == Layout::nhwc) {
    write_pixels<channels, dtype>(plan, tile, output + pixels_before * channels, thread);
  } else if constexpr (joined) {
    if (tile.flipped) {
      write_planes<channels, dtype, true>(plan, tile, output + pixels_before, pixels, thread);
    } else {
      write_planes<channels, dtype, false>(plan, tile, output + pixels_before, pixels, thread);
    }
  } else {
    CHUNKIO_UNROLL
    for (int c = 0; c < channels; ++c) {
      write_plane<channels, dtype>(plan, tile, output + c * pixels + pixels_before, c, thread);
    }
  }
}

/// The share of a thread in writing the labels of an image, which the block of its first tile
/// does.
CHUNKIO_HOST_DEVICE inline void write_labels(const LabelPlan& plan, const Tile& tile,
                                             const BatchWork& work, int thread, int threads) {
  if (tile.number != 0) return;
  write_labels(plan, work.labels, tile.row, work.output_labels, tile.sample, thread, threads);
}

}  // namespace chunkio::device
