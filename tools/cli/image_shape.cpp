#include "cli/image_shape.hpp"

#include <charconv>
#include <system_error>

namespace cli {

std::optional<ImageShape> parse_image_shape(std::string_view text) {
  ImageShape shape;
  const char* at = text.data();
  const char* const end = at + text.size();
  for (std::int64_t* const length :
       {&shape.num_samples, &shape.height, &shape.width, &shape.channels}) {
    if (length != &shape.num_samples && (at == end || *at++ != 'x')) return std::nullopt;
    const auto [next, error] = std::from_chars(at, end, *length);
    if (error != std::errc() || *length < 1) return std::nullopt;
    at = next;
  }
  if (at != end) return std::nullopt;
  return shape;
}

}  // namespace cli
