/// How many images of which size, as a person writes it: "10000x64x64x3".
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace cli {

struct ImageShape {
  std::int64_t num_samples = 0, height = 0, width = 0, channels = 0;

  friend bool operator==(const ImageShape&, const ImageShape&) = default;
};

/// NxHxWxC. Absent if `text` is anything else, or a number is below 1. Pure.
[[nodiscard]] std::optional<ImageShape> parse_image_shape(std::string_view text);

}  // namespace cli
