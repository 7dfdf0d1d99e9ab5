#include "h5pack/image/orientation.hpp"

#include <cstdint>
#include <span>
#include <vector>

#include <gtest/gtest.h>

namespace h5pack {
namespace {

using Pixels = std::vector<std::uint8_t>;

TEST(Orientation, MovesCornersWhereExifSays) {
  // 1 2 3
  // 4 5 6
  const Pixels stored = {1, 2, 3, 4, 5, 6};
  const std::vector<Pixels> upright = {{1, 2, 3, 4, 5, 6}, {3, 2, 1, 6, 5, 4}, {6, 5, 4, 3, 2, 1},
                                       {4, 5, 6, 1, 2, 3}, {1, 4, 2, 5, 3, 6}, {4, 1, 5, 2, 6, 3},
                                       {6, 3, 5, 2, 4, 1}, {3, 6, 2, 5, 1, 4}};
  for (int orientation = 1; orientation <= 8; ++orientation) {
    Pixels out(6);
    orient_pixels(stored.data(), {2, 3}, 1, orientation, out.data());
    EXPECT_EQ(out, upright[static_cast<std::size_t>(orientation - 1)]) << orientation;
    EXPECT_EQ(oriented_size({2, 3}, orientation),
              orientation < 5 ? (ImageSize{2, 3}) : (ImageSize{3, 2}));
  }
}

TEST(Orientation, DamagedExifReadsAsUpright) {
  const Pixels whole = {'I', 'I', 42, 0, 8, 0, 0, 0, 1, 0, 0x12, 1, 3,
                        0,   1,   0,  0, 0, 6, 0, 0, 0, 0, 0,    0, 0};
  EXPECT_EQ(exif_orientation(whole), 6);
  for (std::size_t size = 0; size < 22; ++size) {
    EXPECT_EQ(exif_orientation(std::span(whole).first(size)), 1) << size;
  }
  for (std::size_t i = 0; i < 18; ++i) {
    Pixels damaged = whole;
    damaged[i] ^= 0xFF;
    const int orientation = exif_orientation(damaged);
    EXPECT_TRUE(orientation == 1 || orientation == 6) << i;
  }
}

}  // namespace
}  // namespace h5pack
