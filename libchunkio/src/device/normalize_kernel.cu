#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>
#include <cstdint>
#include <limits>

#include "device/normalize_kernel.cuh"
#include "device/value.hpp"

// A block makes some rows of one output picture. It brings the bytes of the picture that these show
// into shared memory, in words of 16 bytes whatever their alignment, and then writes words of 16
// bytes of the output, each thread one after the other: what crop, flip and axis order scatter is
// scattered in shared memory only, and device memory sees whole words on both sides.

namespace chunkio::device {
namespace {

constexpr int kThreads = 256;
constexpr int kWord = 16;
/// Of shared memory for a block, if a row is not larger: several blocks fit on a multiprocessor.
constexpr std::int64_t kTileBytes = std::int64_t{16} << 10;
/// What a block may have without asking for more.
constexpr std::int64_t kMaxTileBytes = std::int64_t{48} << 10;

constexpr std::int64_t kMaxTileElements = std::int64_t{1} << 24;

struct KernelPlan {
  CropPlan crop;
  ChannelScale channels[kMaxChannels];
  std::int32_t planes;       // Of the input: 1, or one a channel.
  std::int32_t pixel_bytes;  // From one pixel of a plane to the next.
  std::int32_t row_words;    // Of shared memory for a staged row.
  std::int32_t tile_rows;    // Of the output, for a block.
  std::int32_t tiles;        // Of a picture.
};

template <DType dtype>
struct Element;
template <>
struct Element<DType::float32> {
  using Type = float;
  static __device__ float of(float value) { return value; }
};
template <>
struct Element<DType::float16> {
  using Type = std::uint16_t;
  static __device__ std::uint16_t of(float value) {
    return __half_as_ushort(__float2half_rn(value));
  }
};
template <>
struct Element<DType::bfloat16> {
  using Type = std::uint16_t;
  static __device__ std::uint16_t of(float value) {
    return __bfloat16_as_ushort(__float2bfloat16_rn(value));
  }
};

/// As normalized() of value.hpp. Conversions of integers run at a fraction of the rate of
/// additions, so the value is put into the fraction of 2^23, which is then subtracted: exact, too.
__device__ float normalized_fast(std::uint32_t value, ChannelScale channel) {
  return fmaf(__uint_as_float(0x4B000000U | value) - 8388608.0F, channel.scale, channel.bias);
}

/// The rows of a picture that a block has in shared memory, and the pixels of the output in them.
struct Tile {
  const std::uint8_t* staged;   // Words of 16 bytes, KernelPlan::row_words for each row.
  const std::uint8_t* picture;  // Device memory: its address says how rows are aligned.
  std::int64_t plane_bytes;     // Of the picture.
  std::int32_t first_row;       // Of the picture, [first_row, end_row) are staged.
  std::int32_t end_row;
  std::int32_t first_column;  // Likewise.
  std::int32_t end_column;

