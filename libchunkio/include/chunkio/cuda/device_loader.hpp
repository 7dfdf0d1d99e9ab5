/// Streams a dataset as batches in GPU memory, ready to be fed to a network.
///
///     chunkio::cuda::DeviceLoader loader(chunkio::Loader(dataset, {.batch_size = 256, .seed = 7}),
///                                        {.normalize = {.padding = 4, .random_crop = true}});
///     for (const chunkio::cuda::DeviceBatch& batch : loader.epoch(0, stream)) {
///       train(batch["images"].data(), batch["labels"].data(), stream);
///     }
///
/// A sibling of Loader: members of the same name keep the same promises, and those that put work
/// into a stream take one.
///
/// Data flow: Loader -> page-locked ring -> copy stream -> uint8 images on the device -> one
/// kernel on a compute stream -> output buffers. Images cross the bus once, as uint8; cropping,
/// flipping, normalising and transposing are that kernel's (see NormalizeOptions). Random resized
/// crops take three kernels more, and up to 64 MiB of scratch memory, or what one sample needs.
/// Fields cross beside them and stay as they are. A thread of the DeviceLoader's own keeps copies
/// under way while the consumer trains; a resident dataset needs none. Between construction and
/// destruction no device or page-locked memory is allocated and nothing waits for the whole device;
/// giving memory back does, as always with CUDA.
///
/// Streams belong to the caller. One that was given to next(), epoch() or DeviceBatch::use_on()
/// must exist until the leases of its batches are gone, and until the DeviceLoader is.
///
/// After fork() a child must neither use nor destroy what the parent made: a CUDA context does not
/// survive it.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include <chunkio/export.hpp>
#include <chunkio/loader.hpp>
#include <chunkio/normalizer.hpp>
#include <chunkio/tensor.hpp>

struct CUstream_st;

namespace chunkio::internal {
class OutputSlot;
struct Access;
}  // namespace chunkio::internal

namespace chunkio::device {
class Gpu;
}

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
  /// Crops, flips, element type and axis order of the images.
  NormalizeOptions normalize = {};
  /// Of rows of a CSR matrix: they are uploaded as they are stored, and made dense there.
  DenseOptions dense = {};
  /// Of labels on the device: int64 or float32.
  DType label_dtype = DType::int64;

  /// Batches of the loader in an echo buffer, >= 1: they are uploaded together, and `echo` shuffles
  /// them among each other. More than an epoch has: all of it.
  std::int64_t echo_buffer_batches = 1;
  /// How often the images of an echo buffer are used, >= 1 (batch echoing: Choi, Passos, Shallue,
  /// Dahl, "Faster Neural Network Training with Data Echoing", 2019): first in the batches that the
  /// loader delivers, then shuffled anew into others, cropped and flipped anew. For storage that
  /// cannot keep up.
  std::int64_t echo = 1;

  /// Output batches that the consumer may hold at once, 1 to 1024, as LoaderOptions::Memory. With
  /// 1, the kernel of a batch waits for all that the consumer does with the batch before it.
  std::int64_t max_held = 2;
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
  /// then reads nothing, and of a batch 16 bytes a row cross the bus. The loader's `memory.budget`
  /// is taken once more meanwhile.
  DeviceResident resident = DeviceResident::automatic;
  /// Of the device memory that is free at construction, 0 to 1.
  double resident_share = 0.25;
};

/// An output batch: a shared lease of one output buffer, which is at the same address whenever it
/// is used. When the last copy is gone the buffer is used again once all that was put into the
/// stream until then is done. Copies may live on any thread, also after the DeviceLoader is gone.
/// One that was moved from is empty: no samples, null tensors.
class CHUNKIO_EXPORT DeviceBatch {
 public:
  /// As Batch::operator[], in memory of the device, which may be written.
  /// \throws Error not_found: the message lists what there is.
  [[nodiscard]] Tensor operator[](std::string_view name) const;
  /// float32, float16 or bfloat16 [B,C,H,W] or [B,H,W,C].
  /// \throws Error unsupported: rows of a CSR matrix lead.
  [[nodiscard]] Tensor images() const;
  /// What leads: images, or rows of a CSR matrix made dense, float32, float16 or bfloat16
  /// [B, columns].
  [[nodiscard]] Tensor leading() const;
  /// int64 or float32 [B] or [B,A]; empty if the file has no labels.
  [[nodiscard]] Tensor labels() const;
  /// Row numbers in the file, one a sample; in host memory.
  [[nodiscard]] std::span<const std::int64_t> sample_ids() const;
  [[nodiscard]] std::int64_t size() const;
  [[nodiscard]] std::int64_t epoch() const;
  /// Position of the batch among the output batches of its epoch, from 0.
  [[nodiscard]] std::int64_t step() const;
  /// How often its images were used before in the epoch, from 0.
  [[nodiscard]] std::int64_t echo_pass() const;
  /// Names another stream that uses the batch, beside that of next(): the buffer is used again when
  /// the work that was put into each of them until the release is done. The stream waits until the
  /// batch is there. Applies to every copy of the batch; not thread-safe.
  /// \throws Error cuda_failed.
  void use_on(Stream stream) const;
  /// Whether `tensor` is images(), labels() or a field: if so, it is valid while the batch is held.
  [[nodiscard]] bool contains(const Tensor& tensor) const;

 private:
  friend class DeviceLoader;
  explicit DeviceBatch(std::shared_ptr<chunkio::internal::OutputSlot> slot) noexcept;
  std::shared_ptr<chunkio::internal::OutputSlot> slot_;
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

