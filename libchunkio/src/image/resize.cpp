#include "image/resize.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "image/resize_weights.hpp"

namespace chunkio::image {
namespace {

template <std::size_t channels>
void resize_row(const AxisWeights& axis, const std::uint8_t* row, std::uint8_t* output) noexcept {
  for (std::size_t i = 0; i < axis.size(); ++i) {
    const std::uint8_t* taps = row + axis.first(i) * channels;
    const std::int32_t* const weights = axis.weights(i);
    std::array<std::int32_t, channels> sums;
    sums.fill(kHalfWeight);
    for (std::size_t tap = 0; tap < axis.num_taps(i); ++tap) {
      for (std::size_t c = 0; c < channels; ++c) sums[c] += weights[tap] * *taps++;
    }
    for (const std::int32_t sum : sums) *output++ = clipped(sum);
  }
}

void resize_column_portable(const TapRows& rows, const std::int32_t* weights, std::size_t num_taps,
                            std::size_t num_bytes, std::uint8_t* output) noexcept {
  constexpr std::size_t kBlock = 64;
  for (std::size_t at = 0; at < num_bytes; at += kBlock) {
    const std::size_t count = std::min(kBlock, num_bytes - at);
    std::array<std::int32_t, kBlock> sums;
    sums.fill(kHalfWeight);
    const std::uint8_t* row = rows.first;
    for (std::size_t tap = 0; tap < num_taps; ++tap) {
      for (std::size_t i = 0; i < count; ++i) sums[i] += weights[tap] * row[at + i];
      row += rows.stride;
      if (row == rows.end) row = rows.begin;
    }
    for (std::size_t i = 0; i < count; ++i) output[at + i] = clipped(sums[i]);
  }
}

std::size_t round_up(std::size_t value, std::size_t unit) noexcept {
  return (value + unit - 1) / unit * unit;
}

/// Pairs of weights as resize_avx2.hpp has them, in steps of `step_pairs`.
void split_weights(const AxisWeights& axis, std::size_t step_pairs,
                   std::vector<std::uint32_t>& pairs) {
  pairs.resize(axis.size() * axis.stride());
  std::uint32_t* to = pairs.data();
  for (std::size_t i = 0; i < axis.size(); ++i) {
    const std::int32_t* const weights = axis.weights(i);
    for (std::size_t tap = 0; tap < axis.stride(); tap += 2 * step_pairs, to += 2 * step_pairs) {
      for (std::size_t pair = 0; pair < step_pairs; ++pair) {
        const auto first = static_cast<std::uint32_t>(weights[tap + 2 * pair]);
        const auto second = static_cast<std::uint32_t>(weights[tap + 2 * pair + 1]);
        constexpr std::uint32_t kLow = (1U << kLowBits) - 1;
        to[pair] = first >> kLowBits | second >> kLowBits << 16;
        to[step_pairs + pair] = (first & kLow) | (second & kLow) << 16;
      }
    }
  }
}

}  // namespace

void AxisWeights::compute(const Axis& axis, std::size_t tap_unit) {
  const AxisScale scale(axis.input, axis.output);
  const auto size = static_cast<std::size_t>(axis.count);
  centers_.resize(size);
  first_.resize(size);
  num_taps_.resize(size);
  std::int32_t most = 0;
  for (std::size_t i = 0; i < size; ++i) {
    const auto offset = static_cast<std::int32_t>(axis.reversed ? size - 1 - i : i);
    const Taps taps = scale.taps_of(axis.first + offset);
    centers_[i] = taps.center;
    first_[i] = taps.first;
    num_taps_[i] = taps.count;
    most = std::max(most, num_taps_[i]);
  }
  max_taps_ = static_cast<std::size_t>(most);
  stride_ = round_up(max_taps_, tap_unit);
  // Tap by tap instead of pixel by pixel: loops over many pixels are vectorised.
  triangles_.resize(size * max_taps_);
  sums_.assign(size, 0.0);
  for (std::int32_t tap = 0; tap < most; ++tap) {
    double* const triangles = triangles_.data() + static_cast<std::size_t>(tap) * size;
    for (std::size_t i = 0; i < size; ++i) {
      const double weight = scale.triangle(first_[i] + tap, centers_[i]);
      triangles[i] = tap < num_taps_[i] ? weight : 0.0;
      sums_[i] += triangles[i];
    }
  }
  weights_.assign(size * stride_, 0);
  for (std::size_t tap = 0; tap < max_taps_; ++tap) {
    double* const triangles = triangles_.data() + tap * size;
    for (std::size_t i = 0; i < size; ++i) {
      triangles[i] = scaled_weight(triangles[i], sums_[i]);
    }
    for (std::size_t i = 0; i < size; ++i) {
      weights_[i * stride_ + tap] = static_cast<std::int32_t>(triangles[i]);
    }
  }
}

ResizePlan::Instructions ResizePlan::best() noexcept {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) return Instructions::avx2;
#endif
  return Instructions::portable;
}

