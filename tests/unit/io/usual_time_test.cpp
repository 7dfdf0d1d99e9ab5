#include "io/usual_time.hpp"

#include <random>

#include <gtest/gtest.h>

namespace chunkio::io {
namespace {

TEST(UsualTime, AFewThatHangDoNotMoveIt) {
  UsualTime time;
  EXPECT_EQ(time.seconds(), 0);
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> usual(0.008, 0.012);
  for (int i = 0; i < 2000; ++i) {
    time.add(i % 20 == 19 ? 10 : usual(random));
    EXPECT_GT(time.seconds(), i < 20 ? 0.004 : 0.007);
    EXPECT_LT(time.seconds(), i < 20 ? 0.020 : 0.016);
  }
}

TEST(UsualTime, IsSoonFarFromAFirstFigureThatWasUnusual) {
  UsualTime time;
  time.add(0.01);
  for (int i = 0; i < 20; ++i) time.add(0.1);
  EXPECT_GT(time.seconds(), 0.09);
  EXPECT_EQ(time.count(), 21);
}

TEST(UsualTime, FollowsWhatChanges) {
  UsualTime time;
  for (const double seconds : {0.01, 1.0, 0.03}) {
    for (int i = 0; i < 100; ++i) time.add(seconds);
    EXPECT_NEAR(time.seconds(), seconds, 0.1 * seconds);
  }
}

}  // namespace
}  // namespace chunkio::io
