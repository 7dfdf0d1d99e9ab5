/// Counts of labels, and mean and standard deviation of pixels.
///
///     const std::vector<std::int64_t> counts = chunkio::count_labels(dataset);
///     chunkio::PixelStatistics pixels(3, chunkio::Layout::nhwc);
///     pixels.add(image);  // [H,W,C], as often as there are images
///     const chunkio::ChannelStatistics found = pixels.result();
///
/// Functions that take a Dataset read it, in blocks of bounded size, and may be called from any
/// thread. Objects are for one thread each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include <chunkio/dataset.hpp>
#include <chunkio/epoch_order.hpp>
#include <chunkio/export.hpp>

namespace chunkio {

/// Whether these labels are one class number a sample, not a table of attributes.
[[nodiscard]] CHUNKIO_EXPORT bool are_classes(const FieldInfo& labels) noexcept;

/// The labels of consecutive rows: one of `classes` and `attributes` is filled.
struct LabelBlock {
  std::int64_t first_row = 0;
  std::span<const std::int64_t> classes = {};     ///< One a row.
  std::span<const std::uint8_t> attributes = {};  ///< [rows, num_attributes].
  std::size_t num_attributes = 0;
};

/// The class of each of the rows; empty if the file has no labels that are classes. Blocks on I/O.
/// \throws Error hdf5_failed.
[[nodiscard]] CHUNKIO_EXPORT std::vector<std::int64_t> read_classes(const Dataset& dataset,
                                                                    RowRange rows);

/// Calls `visit` for all rows in order; not at all if the file has no labels. Blocks on I/O.
/// \throws Error hdf5_failed.
CHUNKIO_EXPORT void for_each_label_block(const Dataset& dataset,
                                         const std::function<void(const LabelBlock&)>& visit);

/// How often each class occurs, or each attribute is set.
class CHUNKIO_EXPORT LabelHistogram {
 public:
  /// Nothing more is counted once a class was found that cannot be.
  void add(const LabelBlock& block);
  /// Samples of each class, or with each attribute set; empty if labels are neither, or go beyond
  /// what can be counted.
  [[nodiscard]] std::vector<std::int64_t> result() const;

 private:
  std::vector<std::int64_t> counts_;
  bool countable_ = true;
};

/// LabelHistogram of all labels of the file. Blocks on I/O. \throws Error hdf5_failed.
[[nodiscard]] CHUNKIO_EXPORT std::vector<std::int64_t> count_labels(const Dataset& dataset);

/// Which labels there are, and whether they are mixed.
struct LabelSummary {
  std::vector<std::int64_t> class_counts = {};  ///< Of each label that occurs.
  /// Neighbours in the file have the same label far more often than by chance.
  bool sorted_by_class = false;
};

/// Collects a LabelSummary from labels in the order of the file.
class CHUNKIO_EXPORT LabelCounter {
 public:
  /// More distinct labels than this are row numbers or the like, no classes.
  static constexpr std::size_t kMaxClasses = 100'000;

  void add(std::int64_t label);
  /// Absent if there were no labels, or more than kMaxClasses different ones.
  [[nodiscard]] std::optional<LabelSummary> summary() const;

 private:
  std::map<std::int64_t, std::int64_t> counts_;
  std::int64_t total_ = 0;
  std::int64_t changes_ = 0;  // neighbours with different labels
  std::int64_t last_ = 0;
};

/// Mean and standard deviation of each channel, computed while images are written.
///
/// Sums over uint8 pixels, in integers: the result does not depend on order or threads, and is
/// exact but for the deviation within images, which is summed in steps of 2^-20. One for each
/// thread, merged at the end. Good for 2^48 pixels, the sums of squares of which just fit in 64
/// bits, and 2^36 images. Not thread-safe.
class CHUNKIO_EXPORT PixelStatistics {
 public:
  /// \pre channels >= 1.
  PixelStatistics(std::int64_t channels, Layout layout);

  /// Adds one image, [H,W,C] or [C,H,W] by the layout.
  void add(std::span<const std::uint8_t> image) noexcept;
  /// \pre as many channels.
  void merge(const PixelStatistics& other) noexcept;

  [[nodiscard]] std::uint64_t num_images() const noexcept { return images_; }
  /// Population mean and standard deviation on the scale 0..1. Zeros before the first image.
  [[nodiscard]] ChannelStatistics result() const;
  /// The mean over all images of the standard deviation within each, on the scale 0..1: smaller
  /// than the deviation over all pixels, as it leaves out how images differ from each other.
  [[nodiscard]] std::vector<double> mean_picture_std() const;

  /// The sums as numbers, and back.
  [[nodiscard]] std::vector<std::uint64_t> values() const;
  /// \throws Error corrupt_data: not the values of as many channels.
  void restore(std::span<const std::uint64_t> values);

 private:
  struct Sums {
    std::uint64_t values = 0;
    std::uint64_t squares = 0;
    std::uint64_t deviations = 0;  ///< Standard deviations of images, 0..255, in steps of 2^-20.
  };

  void add_channel(Sums& sums, std::uint64_t pixels, std::uint64_t values,
                   std::uint64_t squares) noexcept;

  Layout layout_;
  std::uint64_t images_ = 0;
  std::uint64_t pixels_ = 0;
  std::vector<Sums> channels_;
};

}  // namespace chunkio