void ResizePlan::prepare(const ResizedCrop& crop, std::size_t num_channels) {
  const auto& [box, resized, window, flipped] = crop;
  const bool is_avx2 = instructions_ == Instructions::avx2;
  num_channels_ = num_channels;
  num_outputs_ = static_cast<std::size_t>(window.height);
  row_bytes_ = static_cast<std::size_t>(box.width) * num_channels;
  output_row_bytes_ = static_cast<std::size_t>(window.width) * num_channels;
  first_row_ = static_cast<std::size_t>(window.top);
  num_rows_ = num_outputs_;
  first_byte_ = static_cast<std::size_t>(window.left) * num_channels;
  num_bytes_ = output_row_bytes_;
  scratch_bytes_ = 0;
  // A flip alone is a pass, too, in which a pixel is made of one.
  const bool has_rows_pass = box.width != resized.width || flipped;
  const bool has_columns_pass = box.height != resized.height;
  passes_ = !has_columns_pass                  ? (has_rows_pass ? Passes::rows : Passes::none)
            : !has_rows_pass                   ? Passes::columns
            : columns_come_first(box, resized) ? Passes::columns_then_rows
                                               : Passes::rows_then_columns;
  if (has_columns_pass) {
    columns_.compute({box.height, resized.height, window.top, window.height, false}, 2);
    if (is_avx2) split_weights(columns_, 1, columns_pairs_);
    const std::size_t last = columns_.size() - 1;
    first_row_ = columns_.first(0);
    num_rows_ = columns_.first(last) + columns_.num_taps(last) - first_row_;
  }
  if (has_rows_pass) {
    const std::size_t step_pairs = is_avx2 ? kStepPairs[num_channels - 1] : 1;
    rows_.compute({box.width, resized.width, window.left, window.width, flipped}, 2 * step_pairs);
    const std::size_t left = flipped ? rows_.size() - 1 : 0;
    const std::size_t right = rows_.size() - 1 - left;
    first_byte_ = rows_.first(left) * num_channels;
    num_bytes_ = (rows_.first(right) + rows_.num_taps(right)) * num_channels - first_byte_;
    row_reach_ = row_bytes_;
    if (is_avx2) prepare_rows_avx2();
    // A group of rows is resized as soon as the first of them is needed.
    ring_rows_ = passes_ == Passes::rows_then_columns
                     ? round_up(columns_.max_taps() + kRowGroup - 1, kRowGroup)
                     : kRowGroup;
    scratch_bytes_ = ring_rows_ * output_row_bytes_ + kRowGroup * row_reach_;
  }
}

Box ResizePlan::needed() const noexcept {
  const auto pixels = [&](std::size_t bytes) {
    return static_cast<std::int32_t>(bytes / num_channels_);
  };
  return {static_cast<std::int32_t>(first_row_), pixels(first_byte_),
          static_cast<std::int32_t>(num_rows_), pixels(num_bytes_)};
}

void ResizePlan::prepare_rows_avx2() {
  const std::size_t step_pairs = kStepPairs[num_channels_ - 1];
  split_weights(rows_, step_pairs, rows_pairs_);
  offsets_.resize(rows_.size());
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    offsets_[i] = static_cast<std::int32_t>(rows_.first(i) * num_channels_);
  }
  const std::size_t num_loads = (rows_.stride() / (2 * step_pairs) + 1) / 2;
  const std::size_t last = static_cast<std::size_t>(std::max(offsets_.front(), offsets_.back()));
  row_reach_ =
      std::max(row_bytes_, last + 2 * (num_loads - 1) * kStepBytes[num_channels_ - 1] + kLoadBytes);
}

void ResizePlan::resize_rows(const std::uint8_t* const* rows,
                             std::uint8_t* const* outputs) const noexcept {
#if defined(__x86_64__)
  if (instructions_ == Instructions::avx2) {
    kResizeRowsAvx2[num_channels_ - 1]({offsets_.data(), rows_pairs_.data(), rows_.size(),
                                        rows_.stride() / (2 * kStepPairs[num_channels_ - 1])},
                                       rows, outputs);
    return;
  }
#endif
  constexpr std::array kResizeRow = {resize_row<1>, resize_row<2>, resize_row<3>, resize_row<4>};
  for (std::size_t row = 0; row < kRowGroup; ++row) {
    kResizeRow[num_channels_ - 1](rows_, rows[row], outputs[row]);
  }
}

