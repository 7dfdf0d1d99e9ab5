/// What a network is fed: uint8 images cropped, flipped, normalised and in the wanted type; rows of
/// a CSR matrix made dense.
///
///     const chunkio::Normalizer normalize(dataset.info(), {.padding = 4, .random_crop = true});
///     std::vector<std::byte> input(normalize.output_bytes(batch.size()));
///     normalize(batch, input);
///
/// Each image is cropped (from a larger one, padded with zeros; or a random part, resized),
/// flipped, converted to (value / 255 - mean) / std and written in the axis order asked for, in one
/// pass over its bytes. What happens to a sample is a function of (seed, epoch, sample id, echo
/// pass) alone, so it does not depend on threads, ranks, batches or restarts;
/// libchunkio/doc/order.md defines it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <chunkio/dataset.hpp>
#include <chunkio/export.hpp>
#include <chunkio/loader.hpp>
#include <chunkio/tensor.hpp>

namespace chunkio {
namespace internal {
struct Access;
}

/// How images become the input of a network.
struct NormalizeOptions {
  /// float32, float16 or bfloat16; rounded to nearest, ties to even.
  DType dtype = DType::float32;
  /// Of the output: nchw = [B,C,H,W], nhwc = [B,H,W,C] (PyTorch's channels_last).
  Layout layout = Layout::nchw;
  /// Of value / 255: one number for each channel, or one for all. Both empty (default): those of
  /// the file. std > 0.
  std::vector<double> mean = {};
  std::vector<double> std = {};
  /// Output size in pixels; 0 (default): that of the images. At most image + 2 * padding; with
  /// `random_resized_crop` 1 to 65535.
  std::int64_t crop_height = 0;
  std::int64_t crop_width = 0;
  /// Zero padding on each side of the image before it is cropped, in pixels, 0 to 2^20. Needs
  /// `random_crop` or a crop size larger than the image.
  std::int64_t padding = 0;
  /// Crop at a random place, another one for each sample and epoch; else in the middle. Needs
  /// `padding` or a crop size.
  bool random_crop = false;
  /// Cut a random part out of each image, another one for each sample, epoch and echo pass, and
  /// resize it to the output size, in the bits of Pillow and torchvision (antialiased, bilinear).
  /// Excludes `random_crop` and `padding`; images have sides of at most 65535.
  std::optional<ResizedCropRanges> random_resized_crop = {};
  /// Flip half of the samples left to right, others in each epoch.
  bool flip = false;
  /// Of random crops and flips. Absent: that of the loader which a batch is from; else 0.
  std::optional<std::uint64_t> seed = {};
};

/// Normalises batches on the CPU. The result of every value is that of the CUDA kernel,
/// bit for bit, as tests on a device say: both round the same multiply-add once.
///
/// Immutable; members may be called from several threads, which then take turns at the workers.
/// After fork() a child must neither use nor destroy it: its threads do not exist there.
class CHUNKIO_EXPORT Normalizer {
 public:
  /// Starts `num_threads - 1` threads.
  /// \param info         of the images: their size, axis order and, unless given, mean and std.
  /// \param num_threads  that share a batch, the caller among them, at most 1024; 0: the CPUs this
  ///                     process may use, at most 8. Never changes the result.
  /// \throws Error invalid_argument (no such dtype; mean or std of another number of channels, or
  ///         not usable; a crop larger than the padded image; random_crop without padding or a
  ///         crop size, or padding that no crop can meet; random_resized_crop beside either, or
  ///         ranges or sizes out of range), not_found (neither given nor in the
  ///         file), out_of_resources.
  explicit Normalizer(const DatasetInfo& info, NormalizeOptions options = {},
                      std::int64_t num_threads = 0);
  Normalizer(Normalizer&&) noexcept;
  Normalizer& operator=(Normalizer&&) noexcept;
  /// Joins its threads.
  ~Normalizer();

  /// [B,C,H,W] or [B,H,W,C] for B samples.
  [[nodiscard]] Shape output_shape(std::int64_t num_samples) const;
  [[nodiscard]] std::size_t output_bytes(std::int64_t num_samples) const;
  [[nodiscard]] const NormalizeOptions& options() const noexcept;
  [[nodiscard]] std::int64_t num_threads() const noexcept;

  /// Writes the images of `batch` to `output`, output_bytes(batch.size()) bytes aligned to the
  /// element type. Returns when all are there.
  /// \param echo_pass  how often the batch was used before (batch echoing), >= 0.
  /// \throws Error invalid_argument (images of another shape, output of another size).
  void operator()(const Batch& batch, std::span<std::byte> output,
                  std::int64_t echo_pass = 0) const;
  /// The same for images from elsewhere.
  /// \param images      uint8 [B,H,W,C] or [B,C,H,W], as DatasetInfo says.
  /// \param sample_ids  B numbers, what random decisions are keyed by beside `epoch`.
  void operator()(const Tensor& images, std::span<const std::int64_t> sample_ids,
                  std::int64_t epoch, std::span<std::byte> output,
                  std::int64_t echo_pass = 0) const;

 private:
  friend struct internal::Access;
  Normalizer(const DatasetInfo& info, NormalizeOptions options, std::int64_t num_threads,
             std::int64_t largest_cached_bytes);
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// How rows of a CSR matrix become the input of a network. In this order: `row_sum`, then `log1p`.
struct DenseOptions {
  /// float32, float16 or bfloat16; rounded to nearest, ties to even.
  DType dtype = DType::float32;
  /// 1 for each value that is stored, whatever it is; excludes the other two.
  bool binary = false;
  /// Each row times what makes its values add up to this, > 0; a row whose sum is 0 stays. Absent:
  /// as they are.
  std::optional<double> row_sum = {};
  /// log(1 + value), in float32.
  bool log1p = false;
};

/// Makes rows of a CSR matrix dense on the CPU: [B, columns], 0 where nothing is stored. Values of
/// a column that comes twice in a row are added up, as SciPy does.
///
/// Each cache line of the output is written once, bypassing the cache. Thread safety as Normalizer.
class CHUNKIO_EXPORT Densifier {
 public:
  /// Starts `num_threads - 1` threads.
  /// \param columns      of the matrix: DatasetInfo::sparse. \param num_threads  as Normalizer.
  /// \throws Error invalid_argument (no such dtype; options that exclude each other; columns < 1),
  ///         out_of_resources.
  explicit Densifier(std::int64_t columns, DenseOptions options = {}, std::int64_t num_threads = 0);
  Densifier(Densifier&&) noexcept;
  Densifier& operator=(Densifier&&) noexcept;
  /// Joins its threads.
  ~Densifier();

  [[nodiscard]] std::size_t output_bytes(std::int64_t num_rows) const;
  [[nodiscard]] const DenseOptions& options() const noexcept;

  /// Writes `rows` to `output`, output_bytes(rows.rows()) bytes aligned to the element type.
  /// Returns when all are there. \throws Error invalid_argument (another number of columns, output
  /// of another size, a column out
  ///         of range).
  void operator()(const SparseTensor& rows, std::span<std::byte> output) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace chunkio
