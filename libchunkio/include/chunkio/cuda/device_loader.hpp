/// Batches in GPU memory, ready to be fed to a network.
///
///     chunkio::cuda::DeviceLoader loader(chunkio::Loader(dataset, {.batch_size = 256, .seed = 7}),
///                                        {.normalize = {.padding = 4, .random_crop = true}});
///     for (loader.start_epoch(0); auto batch = loader.next(stream);) {
///       train(batch->images().data, batch->labels().data, stream);
///     }
///
/// Data flow: Loader -> page-locked ring -> copy stream -> uint8 images on the device -> one
/// kernel on a compute stream -> output buffers. Images cross the bus once, as uint8; cropping,
/// flipping, normalising and transposing are that kernel's (see NormalizeOptions). Fields cross
/// beside them and stay as they are. A thread of the
/// DeviceLoader's own keeps copies under way while the consumer trains; a resident dataset needs
/// none. Between construction and
/// destruction no device or page-locked memory is allocated and nothing waits for the whole device;
/// giving memory back does, as always with CUDA.
///
/// After fork() a child must neither use nor destroy what the parent made: a CUDA context does not
/// survive it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <chunkio/export.hpp>
#include <chunkio/loader.hpp>
#include <chunkio/normalizer.hpp>
#include <chunkio/tensor.hpp>

struct CUstream_st;

namespace chunkio::cuda {

/// A cudaStream_t.
using Stream = CUstream_st*;

/// Whether the loader's batches lie in page-locked memory, from which copies run at the bus's rate
/// and beside everything else.
enum class PinMemory : std::uint8_t {
  require = 0,  ///< An error if it is refused.
  prefer = 1,   ///< Where it is refused (RLIMIT_MEMLOCK, no memory), go on without.
  off = 2,      ///< Copies then keep next() and each other waiting.
};

/// Whether the dataset is kept on the device. Never changes what is delivered.
enum class DeviceResident : std::uint8_t {
  automatic = 0,  ///< If it takes no more than `resident_share` of the free device memory.
  off = 1,
  require = 2,  ///< An error if it does not fit.
};

CHUNKIO_EXPORT std::string_view to_string(PinMemory pin_memory) noexcept;
CHUNKIO_EXPORT std::string_view to_string(DeviceResident resident) noexcept;

/// What a DeviceLoader delivers, and what it may use for that.
struct DeviceOptions {
  /// The CUDA device, by number.
  int device = 0;
  /// Crops, flips, element type and axis order of the images. `num_threads` is not used.
  NormalizeOptions normalize = {};
  /// Of labels on the device: int64 or float32.
  DType label_dtype = DType::int64;

  /// Batches of the loader that are uploaded together, >= 1; also those that are shuffled among
  /// each other by `echo`. More than an epoch has: all of it.
  std::int64_t big_batch = 1;
  /// How often the images of a big batch are used, >= 1 (batch echoing: Choi, Passos, Shallue,
  /// Dahl, "Faster Neural Network Training with Data Echoing", 2019): first in the batches that the
  /// loader delivers, then shuffled anew into others, cropped and flipped anew. For storage that
  /// cannot keep up.
  std::int64_t echo = 1;

  /// Output batches that the consumer may hold at once, 1 to 1024. With all of them held, next()
  /// waits up to release_timeout_seconds for one, and then throws. With 1, the kernel of a batch
  /// waits for all that the consumer does with the batch before it.
  std::int64_t max_held = 2;
  /// How long next() waits, where max_held batches are held, for another thread to release one; 0
  /// to 1e6, 0 not at all. If the thread that calls next() holds them all, next() throws after this
  /// time.
  double release_timeout_seconds = 5;
  /// How long next() waits for the device to go on with what was put into its streams; 0 to 1e6.
  /// Longer than anything that the consumer's stream does for one batch, waiting for other
  /// processes included.
  double device_timeout_seconds = 600;
  /// As LoaderOptions::on_wait, in DeviceLoader::next(). That of the loader is called on a thread
  /// of the DeviceLoader's own.
  std::function<void()> on_wait = {};
  PinMemory pin_memory = PinMemory::require;
  /// Resident: read once, at construction, with labels and fields, and uploaded as uint8; an epoch
  /// then reads nothing, and of a batch 16 bytes a row cross the bus. The loader's `memory_budget`
  /// is taken once more meanwhile.
  DeviceResident resident = DeviceResident::automatic;
  /// Of the device memory that is free at construction, 0 to 1.
  double resident_share = 0.25;
};

/// Memory on a device. Row-major, contiguous.
struct DeviceTensor {
  void* data = nullptr;
  DType dtype = DType::float32;
  Shape shape = {};
  int device = 0;

  friend bool operator==(const DeviceTensor&, const DeviceTensor&) = default;
};

namespace internal {
class OutputSlot;
struct DeviceLoaderAccess;
}  // namespace internal

/// An output batch: a shared lease of one output buffer, which is at the same address whenever it
/// is used. When the last copy is gone the buffer is used again once all that was put into the
/// stream until then is done. Copies may live on any thread, also after the DeviceLoader is gone.
/// One that was moved from is empty: no samples, null tensors.
class CHUNKIO_EXPORT DeviceBatch {
 public:
  /// float32, float16 or bfloat16 [B,C,H,W] or [B,H,W,C].
  [[nodiscard]] DeviceTensor images() const;
  /// int64 or float32 [B] or [B,A]; data is null if the file has no labels.
  [[nodiscard]] DeviceTensor labels() const;
  /// A field named in LoaderOptions::fields, [B,...], as the file has it.
  /// \throws Error not_found.
  [[nodiscard]] DeviceTensor field(std::string_view name) const;
  /// Row numbers in the file, one a sample; in host memory.
  [[nodiscard]] std::span<const std::int64_t> sample_ids() const;
  [[nodiscard]] std::int64_t size() const;
  [[nodiscard]] std::int64_t epoch() const;
  /// Position of the batch among the output batches of its epoch, from 0.
  [[nodiscard]] std::int64_t step() const;
  /// How often its images were used before in the epoch, from 0.
  [[nodiscard]] std::int64_t echo_pass() const;
  /// The one stream whose work the buffer waits for when it is released: that of next(), unless
  /// another is named here. Applies to every copy of the batch; not thread-safe.
  void use_on(Stream stream);
  /// To be called before handing `tensor` on with a lease of this batch.
  /// \throws Error invalid_argument unless it is images(), labels() or a field().
  void require_contains(const DeviceTensor& tensor) const;