void ResizePlan::resize_column(std::size_t i, const TapRows& rows, std::size_t num_bytes,
                               std::uint8_t* output) const noexcept {
#if defined(__x86_64__)
  if (instructions_ == Instructions::avx2) {
    resize_column_avx2(rows, columns_pairs_.data() + i * columns_.stride(), columns_.num_taps(i),
                       num_bytes, output);
    return;
  }
#endif
  resize_column_portable(rows, columns_.weights(i), columns_.num_taps(i), num_bytes, output);
}

void ResizePlan::resize(Rows<const std::uint8_t> box, Rows<std::uint8_t> output,
                        std::span<std::uint8_t> scratch) const noexcept {
  switch (passes_) {
    case Passes::none:
      for (std::size_t i = 0; i < num_outputs_; ++i) {
        std::memcpy(output.row(i), box.row(first_row_ + i) + first_byte_, num_bytes_);
      }
      return;
    case Passes::columns:
      for (std::size_t i = 0; i < num_outputs_; ++i) {
        resize_column(i, taps_in_box(i, box), num_bytes_, output.row(i));
      }
      return;
    case Passes::columns_then_rows:
      resize_columns_then_rows(box, output, scratch.data());
      return;
    case Passes::rows:
    case Passes::rows_then_columns:
      resize_rows_first(box, output, scratch.data());
      return;
  }
}

TapRows ResizePlan::taps_in_box(std::size_t i, Rows<const std::uint8_t> box) const noexcept {
  return {box.row(columns_.first(i)) + first_byte_, nullptr, nullptr, box.stride};
}

void ResizePlan::resize_columns_then_rows(Rows<const std::uint8_t> box, Rows<std::uint8_t> output,
                                          std::uint8_t* scratch) const noexcept {
  const Rows<std::uint8_t> spare{scratch, output_row_bytes_};
  const Rows<std::uint8_t> resized{scratch + kRowGroup * output_row_bytes_, row_reach_};
  for (std::size_t begin = 0; begin < num_outputs_; begin += kRowGroup) {
    std::array<const std::uint8_t*, kRowGroup> rows{};
    std::array<std::uint8_t*, kRowGroup> outputs{};
    for (std::size_t k = 0; k < kRowGroup; ++k) {
      const std::size_t i = begin + k;
      rows[k] = resized.row(k);
      outputs[k] = i < num_outputs_ ? output.row(i) : spare.row(k);
      if (i < num_outputs_) {
        resize_column(i, taps_in_box(i, box), num_bytes_, resized.row(k) + first_byte_);
      }
    }
    resize_rows(rows.data(), outputs.data());
  }
}

void ResizePlan::resize_rows_first(Rows<const std::uint8_t> box, Rows<std::uint8_t> output,
                                   std::uint8_t* scratch) const noexcept {
  const bool has_columns_pass = passes_ == Passes::rows_then_columns;
  const Rows<std::uint8_t> ring{scratch, output_row_bytes_};
  std::uint8_t* const ring_end = ring.row(ring_rows_);
  const Rows<std::uint8_t> copies{ring_end, row_reach_};
  for (std::size_t i = 0, done = 0; i < num_outputs_; ++i) {
    const std::size_t begin = has_columns_pass ? columns_.first(i) - first_row_ : i;
    const std::size_t end = has_columns_pass ? begin + columns_.num_taps(i) : i + 1;
    for (; done < end; done += kRowGroup) {
      std::array<std::uint8_t*, kRowGroup> outputs{};
      for (std::size_t k = 0; k < kRowGroup; ++k) {
        const bool is_output = !has_columns_pass && done + k < num_outputs_;
        outputs[k] = is_output ? output.row(done + k) : ring.row((done + k) % ring_rows_);
      }
      resize_rows(group_of_box(done, box, copies).data(), outputs.data());
    }
    if (has_columns_pass) {
      resize_column(i, {ring.row(begin % ring_rows_), ring.data, ring_end, ring.stride},
                    output_row_bytes_, output.row(i));
    }
  }
}

std::array<const std::uint8_t*, kRowGroup> ResizePlan::group_of_box(
    std::size_t begin, Rows<const std::uint8_t> box, Rows<std::uint8_t> copies) const noexcept {
  std::array<const std::uint8_t*, kRowGroup> rows{};
  const std::size_t last = num_rows_ - 1;
  for (std::size_t k = 0; k < kRowGroup; ++k) {
    rows[k] = box.row(first_row_ + std::min(begin + k, last));
  }
  const std::size_t rows_behind = last - std::min(begin + kRowGroup - 1, last);
  if (rows_behind * box.stride + row_bytes_ >= row_reach_) return rows;
  for (std::size_t k = 0; k < kRowGroup; ++k) {
    std::memcpy(copies.row(k) + first_byte_, rows[k] + first_byte_, num_bytes_);
    rows[k] = copies.row(k);
  }
  return rows;
}

}  // namespace chunkio::image
