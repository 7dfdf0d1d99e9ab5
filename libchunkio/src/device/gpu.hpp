/// What the device loader needs of a GPU: memory, streams, events, copies and kernels.
///
/// One implementation is CUDA, the other a stand-in that the tests run where there is no GPU.
/// Streams and events are those of CUDA: work of one stream is done in order, work of several at
/// the same time, and an event makes one wait for another. Everything is safe to call from any
/// thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>

#include <chunkio/tensor.hpp>

#include "device/augmentation.hpp"
#include "device/dense_plan.hpp"
#include "device/normalize_plan.hpp"
#include "image/resized_crop.hpp"

struct CUstream_st;
struct CUevent_st;

namespace chunkio::device {

using StreamHandle = CUstream_st*;
using EventHandle = CUevent_st*;

/// One row of an output batch: which image it is, and what part of it (of its resized box, where
/// boxes are resized). As the kernel reads it.
struct RowTask {
  std::int32_t row = 0;  ///< Of the images that the kernel is given.
  Crop crop = {};
};
static_assert(sizeof(RowTask) == 16 && std::is_trivially_copyable_v<RowTask>);

/// What the kernels are told of a row, in bytes: its task and, where boxes are resized, its box.
[[nodiscard]] inline std::int64_t row_task_bytes(const NormalizePlan& plan) noexcept {
  return static_cast<std::int64_t>(sizeof(RowTask) + (plan.resized_crop ? sizeof(image::Box) : 0));
}

/// Labels beside the images: rows of `values` elements, converted from one type to the other.
struct LabelPlan {
  std::int64_t values = 0;      ///< Of a sample; 0: there are no labels.
  DType input = DType::int64;   ///< int64 (classes) or uint8 (attributes).
  DType output = DType::int64;  ///< int64 or float32.

  /// Of a sample.
  [[nodiscard]] std::int64_t input_bytes() const noexcept {
    return values * static_cast<std::int64_t>(size_of(input));
  }
  [[nodiscard]] std::int64_t output_bytes() const noexcept {
    return values * static_cast<std::int64_t>(size_of(output));
  }
};

/// The kernel reads whole words of 16 bytes, which may reach beyond the last image.
inline constexpr std::size_t kKernelSlack = 16;

/// A batch to be made. All addresses are of device memory.
struct BatchWork {
  const std::byte* images = nullptr;  ///< uint8, as NormalizePlan::input has it.
  const std::byte* labels = nullptr;
  const RowTask* tasks = nullptr;  ///< [num_rows]
  std::int64_t num_rows = 0;
  std::byte* output = nullptr;
  std::byte* output_labels = nullptr;
  // Where boxes are resized (NormalizePlan::resized_crop).
  const image::Box* boxes = nullptr;  ///< [num_rows], of the images.
  std::byte* scratch = nullptr;       ///< resize_scratch_bytes(plan, num_rows)
};

/// The entries of a row of a CSR matrix on the device.
struct RowEntries {
  std::int64_t begin = 0;
  std::int64_t count = 0;
};
static_assert(sizeof(RowEntries) == 16 && std::is_trivially_copyable_v<RowEntries>);

/// A batch of dense rows to be made. All addresses are of device memory.
struct DenseWork {
  // Of all rows that are there, one after another: as DensePlan says.
  const std::byte* columns = nullptr;  ///< In each row ascending; a column may repeat.
  const std::byte* values = nullptr;
  const std::byte* labels = nullptr;
  const RowTask* tasks = nullptr;       ///< [num_rows]; of labels.
  const RowEntries* entries = nullptr;  ///< [num_rows]
  std::int64_t num_rows = 0;
  std::byte* output = nullptr;  ///< At a multiple of 16.
  std::byte* output_labels = nullptr;
  float* factors = nullptr;  ///< [num_rows], if DensePlan::scaled.
};

/// Rows of a field that are brought together. All addresses are of device memory.
struct GatherWork {
  const std::byte* source = nullptr;
  std::int64_t row_bytes = 0;      ///< >= 1
  const RowTask* tasks = nullptr;  ///< [num_rows]; row i of the target is row tasks[i].row.
  std::int64_t num_rows = 0;       ///< >= 1
  std::byte* target = nullptr;
};

/// What an event is for. CUDA's documentation says that streams and is_done() are fastest with
/// events that neither wake threads nor take the time.
enum class EventUse : std::uint8_t {
  order,         ///< For streams to wait for, and to be looked at.
  timer,         ///< Also takes the time, see Gpu::seconds_between().
  waited_timer,  ///< A timer that synchronize() sleeps on.
};

struct DeviceMemory {
  std::int64_t free_bytes = 0;
  std::int64_t total_bytes = 0;
};

/// \throws Error, all members that are not noexcept: cuda_failed, with what was tried and CUDA's
///         text; out_of_resources where memory or page-locking was refused.
class Gpu {
 public:
  virtual ~Gpu() = default;

  [[nodiscard]] virtual std::byte* allocate(std::size_t bytes) = 0;
  virtual void free(std::byte* memory) noexcept = 0;
  [[nodiscard]] virtual DeviceMemory memory() = 0;