  __device__ std::int32_t num_rows() const { return max(end_row - first_row, 0); }
  /// Address in device memory of the first staged byte of a row.
  __device__ const std::uint8_t* source(const KernelPlan& plan, int plane, int row) const {
    return picture + plane * plane_bytes +
           (static_cast<std::int64_t>(row) * plan.crop.picture_width + first_column) *
               plan.pixel_bytes;
  }
  /// Where column 0 of the row would be in shared memory.
  __device__ const std::uint8_t* line(const KernelPlan& plan, int plane, int row) const {
    const auto misaligned = static_cast<std::int32_t>(
        reinterpret_cast<std::uintptr_t>(source(plan, plane, row)) % kWord);
    return staged + (plane * num_rows() + row - first_row) * plan.row_words * kWord + misaligned -
           first_column * plan.pixel_bytes;
  }
};

__device__ void stage(const KernelPlan& plan, const Tile& tile, uint4* words) {
  const int bytes = (tile.end_column - tile.first_column) * plan.pixel_bytes;
  if (bytes <= 0) return;
  const int rows = plan.planes * tile.num_rows();
  for (int i = static_cast<int>(threadIdx.x); i < rows * plan.row_words; i += kThreads) {
    const int row = i / plan.row_words;
    const int word = i - row * plan.row_words;
    const std::uint8_t* const begin =
        tile.source(plan, row / tile.num_rows(), tile.first_row + row % tile.num_rows());
    const auto misaligned = static_cast<int>(reinterpret_cast<std::uintptr_t>(begin) % kWord);
    if (word * kWord < misaligned + bytes) {
      words[i] = __ldg(reinterpret_cast<const uint4*>(begin - misaligned) + word);
    }
  }
}

/// Walks over pixels of the output, row by row.
class PixelCursor {
 public:
  /// \param pixel  within the tile, whose first output row is `first_y`.
  __device__ PixelCursor(const KernelPlan& plan, const Tile& tile, const Crop& crop, int first_y,
                         int plane, int pixel)
      : plan_(plan), tile_(tile), crop_(crop), plane_(plane) {
    y_ = pixel / plan.crop.width;
    x_ = pixel - y_ * plan.crop.width;
    y_ += first_y;
    enter_row();
  }

  /// The byte `offset` behind the pixel's first: 0 where the picture has no pixel.
  __device__ std::uint32_t value(int offset) const {
    return is_inside() ? line_[column_ * plan_.pixel_bytes + offset] : 0U;
  }
  /// Likewise of another plane. Planes are aligned differently, so their rows are looked up.
  __device__ std::uint32_t value_of_plane(int plane) const {
    return is_inside() ? tile_.line(plan_, plane, crop_.top + y_)[column_] : 0U;
  }

  __device__ void advance() {
    column_ += crop_.flipped ? -1 : 1;
    if (++x_ == plan_.crop.width) {
      x_ = 0;
      ++y_;
      enter_row();
    }
  }

 private:
  __device__ bool is_inside() const {
    return line_ != nullptr && column_ >= tile_.first_column && column_ < tile_.end_column;
  }
  __device__ void enter_row() {
    const int row = crop_.top + y_;
    line_ =
        row >= tile_.first_row && row < tile_.end_row ? tile_.line(plan_, plane_, row) : nullptr;
    column_ = crop_.left + (crop_.flipped ? plan_.crop.width - 1 - x_ : x_);
  }

