#include "cli/image_shape.hpp"

#include <gtest/gtest.h>

namespace {

using cli::ImageShape;
using cli::parse_image_shape;

TEST(ImageShape, IsFourNumbers) {
  EXPECT_EQ(parse_image_shape("10000x64x32x3"), (ImageShape{10000, 64, 32, 3}));
  for (const char* const text :
       {"", "x", "10x64x32", "10x64x32x", "10x64x32x3x1", "10x64x32x0", "-1x64x32x3", "10X64X32X3",
        "10x64x32x3 ", " 10x64x32x3", "10x 64x32x3", "1.5x64x32x3", "99999999999999999999x1x1x1"}) {
    EXPECT_EQ(parse_image_shape(text), std::nullopt) << text;
  }
}

}  // namespace
