#include "device/picture_writer.hpp"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

namespace chunkio::device {
namespace {

std::size_t pixels(std::int32_t height, std::int32_t width) noexcept {
  return static_cast<std::size_t>(height) * static_cast<std::size_t>(width);
}

/// Copies `count` groups of `size` bytes, the last first if `flipped`.
void copy_groups(const std::uint8_t* from, std::size_t count, std::size_t size, bool flipped,
                 std::uint8_t* to) noexcept {
  if (!flipped) {
    std::memcpy(to, from, count * size);
  } else if (size == 1) {
    std::reverse_copy(from, from + count, to);
  } else {
    for (std::size_t i = 0; i < count; ++i) {
      for (std::size_t j = 0; j < size; ++j) to[i * size + j] = from[(count - 1 - i) * size + j];
    }
  }
}

}  // namespace

PictureWriter::PictureWriter(const NormalizePlan& plan, LineConverter::Instructions instructions)
    : plan_(plan),
      converter_(plan.channels, plan.dtype, instructions),
      num_channels_(plan.channels.size()),
      picture_pixels_(pixels(plan.crop.picture_height, plan.crop.picture_width)),
      output_pixels_(pixels(plan.crop.height, plan.crop.width)),
      element_bytes_(size_of(plan.dtype)) {}

void PictureWriter::write_rows(const std::uint8_t* picture, const Crop& crop,
                               std::int64_t first_row, std::int64_t num_rows,
                               std::byte* output) const {
  const CropPlan& sizes = plan_.crop;
  // Rows that are whole rows of the picture follow each other there, too.
  const bool whole_rows = crop.left == 0 && sizes.width == sizes.picture_width && !crop.flipped;
  std::vector<std::uint8_t> staged;
  const std::int64_t end = first_row + num_rows;
  for (std::int64_t row = first_row; row < end;) {
    Run run = run_of_row(crop, row++);
    const std::int64_t picture_row = crop.top + row;  // of the next
    if (whole_rows && run.num_pixels > 0) {
      const std::int64_t more =
          std::clamp<std::int64_t>(sizes.picture_height - picture_row, 0, end - row);
      run.num_pixels += static_cast<std::size_t>(more * sizes.width);
      row += more;
    }
    if (is_direct(run)) {
      convert_direct(picture, run, output);
      continue;
    }
    staged.resize(run.size() * num_channels_);
    stage(picture, run, staged);
    convert_staged(staged, run, output);
  }
}

PictureWriter::Run PictureWriter::run_of_row(const Crop& crop, std::int64_t row) const noexcept {
  const CropPlan& sizes = plan_.crop;
  const std::int64_t width = sizes.width;
  Run run{.first_output = static_cast<std::size_t>(row * width), .flipped = crop.flipped};
  const std::int64_t picture_row = crop.top + row;
  // Columns [begin, end) of the picture are seen.
  const std::int32_t begin = std::max(crop.left, 0);
  const std::int32_t end = std::min(crop.left + sizes.width, sizes.picture_width);
  if (picture_row < 0 || picture_row >= sizes.picture_height || end <= begin) {
    run.zeros_before = static_cast<std::size_t>(width);
    return run;
  }
  run.zeros_before = static_cast<std::size_t>(begin - crop.left);
  run.first_picture = static_cast<std::size_t>(picture_row * sizes.picture_width + begin);
  run.num_pixels = static_cast<std::size_t>(end - begin);
  run.zeros_after = static_cast<std::size_t>(crop.left + sizes.width - end);
  if (crop.flipped) std::swap(run.zeros_before, run.zeros_after);
  return run;
}

bool PictureWriter::is_direct(const Run& run) const noexcept {
  return plan_.input == plan_.output && !run.flipped && run.num_pixels == run.size();
}

void PictureWriter::convert_direct(const std::uint8_t* picture, const Run& run,
                                   std::byte* output) const {
  if (plan_.output == Layout::nhwc) {
    converter_.convert_interleaved(
        {picture + run.first_picture * num_channels_, run.num_pixels * num_channels_},
        output + run.first_output * num_channels_ * element_bytes_);
    return;
  }
  for (std::size_t c = 0; c < num_channels_; ++c) {
    converter_.convert_plane(c, {picture + c * picture_pixels_ + run.first_picture, run.num_pixels},
                             plane_output(output, c, run));
  }
}

// Brings the uint8 pixels of the run into the axis order of the output: planes of run.size() bytes,
// or pixels of C bytes.
void PictureWriter::stage(const std::uint8_t* picture, const Run& run,
                          std::span<std::uint8_t> staged) const {
  if (run.num_pixels < run.size()) std::memset(staged.data(), 0, staged.size());
  if (run.num_pixels == 0) return;
  const bool from_planes = plan_.input == Layout::nchw;
  const bool to_planes = plan_.output == Layout::nchw;
  if (!from_planes) {
    const std::uint8_t* const from = picture + run.first_picture * num_channels_;
    if (to_planes) {
      converter_.split_channels({from, run.num_pixels * num_channels_},
                                staged.data() + run.zeros_before, run.size(), run.flipped);
    } else {
      copy_groups(from, run.num_pixels, num_channels_, run.flipped,
                  staged.data() + run.zeros_before * num_channels_);
    }
    return;
  }
  for (std::size_t c = 0; c < num_channels_; ++c) {
    const std::uint8_t* const from = picture + c * picture_pixels_ + run.first_picture;
    if (to_planes) {
      copy_groups(from, run.num_pixels, 1, run.flipped,
                  staged.data() + c * run.size() + run.zeros_before);
      continue;
    }
    for (std::size_t i = 0; i < run.num_pixels; ++i) {
      const std::size_t source = run.flipped ? run.num_pixels - 1 - i : i;
      staged[(run.zeros_before + i) * num_channels_ + c] = from[source];
    }
  }
}

void PictureWriter::convert_staged(std::span<const std::uint8_t> staged, const Run& run,
                                   std::byte* output) const {
  if (plan_.output == Layout::nhwc) {
    converter_.convert_interleaved(staged,
                                   output + run.first_output * num_channels_ * element_bytes_);
    return;
  }
  for (std::size_t c = 0; c < num_channels_; ++c) {
    converter_.convert_plane(c, staged.subspan(c * run.size(), run.size()),
                             plane_output(output, c, run));
  }
}

std::byte* PictureWriter::plane_output(std::byte* output, std::size_t channel,
                                       const Run& run) const noexcept {
  return output + (channel * output_pixels_ + run.first_output) * element_bytes_;
}

}  // namespace chunkio::device
