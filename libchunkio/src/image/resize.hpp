/// Resizes uint8 images in the bits of Pillow's `Image.resize` with BILINEAR: antialiased, in fixed
/// point.
///
/// Each output pixel of an axis is a weighted sum of input pixels under a triangle, which is as
/// wide as the axis shrinks (as two input pixels if it grows). Weights are normalised in float64
/// and rounded to 22 bits; sums are rounded to uint8, halves up. Rows are resized first, then
/// columns of the rounded result; but columns first, as in Pillow since version 13, if the height
/// shrinks by more than twice as many pixels as the width does. An axis whose size stays is left
/// alone. The algorithm is that of Pillow (src/libImaging/Resample.c); the code is not.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "image/resize_avx2.hpp"
#include "image/resized_crop.hpp"

namespace chunkio::image {

inline constexpr std::size_t kMaxChannels = 4;

/// Rows of pixels uint8 [H,W,C]: those of one row without gaps, `stride` bytes from row to row, at
/// least as many as a row has.
template <class Byte>
struct Rows {
  Byte* data = nullptr;
  std::size_t stride = 0;

  [[nodiscard]] Byte* row(std::size_t i) const noexcept { return data + i * stride; }
};

/// Output pixels [first, first + count) of `input` ones resized to `output`, in reverse order if
/// `reversed`.
struct Axis {
  std::int32_t input;
  std::int32_t output;
  std::int32_t first;
  std::int32_t count;
  bool reversed;
};

/// What each output pixel of an axis is made of.
class AxisWeights {
 public:
  /// \param tap_unit  taps of a pixel are filled up with weights of 0 to a multiple of this.
  void compute(const Axis& axis, std::size_t tap_unit);

  [[nodiscard]] std::size_t size() const noexcept { return first_.size(); }
  /// The first input pixel of output pixel i, and how many there are.
  [[nodiscard]] std::size_t first(std::size_t i) const noexcept {
    return static_cast<std::size_t>(first_[i]);
  }
  [[nodiscard]] std::size_t num_taps(std::size_t i) const noexcept {
    return static_cast<std::size_t>(num_taps_[i]);
  }
  [[nodiscard]] const std::int32_t* weights(std::size_t i) const noexcept {
    return weights_.data() + i * stride_;
  }
  /// As many weights as each output pixel has, those of 0 included.
  [[nodiscard]] std::size_t stride() const noexcept { return stride_; }
  /// The most taps of an output pixel.
  [[nodiscard]] std::size_t max_taps() const noexcept { return max_taps_; }

 private:
  std::vector<std::int32_t> first_;
  std::vector<std::int32_t> num_taps_;
  std::vector<std::int32_t> weights_;  // [size][stride]
  // Only while they are computed.
  std::vector<double> centers_;
  std::vector<double> triangles_;  // [max_taps][size]
  std::vector<double> sums_;
  std::size_t stride_ = 0;
  std::size_t max_taps_ = 0;
};

/// How boxes of one size become outputs. prepare() once for each size, then resize() as often as
/// there are images of it; neither allocates once sizes have been met. Not thread-safe while it is
/// prepared; resize() may be called concurrently, each call with its own scratch memory.
class ResizePlan {
 public:
  enum class Instructions : std::uint8_t { portable, avx2 };

  /// The best that this processor and build have. All give the same bits.
  [[nodiscard]] static Instructions best() noexcept;

  explicit ResizePlan(Instructions instructions = best()) : instructions_(instructions) {}

  /// Where the box lies in its image does not matter.
  /// \param num_channels  1 to kMaxChannels.
  /// \pre all sides are 1 to kMaxSide, and the window lies within the resized image.
  void prepare(const ResizedCrop& crop, std::size_t num_channels);

  /// The pixels of the box that resize() uses.
  [[nodiscard]] Box needed() const noexcept;
  /// What resize() needs, in bytes.
  [[nodiscard]] std::size_t scratch_bytes() const noexcept { return scratch_bytes_; }

  /// \param box  pixels of the box. Bytes between its rows may be read, those before and behind it
  ///             are not. Only the rows that the window needs have to be there.
  /// \param output  [H,W,C] of the window; bytes between its rows are left alone. No overlap.
  /// \param scratch  at least scratch_bytes().
  void resize(Rows<const std::uint8_t> box, Rows<std::uint8_t> output,
              std::span<std::uint8_t> scratch) const noexcept;

 private:
  enum class Passes : std::uint8_t { none, rows, columns, rows_then_columns, columns_then_rows };

  void prepare_rows_avx2();
  /// kRowGroup rows to as many outputs, resized along themselves.
  void resize_rows(const std::uint8_t* const* rows, std::uint8_t* const* outputs) const noexcept;
  /// Row i of the window from the rows that it needs.
  void resize_column(std::size_t i, const TapRows& rows, std::size_t num_bytes,
                     std::uint8_t* output) const noexcept;
  void resize_rows_first(Rows<const std::uint8_t> box, Rows<std::uint8_t> output,
                         std::uint8_t* scratch) const noexcept;
  void resize_columns_then_rows(Rows<const std::uint8_t> box, Rows<std::uint8_t> output,
                                std::uint8_t* scratch) const noexcept;
  [[nodiscard]] TapRows taps_in_box(std::size_t i, Rows<const std::uint8_t> box) const noexcept;
  /// Rows from `begin` on of those that are needed; the last one again where there are no more.
  /// Copies them if resize_rows() would read beyond the box.
  [[nodiscard]] std::array<const std::uint8_t*, kRowGroup> group_of_box(
      std::size_t begin, Rows<const std::uint8_t> box, Rows<std::uint8_t> copies) const noexcept;

  Instructions instructions_;
  Passes passes_ = Passes::none;
  AxisWeights rows_;
  AxisWeights columns_;
  std::size_t num_channels_ = 0;
  std::size_t num_outputs_ = 0;  // rows
  std::size_t output_row_bytes_ = 0;
  std::size_t row_bytes_ = 0;  // of the box
  std::size_t row_reach_ = 0;  // bytes from the start of a row that resize_rows() may read
  // What is needed of the box.
  std::size_t first_row_ = 0;
  std::size_t num_rows_ = 0;
  std::size_t first_byte_ = 0;  // of each row
  std::size_t num_bytes_ = 0;
  // Rows that are resized and wait for others of their columns. To keep all of them is no faster
  // (0 to 3 % slower, of images of 375x500 to 2000x3000), and takes more memory.
  std::size_t ring_rows_ = 0;
  std::size_t scratch_bytes_ = 0;
  // By AVX2.
  std::vector<std::int32_t> offsets_;
  std::vector<std::uint32_t> rows_pairs_;
  std::vector<std::uint32_t> columns_pairs_;
};

}  // namespace chunkio::image