  /// As LoaderStats::bottleneck(), with the bus and the kernel beside the stages of the loader.
  [[nodiscard]] CHUNKIO_EXPORT BottleneckReport bottleneck() const;
};

/// As a JSON object on one line, like to_json(const LoaderStats&).
[[nodiscard]] CHUNKIO_EXPORT std::string to_json(const DeviceStats& stats);

/// One thread at a time, except where a member says otherwise. One that was moved from can be
/// destroyed and assigned to; every other member throws Error invalid_argument.
class CHUNKIO_EXPORT DeviceLoader {
 public:
  /// Allocates all buffers and page-locks those of the loader. Goes on where the loader was
  /// restored to (Loader::restore(), Loader::resume()), if no batch was asked for since; with
  /// `echo`, that must be the start of an echo buffer.
  /// \param loader  with memory.max_held >= 2, so that copies overlap with each other and with
  ///                reading.
  /// \throws Error invalid_argument (options; see Normalizer, too), unsupported (built without
  ///         CUDA), cuda_failed (no driver or device), out_of_resources (device memory: how much is
  ///         needed, and for what; page-locked memory).
  explicit DeviceLoader(Loader loader, DeviceOptions options = {});
  /// A loader that continues from `state`, which another device loader's state() returned: as
  /// Loader::resume(). \throws Error as both.
  static DeviceLoader resume(Dataset dataset, LoaderOptions loader, std::string_view state,
                             DeviceOptions options = {});
  DeviceLoader(DeviceLoader&&) noexcept;
  DeviceLoader& operator=(DeviceLoader&&) noexcept;
  /// Waits for what is under way on its own streams, and so for what they wait for in those of the
  /// consumer. Batches that are held stay valid.
  ~DeviceLoader();

  /// Goes to the start of an epoch; see Loader::start_epoch(). Where that drops what was prepared,
  /// waits for copies under way, and so, without a limit, for what they wait for.
  void start_epoch(std::int64_t epoch);
  /// Goes to the start of an epoch, as start_epoch(), and returns its batches.
  [[nodiscard]] EpochRange<DeviceBatch> epoch(std::int64_t epoch, Stream stream) &;
  /// The range needs a DeviceLoader that lives as long.
  EpochRange<DeviceBatch> epoch(std::int64_t epoch, Stream stream) && = delete;
  /// The next output batch, or nothing at the end of the epoch. Work put into `stream` afterwards
  /// waits until the batch is there. The caller waits while images have not arrived (the stall of
  /// DeviceStats), while all batches are held, and while the device is max_held batches behind.
  /// \param stream  of the device of this loader.
  /// \param stop, timeout  as those of Loader::next().
  /// \throws Error cancelled (`stop`), timed_out (`timeout`; release_timeout_seconds: which batches
  ///         are held; device_timeout_seconds: which batch is not done) and what on_wait throws:
  ///         nothing is lost then, and the next call goes on waiting. Or invalid_argument (no epoch
  ///         was started), cuda_failed, and what else Loader::next() throws. After the last two
  ///         every call throws the same again.
  [[nodiscard]] std::optional<DeviceBatch> next(Stream stream, const std::stop_token& stop = {},
                                                std::chrono::nanoseconds timeout = kForever);

  /// Where it stands, as Loader::state(), with the place within an echo buffer and echo pass.
  [[nodiscard]] std::string state() const;
  /// As Loader::state_at(), in output batches. Any thread.
  [[nodiscard]] std::string state_at(const LoaderPosition& position, bool ended) const;
  /// Continues there, bit-exactly; see Loader::restore(). \throws Error invalid_argument.
  void restore(std::string_view state);
  /// The next output batch, as epoch and step.
  [[nodiscard]] LoaderPosition position() const;

  /// Output batches of an epoch.
  [[nodiscard]] std::int64_t num_steps() const;
  /// Samples delivered in an epoch: each counts as often as it is used.
  [[nodiscard]] std::int64_t samples_per_epoch() const;
  /// Any thread.
  [[nodiscard]] DeviceStats stats() const;
  /// Of one epoch, as Loader::epoch_stats(). What is read and uploaded counts for the epoch that it
  /// is of, and nothing for a resident dataset. Times by the device's clock count when a buffer is
  /// used again, maybe in the next epoch. Any thread.
  [[nodiscard]] DeviceStats epoch_stats(std::int64_t epoch) const;
  /// As Loader::skipped(): what OnError::skip left out.
  [[nodiscard]] std::vector<SkippedRows> skipped() const;
  [[nodiscard]] const DeviceOptions& options() const;
  [[nodiscard]] const LoaderOptions& loader_options() const;
  [[nodiscard]] const Dataset& dataset() const;
  /// Reserved on the device.
  [[nodiscard]] std::int64_t device_bytes() const;

 private:
  friend struct chunkio::internal::Access;
  struct Impl;
  DeviceLoader(std::shared_ptr<device::Gpu> gpu, Loader loader, DeviceOptions options);
  static DeviceLoader resume_on(std::shared_ptr<device::Gpu> gpu, Dataset dataset,
                                LoaderOptions loader, std::string_view state,
                                DeviceOptions options);
  /// \throws Error invalid_argument: it was moved from.
  [[nodiscard]] Impl& impl() const;
  std::unique_ptr<Impl> impl_;
};

}  // namespace chunkio::cuda