 private:
  friend class DeviceLoader;
  explicit DeviceBatch(std::shared_ptr<internal::OutputSlot> slot) noexcept;
  std::shared_ptr<internal::OutputSlot> slot_;
};

/// What was delivered and what it cost. Seconds are wall time.
struct DeviceStats {
  /// Of the loader behind it, or of the one that read a resident dataset; its stall is not the
  /// consumer's.
  LoaderStats loader = {};
  std::int64_t batches = 0;         ///< Output batches handed out.
  std::int64_t images = 0;          ///< In them.
  std::int64_t bytes_uploaded = 0;  ///< Images, labels and fields.

  double seconds = 0;        ///< From the first start_epoch() to the last batch handed out.
  double stall_seconds = 0;  ///< The consumer waited inside next() for images.
  // By the device's clock, counted when a buffer is used again: the last few batches are not in.
  double device_stall_seconds = 0;  ///< The consumer's stream stood idle until a batch was made.
  double upload_seconds = 0;        ///< Copies crossed the bus (none for a resident dataset).
  double kernel_seconds = 0;        ///< Batches were made: tasks copied, kernel run.

  bool pinned = false;    ///< Batches cross from page-locked memory.
  bool resident = false;  ///< The dataset is on the device.
  std::int64_t echo = 1;
  DType dtype = DType::float32;        ///< Of the images on the device.
  std::int64_t dataset_bytes = 0;      ///< What the dataset takes, or would, on the device.
  std::int64_t free_device_bytes = 0;  ///< Before anything was allocated.

  /// As LoaderStats::diagnosis(), with the bus and the kernel beside the stages of the loader.
  [[nodiscard]] CHUNKIO_EXPORT Diagnosis diagnosis() const;
};

/// One thread at a time, but for stats(). One that was moved from can be destroyed and assigned to;
/// every other member throws Error invalid_argument.
class CHUNKIO_EXPORT DeviceLoader {
 public:
  /// Allocates all buffers and page-locks those of the loader. Goes on where the loader was
  /// restored to (Loader::restore(), Loader::resume()), if no batch was asked for since; with
  /// `echo`, that must be the start of a big batch. \param loader  with max_held >= 2, so that
  /// copies overlap with each other and with reading. \throws Error invalid_argument (options; see
  /// Normalizer, too), unsupported (built without
  ///         CUDA), cuda_failed (no driver or device), out_of_resources (device memory: how much is
  ///         needed, and for what; page-locked memory).
  explicit DeviceLoader(Loader loader, DeviceOptions options = {});
  DeviceLoader(DeviceLoader&&) noexcept;
  DeviceLoader& operator=(DeviceLoader&&) noexcept;
  /// Waits for what is under way on its own streams, and so for what they wait for in those of the
  /// consumer. Batches that are held stay valid.
  ~DeviceLoader();

  /// Goes to the start of an epoch; see Loader::start_epoch(). Where that drops what was prepared,
  /// waits for copies under way, and so, without a limit, for what they wait for.
  void start_epoch(std::int64_t epoch);
  /// The next output batch, or nothing at the end of the epoch. Work put into `stream` afterwards
  /// waits until the batch is there. The caller waits while images have not arrived (the stall of
  /// DeviceStats), while all batches are held, and while the device is max_held batches behind.
  /// \param stream  of the device of this loader.
  /// \throws Error out_of_resources (release_timeout_seconds: which batches are held;
  ///         device_timeout_seconds: which batch is not done. Nothing was lost, and the next call
  ///         waits again), what on_wait throws (likewise), invalid_argument (no epoch was started),
  ///         cuda_failed, and what Loader::next() throws. After the last two every call throws the
  ///         same again.
  [[nodiscard]] std::optional<DeviceBatch> next(Stream stream);

  /// Where it stands, as Loader::state(), with the place within a big batch and echo pass.
  [[nodiscard]] std::string state() const;
  /// Continues there, bit-exactly; see Loader::restore(). \throws Error invalid_argument.
  void restore(std::string_view state);
  /// The next output batch, as epoch and step.
  [[nodiscard]] LoaderPosition position() const;

  /// Output batches of an epoch.
  [[nodiscard]] std::int64_t num_steps() const;
  [[nodiscard]] DeviceStats stats() const;
  /// As Loader::skipped(): what OnError::skip left out.
  [[nodiscard]] std::vector<SkippedRows> skipped() const;
  [[nodiscard]] const DeviceOptions& options() const;
  [[nodiscard]] const Dataset& dataset() const;
  /// Reserved on the device.
  [[nodiscard]] std::int64_t device_bytes() const;

 private:
  friend struct internal::DeviceLoaderAccess;
  struct Impl;
  explicit DeviceLoader(std::unique_ptr<Impl> impl) noexcept;
  /// \throws Error invalid_argument: it was moved from.
  [[nodiscard]] Impl& impl() const;
  std::unique_ptr<Impl> impl_;
};

}  // namespace chunkio::cuda