  const KernelPlan& plan_;
  const Tile& tile_;
  const Crop& crop_;
  int plane_;
  int x_;
  int y_;
  int column_;
  const std::uint8_t* line_;
};

/// Writes `count` elements; `elements_from(i)` gives a function that makes element i, i + 1, ...
/// when it is called. Words of 16 bytes, but where they lie partly outside.
template <class T, class ElementsFrom>
__device__ void write_run(T* output, int count, ElementsFrom elements_from) {
  constexpr int kLanes = kWord / sizeof(T);
  const auto misaligned =
      static_cast<int>(reinterpret_cast<std::uintptr_t>(output) % kWord / sizeof(T));
  const int words = (misaligned + count + kLanes - 1) / kLanes;
  for (int word = static_cast<int>(threadIdx.x); word < words; word += kThreads) {
    const int first = word * kLanes - misaligned;
    if (first >= 0 && first + kLanes <= count) {
      auto next = elements_from(first);
      alignas(kWord) T values[kLanes];
#pragma unroll
      for (int lane = 0; lane < kLanes; ++lane) values[lane] = next();
      *reinterpret_cast<uint4*>(output + first) = *reinterpret_cast<const uint4*>(values);
    } else {
      const int begin = max(first, 0);
      auto next = elements_from(begin);
      for (int i = begin; i < min(first + kLanes, count); ++i) output[i] = next();
    }
  }
}

__device__ void write_labels(const LabelPlan& plan, const BatchWork& work, std::int64_t sample,
                             std::int32_t row) {
  for (std::int64_t i = threadIdx.x; i < plan.values; i += kThreads) {
    const std::int64_t from = row * plan.values + i;
    const std::int64_t to = sample * plan.values + i;
    const std::int64_t value =
        plan.input == DType::int64
            ? reinterpret_cast<const std::int64_t*>(work.labels)[from]
            : std::int64_t{reinterpret_cast<const std::uint8_t*>(work.labels)[from]};
    if (plan.output == DType::float32) {
      reinterpret_cast<float*>(work.output_labels)[to] = static_cast<float>(value);
    } else {
      reinterpret_cast<std::int64_t*>(work.output_labels)[to] = value;
    }
  }
}

template <int channels, DType dtype, Layout output_layout>
__global__ void __launch_bounds__(kThreads)
    normalize(const __grid_constant__ KernelPlan plan, const __grid_constant__ LabelPlan labels,
              const __grid_constant__ BatchWork work) {
  extern __shared__ uint4 words[];
  using T = typename Element<dtype>::Type;
  const std::int64_t sample = blockIdx.x / static_cast<unsigned>(plan.tiles);
  const auto tile_number = static_cast<int>(blockIdx.x % static_cast<unsigned>(plan.tiles));
  const RowTask task = work.tasks[sample];
  if (tile_number == 0) write_labels(labels, work, sample, task.row);

  const CropPlan& sizes = plan.crop;
  const int first_y = tile_number * plan.tile_rows;
  const int num_rows = min(plan.tile_rows, sizes.height - first_y);
  const std::int64_t picture_pixels =
      static_cast<std::int64_t>(sizes.picture_height) * sizes.picture_width;
  const Tile tile{.staged = reinterpret_cast<const std::uint8_t*>(words),
                  .picture = reinterpret_cast<const std::uint8_t*>(work.pictures) +
                             task.row * picture_pixels * channels,
                  .plane_bytes = picture_pixels,
                  .first_row = max(task.crop.top + first_y, 0),
                  .end_row = min(task.crop.top + first_y + num_rows, sizes.picture_height),
                  .first_column = max(task.crop.left, 0),
                  .end_column = min(task.crop.left + sizes.width, sizes.picture_width)};
  stage(plan, tile, words);
  __syncthreads();

  const std::int64_t output_pixels = static_cast<std::int64_t>(sizes.height) * sizes.width;
  const std::int64_t pixels_before = static_cast<std::int64_t>(first_y) * sizes.width;
  const int num_pixels = num_rows * sizes.width;
  T* const output = reinterpret_cast<T*>(work.output) + sample * output_pixels * channels;
  if constexpr (output_layout == Layout::nchw) {
#pragma unroll
    for (int c = 0; c < channels; ++c) {
      const ChannelScale scale = plan.channels[c];
      const int plane = plan.planes == 1 ? 0 : c;
      const int byte = plan.planes == 1 ? c : 0;
      write_run(output + c * output_pixels + pixels_before, num_pixels, [&](int first) {
        PixelCursor cursor(plan, tile, task.crop, first_y, plane, first);
        return [cursor, scale, byte]() mutable {
          const T element = Element<dtype>::of(normalized_fast(cursor.value(byte), scale));
          cursor.advance();
          return element;
        };
      });
    }
  } else {
    write_run(output + pixels_before * channels, num_pixels * channels, [&](int first) {
      const int pixel = first / channels;
      int c = first - pixel * channels;
      PixelCursor cursor(plan, tile, task.crop, first_y, 0, pixel);
      return [&plan, cursor, c]() mutable {
        const std::uint32_t value = plan.planes == 1 ? cursor.value(c) : cursor.value_of_plane(c);
        const T element = Element<dtype>::of(normalized_fast(value, plan.channels[c]));
        if (++c == channels) {
          c = 0;
          cursor.advance();
        }
        return element;
      };
    });
  }
}

KernelPlan kernel_plan(const NormalizePlan& plan) {
  const auto channels = static_cast<std::int32_t>(plan.channels.size());
  KernelPlan made{};
  made.crop = plan.crop;
  std::copy(plan.channels.begin(), plan.channels.end(), made.channels);
  const bool by_turns = plan.input == Layout::nhwc;
  made.planes = by_turns ? 1 : channels;
  made.pixel_bytes = by_turns ? channels : 1;
  const std::int64_t columns = std::min(plan.crop.width, plan.crop.picture_width);
  made.row_words =
      static_cast<std::int32_t>((columns * made.pixel_bytes + kWord - 1 + kWord - 1) / kWord);
  const std::int64_t row_bytes = std::int64_t{made.planes} * made.row_words * kWord;
  // Rows of the output may be longer than those of the picture; their elements are counted in ints.
  const std::int64_t row_elements = std::int64_t{plan.crop.width} * channels;
  made.tile_rows = static_cast<std::int32_t>(std::clamp<std::int64_t>(
      std::min(kTileBytes / row_bytes, kMaxTileElements / row_elements), 1, plan.crop.height));
  made.tiles = (plan.crop.height + made.tile_rows - 1) / made.tile_rows;
  return made;
}

std::int64_t shared_bytes(const KernelPlan& plan) {
  return std::int64_t{plan.planes} * plan.tile_rows * plan.row_words * kWord;
}

template <int channels, DType dtype, Layout output>
void launch(const KernelPlan& plan, const LabelPlan& labels, const BatchWork& work,
            cudaStream_t stream) {
  const auto blocks = static_cast<unsigned>(work.num_rows * plan.tiles);
  normalize<channels, dtype, output>
      <<<blocks, kThreads, static_cast<std::size_t>(shared_bytes(plan)), stream>>>(plan, labels,
                                                                                   work);
}

template <int channels, DType dtype>
void launch(const NormalizePlan& normalize_plan, const KernelPlan& plan, const LabelPlan& labels,
            const BatchWork& work, cudaStream_t stream) {
  if (normalize_plan.output == Layout::nchw) {
    launch<channels, dtype, Layout::nchw>(plan, labels, work, stream);
  } else {
    launch<channels, dtype, Layout::nhwc>(plan, labels, work, stream);
  }
}

template <int channels>
void launch(const NormalizePlan& normalize_plan, const KernelPlan& plan, const LabelPlan& labels,
            const BatchWork& work, cudaStream_t stream) {
  switch (normalize_plan.dtype) {
    case DType::float16:
      launch<channels, DType::float16>(normalize_plan, plan, labels, work, stream);
      break;
    case DType::bfloat16:
      launch<channels, DType::bfloat16>(normalize_plan, plan, labels, work, stream);
      break;
    default:
      launch<channels, DType::float32>(normalize_plan, plan, labels, work, stream);
  }
}

}  // namespace

bool fits_kernel(const NormalizePlan& plan) {
  const std::int64_t row_elements = std::int64_t{plan.crop.width} * plan.num_channels();
  return row_elements <= kMaxTileElements && shared_bytes(kernel_plan(plan)) <= kMaxTileBytes;
}

cudaError_t launch_normalize(const NormalizePlan& plan, const LabelPlan& labels,
                             const BatchWork& work, cudaStream_t stream) {
  const KernelPlan made = kernel_plan(plan);
  if (work.num_rows > std::numeric_limits<std::int32_t>::max() / made.tiles) {
    return cudaErrorInvalidConfiguration;  // More blocks than a grid has.
  }
  switch (plan.channels.size()) {
    case 1:
      launch<1>(plan, made, labels, work, stream);
      break;
    case 2:
      launch<2>(plan, made, labels, work, stream);
      break;
    case 3:
      launch<3>(plan, made, labels, work, stream);
      break;
    default:
      launch<4>(plan, made, labels, work, stream);
  }
  return cudaGetLastError();
}

}  // namespace chunkio::device
