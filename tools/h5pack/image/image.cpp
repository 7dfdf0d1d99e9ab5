#include "h5pack/image/image.hpp"

#include <string_view>

#include <chunkio/error.hpp>

#include "cli/parse_number.hpp"

namespace h5pack {

namespace {

constexpr std::int64_t kMaxSide = 65535;

std::optional<std::int64_t> parse_side(std::string_view text) {
  const auto side = cli::parse_number<std::int64_t>(text);
  return side && *side >= 1 && *side <= kMaxSide ? side : std::nullopt;
}

std::optional<ImageSize> parse_sides(std::string_view text) {
  const std::size_t cross = text.find_first_of("xX");
  if (cross == std::string_view::npos) return std::nullopt;
  const auto height = parse_side(text.substr(0, cross));
  const auto width = parse_side(text.substr(cross + 1));
  if (!height || !width) return std::nullopt;
  return ImageSize{*height, *width};
}

}  // namespace

std::string to_string(ImageSize size) {
  return std::to_string(size.height) + "x" + std::to_string(size.width);
}

ImageSize parse_image_size(const std::string& text) {
  if (const auto size = parse_sides(text)) return *size;
  throw chunkio::Error(chunkio::ErrorCode::invalid_argument,
                       "'" + text + "' is not a size: write HEIGHTxWIDTH, such as 218x178");
}

Resize parse_resize(const std::string& text) {
  if (const auto side = parse_side(text)) return {*side, {}};
  if (const auto size = parse_sides(text)) return {0, *size};
  throw chunkio::Error(chunkio::ErrorCode::invalid_argument,
                       "'" + text +
                           "' is neither a shorter side, such as 256, nor HEIGHTxWIDTH, "
                           "such as 218x178");
}

std::string to_string(Interpolation interpolation) {
  for (const auto& [name, value] : interpolations()) {
    if (value == interpolation) return name;
  }
  return "";
}

const std::vector<std::pair<std::string, Interpolation>>& interpolations() {
  static const std::vector<std::pair<std::string, Interpolation>> kChoices = {
      {"nearest", Interpolation::nearest},
      {"bilinear", Interpolation::bilinear},
      {"bicubic", Interpolation::bicubic},
      {"area", Interpolation::area},
      {"lanczos", Interpolation::lanczos}};
  return kChoices;
}

}  // namespace h5pack
