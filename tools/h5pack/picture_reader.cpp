#include "picture_reader.hpp"

#include <cstddef>
#include <exception>
#include <new>
#include <optional>
#include <span>

#include <chunkio/error.hpp>

#include "axis_order.hpp"
#include "in_quotes.hpp"

namespace h5pack {

using chunkio::Error;
using chunkio::ErrorCode;

PictureReader::PictureReader(const Split& split, const PictureOptions& options)
    : split_(&split),
      options_(options),
      decoder_(options.color, options.orientation, options.max_pixels),
      transform_(options) {}

PictureSize PictureReader::output_size(std::int64_t row) {
  return transform_.output_size(open(row), name(row));
}

std::variant<PictureSize, SkippedPicture> PictureReader::read(std::int64_t row, std::int64_t place,
                                                              const SampleSize& expected,
                                                              std::span<std::uint8_t> target) {
  try {
    return read_or_throw(row, expected, target);
  } catch (const Error& error) {
    if (!is_of_one_picture(error.code())) throw;
    return SkippedPicture{place, row, error.code(), error.what()};
  } catch (const std::bad_alloc&) {
    throw Error(ErrorCode::out_of_resources, "not enough memory to decode " + in_quotes(name(row)) +
                                                 "; use fewer --threads, or a lower --max-pixels");
  } catch (const std::exception& error) {
    return SkippedPicture{place, row, ErrorCode::corrupt_data,
                          "cannot decode " + in_quotes(name(row)) + ": " + escape(error.what())};
  }
}

std::optional<PictureFormat> PictureReader::misnamed(std::int64_t row) const {
  const auto* paths = std::get_if<std::vector<std::string>>(&split_->pictures);
  if (paths == nullptr) return std::nullopt;
  const std::string& path = (*paths)[static_cast<std::size_t>(row - split_->num_before())];
  const std::optional<PictureFormat> said = format_by_name(path);
  const PictureFormat held = decoder_.format();
  return !said || *said == held ? std::nullopt : std::optional(held);
}

PictureSize PictureReader::read_or_throw(std::int64_t row, const SampleSize& expected,
                                         std::span<std::uint8_t> target) {
  const PictureSize size = open(row);
  const PictureSize output = transform_.output_size(size, name(row));
  if (output != expected.size) {
    const std::string other =
        expected.row < 0 ? "the samples have" : in_quotes(name(expected.row)) + " gives";
    throw Error(ErrorCode::unsupported,
                other + " " + to_string(expected.size) + " pixels, but " + in_quotes(name(row)) +
                    " gives " + to_string(output) +
                    " (height x width): bring all to one size with --resize HxW, or --resize S "
                    "with --center-crop HxW or --pad HxW");
  }
  const bool may_shrink = options_.shrink_on_load && options_.resize &&
                          std::holds_alternative<std::vector<std::string>>(split_->pictures);
  const PictureSize decoded = may_shrink ? decoder_.shrink(transform_.resized(size)) : size;
  if (decoded == size && transform_.is_identity(size)) {
    decode(row, target.data());
  } else {
    decoded_.resize(static_cast<std::size_t>(decoded.pixels() * options_.channels()));
    decode(row, decoded_.data());
    transform_.apply(decoded_.data(), decoded, size, target.data());
  }
  return size;
}

PictureSize PictureReader::open(std::int64_t source_row) {
  const std::int64_t row = source_row - split_->num_before();
  const auto* paths = std::get_if<std::vector<std::string>>(&split_->pictures);
  if (paths == nullptr) return std::get<PlanarPictures>(split_->pictures).size;
  const auto index = static_cast<std::size_t>(row);
  std::optional<FileStamp> expected;
  // What could not be found when it was listed may say for itself why.
  if (index < split_->stamps.size() && split_->stamps[index].size >= 0) {
    expected = split_->stamps[index];
  }
  return decoder_.open((*paths)[index], expected);
}

void PictureReader::decode(std::int64_t source_row, std::uint8_t* target) {
  const std::int64_t row = source_row - split_->num_before();
  const auto* planar = std::get_if<PlanarPictures>(&split_->pictures);
  if (planar == nullptr) {
    decoder_.decode(target);
    return;
  }
  const auto plane = static_cast<std::size_t>(planar->size.pixels());
  record_.resize(3 * plane);
  planar->read(row, record_);
  if (options_.color == ColorMode::gray) {
    for (std::size_t i = 0; i < plane; ++i) {
      target[i] = luma(record_[i], record_[plane + i], record_[2 * plane + i]);
    }
  } else {
    reorder_axes(std::as_bytes(std::span(record_)), planar->size, 3, chunkio::Layout::nchw,
                 chunkio::Layout::nhwc, std::as_writable_bytes(std::span(target, 3 * plane)));
  }
}

}  // namespace h5pack