  /// Page-locked host memory, 4 KiB aligned.
  [[nodiscard]] virtual std::byte* allocate_pinned(std::size_t bytes) = 0;
  virtual void free_pinned(std::byte* memory) noexcept = 0;
  /// Page-locks allocated memory. \pre whole pages.
  virtual void pin(std::span<std::byte> memory) = 0;
  virtual void unpin(std::span<std::byte> memory) noexcept = 0;

  [[nodiscard]] virtual StreamHandle create_stream() = 0;
  virtual void destroy_stream(StreamHandle stream) noexcept = 0;
  [[nodiscard]] virtual EventHandle create_event(EventUse use) = 0;
  virtual void destroy_event(EventHandle event) noexcept = 0;

  /// The event is done when all that was put into `stream` before is.
  virtual void record(EventHandle event, StreamHandle stream) = 0;
  /// What is put into `stream` from now on waits for the event, as it was last recorded; for
  /// nothing, if it never was.
  virtual void wait(StreamHandle stream, EventHandle event) = 0;
  [[nodiscard]] virtual bool is_done(EventHandle event) = 0;
  /// Blocks the caller, who sleeps. \pre it is a waited timer.
  virtual void synchronize(EventHandle event) = 0;
  virtual void synchronize(StreamHandle stream) = 0;
  /// From when `begin` was done to when `end` was, on the device's clock, as they were last
  /// recorded. \return nothing if one is not done. \pre both are timers, and were recorded.
  [[nodiscard]] virtual std::optional<double> seconds_between(EventHandle begin,
                                                              EventHandle end) = 0;

  virtual void copy_to_device(std::byte* target, const std::byte* source, std::size_t bytes,
                              StreamHandle stream) = 0;
  /// As copy_to_device(), by threads of the device, and of a few KiB: by what is published, copies
  /// of all streams go through one engine one after the other, where a small one waits for the
  /// large ones before.
  /// \pre `source` is page-locked; both addresses and `bytes` are multiples of 16.
  virtual void fetch(std::byte* target, const std::byte* source, std::size_t bytes,
                     StreamHandle stream) = 0;
  /// Fills device memory with zeros.
  virtual void clear(std::byte* memory, std::size_t bytes, StreamHandle stream) = 0;
  /// \throws Error unsupported: the kernel cannot do this.
  virtual void require_supported(const NormalizePlan& plan) = 0;
  /// \param labels  what `work` says of labels. \pre require_supported(plan).
  virtual void normalize(const NormalizePlan& plan, const LabelPlan& labels, const BatchWork& work,
                         StreamHandle stream) = 0;
  /// \pre work.num_rows >= 1. \param labels  as of normalize().
  virtual void densify(const DensePlan& plan, const LabelPlan& labels, const DenseWork& work,
                       StreamHandle stream) = 0;
  /// \pre both addresses of `work` are multiples of 16.
  virtual void gather(const GatherWork& work, StreamHandle stream) = 0;
};

/// \throws Error unsupported (built without CUDA), cuda_failed (no driver, no such device; the
///         message says which and what helps), out_of_resources (a context does not fit).
[[nodiscard]] std::shared_ptr<Gpu> open_gpu(int device);

/// Memory, a stream or an event of a Gpu, which lives as long.
template <class Handle, auto kCreate, auto kDestroy, auto... kUse>
class GpuResource {
 public:
  GpuResource() = default;
  /// \throws Error as Gpu's function.
  template <class... Arguments>
  explicit GpuResource(std::shared_ptr<Gpu> gpu, Arguments... arguments)
      : gpu_(std::move(gpu)), handle_((gpu_.get()->*kCreate)(kUse..., arguments...)) {}
  GpuResource(GpuResource&& other) noexcept
      : gpu_(std::move(other.gpu_)), handle_(std::exchange(other.handle_, nullptr)) {}
  GpuResource& operator=(GpuResource&& other) noexcept {
    std::swap(gpu_, other.gpu_);
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~GpuResource() {
    if (handle_ != nullptr) (gpu_.get()->*kDestroy)(handle_);
  }

  [[nodiscard]] Handle get() const noexcept { return handle_; }
  explicit operator bool() const noexcept { return handle_ != nullptr; }

 private:
  std::shared_ptr<Gpu> gpu_;
  Handle handle_ = nullptr;
};

using DeviceBuffer = GpuResource<std::byte*, &Gpu::allocate, &Gpu::free>;
using PinnedBuffer = GpuResource<std::byte*, &Gpu::allocate_pinned, &Gpu::free_pinned>;
using GpuStream = GpuResource<StreamHandle, &Gpu::create_stream, &Gpu::destroy_stream>;
template <EventUse use>
using EventOf = GpuResource<EventHandle, &Gpu::create_event, &Gpu::destroy_event, use>;
using GpuEvent = EventOf<EventUse::order>;
using GpuTimer = EventOf<EventUse::timer>;
using GpuWaitedTimer = EventOf<EventUse::waited_timer>;

}  // namespace chunkio::device
