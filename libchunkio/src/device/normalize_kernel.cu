#include <cstddef>
#include <cstdint>
#include <limits>

#include "device/launch.cuh"
#include "device/normalize_kernel.cuh"
#include "device/normalize_tile.hpp"
#include "device/resize_kernel_plan.hpp"
#include "device/resize_steps.hpp"

namespace chunkio::device {
namespace {

/// Of a multiprocessor, at a time: what was measured to be fastest on an H100 and an H200.
template <DType dtype, bool joined>
constexpr int min_blocks() {
#if __CUDA_ARCH__ == 750
  return 4;
#elif __CUDA_ARCH__ == 800 || __CUDA_ARCH__ == 900 || __CUDA_ARCH__ == 1000 || __CUDA_ARCH__ == 1030
  return joined ? 6 : dtype == DType::float32 ? 5 : 8;
#else
  return joined || dtype != DType::float32 ? 6 : 5;  // No more than 1,536 threads fit everywhere.
#endif
}

/// What threads do is in normalize_tile.hpp; here they get their numbers, their memory, and the
/// barrier.
template <int channels, DType dtype, Layout output_layout, bool joined>
__global__ void __launch_bounds__(kMaxThreads, min_blocks<dtype, joined>())
    normalize(const __grid_constant__ KernelPlan plan, const __grid_constant__ LabelPlan labels,
              const __grid_constant__ BatchWork work) {
  extern __shared__ uint4 words[];
  const auto thread = static_cast<int>(threadIdx.x);
  const Tile tile = tile_of(plan, channels, work, blockIdx.x, reinterpret_cast<std::byte*>(words));
  write_labels(labels, tile, work, thread, plan.threads);
  stage(plan, tile, thread);
  __syncthreads();
  write<channels, dtype, output_layout, joined>(plan, tile, work, thread);
}

__global__ void weigh_axes(const __grid_constant__ ResizeKernelPlan plan,
                           const __grid_constant__ ResizeWork work) {
  weigh(plan, work, std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x);
}

/// \param blocks  for each plane.
template <int pixel_bytes, bool second>
__global__ void resize_pass(const __grid_constant__ ResizeKernelPlan plan,
                            const __grid_constant__ ResizeWork work, unsigned blocks) {
  const std::uint32_t pixel = blockIdx.x % blocks * blockDim.x + threadIdx.x;
  const std::int64_t plane = blockIdx.x / blocks;
  if constexpr (second) {
    resize_second<pixel_bytes>(plan, work, plane, pixel);
  } else {
    resize_first<pixel_bytes>(plan, work, plane, pixel);
  }
}

__global__ void fetch(uint4* target, const uint4* source, std::size_t words) {
  const std::size_t word = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (word < words) target[word] = source[word];
}

/// One word a thread: rows are short (numbers) or long (masks), and neither leaves threads idle.
template <class Word>
__global__ void gather(const __grid_constant__ GatherWork work) {
  const std::int64_t row_words = work.row_bytes / static_cast<std::int64_t>(sizeof(Word));
  const std::int64_t word = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  const std::int64_t row = word / row_words;
  if (row >= work.num_rows) return;
  const std::int64_t source = work.tasks[row].row * row_words + (word - row * row_words);
  reinterpret_cast<Word*>(work.target)[word] = reinterpret_cast<const Word*>(work.source)[source];
}

cudaError_t launch_tiles(const NormalizePlan& plan, const LabelPlan& labels, const BatchWork& work,
                         cudaStream_t stream) {
  const KernelPlan made = make_kernel_plan(plan);
  if (work.num_rows > std::numeric_limits<std::int32_t>::max() / made.tiles) {
    return cudaErrorInvalidConfiguration;  // More blocks than a grid has.
  }
  const auto blocks = static_cast<unsigned>(work.num_rows * made.tiles);
  const auto bytes = static_cast<std::size_t>(shared_bytes(made));
  return with_kernel_form(plan, made, [&]<int channels, DType dtype, Layout output, bool joined>() {
    return launch(&normalize<channels, dtype, output, joined>, blocks, made.threads, bytes, stream,
                  made, labels, work);
  });
}

cudaError_t launch_resize(const ResizeKernelPlan& plan, const ResizeWork& work,
                          cudaStream_t stream) {
  const auto blocks_of = [](std::int64_t threads) {
    return static_cast<unsigned>((threads + kMaxThreads - 1) / kMaxThreads);
  };
  const std::int64_t lines = std::int64_t{plan.output.width} + plan.output.height;
  const cudaError_t weighed =
      launch(&weigh_axes, blocks_of(work.num_rows * lines), kMaxThreads, 0, stream, plan, work);
  if (weighed != cudaSuccess) return weighed;
  const auto planes = static_cast<unsigned>(work.num_rows * plan.planes);
  const unsigned first = blocks_of(plan.between_pixels());
  const unsigned second = blocks_of(plan.output_pixels());
  return with_pixel_bytes(plan, [&]<int pixel_bytes>() {
    const cudaError_t status = launch(&resize_pass<pixel_bytes, false>, planes * first, kMaxThreads,
                                      0, stream, plan, work, first);
    if (status != cudaSuccess) return status;
    return launch(&resize_pass<pixel_bytes, true>, planes * second, kMaxThreads, 0, stream, plan,
                  work, second);
  });
}

}  // namespace

cudaError_t launch_normalize(const NormalizePlan& plan, const LabelPlan& labels,
                             const BatchWork& work, cudaStream_t stream) {
  if (!plan.resized_crop) return launch_tiles(plan, labels, work, stream);
  const std::int64_t rows = resize_group_rows(plan, work.num_rows);
  for (std::int64_t first = 0; first < work.num_rows; first += rows) {
    const ResizeGroup group = resize_group(plan, labels, work, first);
    cudaError_t status = launch_resize(make_resize_kernel_plan(plan), group.resize, stream);
    if (status == cudaSuccess) status = launch_tiles(plan, labels, group.normalize, stream);
    if (status != cudaSuccess) return status;
  }
  return cudaSuccess;
}

cudaError_t launch_fetch(std::byte* target, const std::byte* source, std::size_t bytes,
                         cudaStream_t stream) {
  const std::size_t words = bytes / sizeof(uint4);
  const auto blocks = static_cast<unsigned>((words + kMaxThreads - 1) / kMaxThreads);
  return launch(&fetch, blocks, kMaxThreads, 0, stream, reinterpret_cast<uint4*>(target),
                reinterpret_cast<const uint4*>(source), words);
}

cudaError_t launch_gather(const GatherWork& work, cudaStream_t stream) {
  // The longest words that rows consist of.
  const auto with = [&]<class Word>(Word) {
    const std::int64_t words =
        work.num_rows * (work.row_bytes / static_cast<std::int64_t>(sizeof(Word)));
    const std::int64_t blocks = (words + kMaxThreads - 1) / kMaxThreads;
    if (blocks > std::numeric_limits<std::int32_t>::max()) return cudaErrorInvalidConfiguration;
    return launch(&gather<Word>, static_cast<unsigned>(blocks), kMaxThreads, 0, stream, work);
  };
  if (work.row_bytes % static_cast<std::int64_t>(sizeof(uint4)) == 0) return with(uint4{});
  if (work.row_bytes % static_cast<std::int64_t>(sizeof(std::uint32_t)) == 0) {
    return with(std::uint32_t{});
  }
  return with(std::uint8_t{});
}

}  // namespace chunkio::device
