#include "base/streaming_copy.hpp"

#include <cstddef>
#include <initializer_list>
#include <vector>

#include <gtest/gtest.h>

namespace chunkio::base {
namespace {

// Every alignment of both ends and every size around the cache line, with guards on both sides.
class CopyTest : public testing::TestWithParam<Stores> {};

TEST_P(CopyTest, CopiesExactlyTheBytesForEveryAlignmentAndSize) {
  std::vector<std::byte> source(1024);
  for (std::size_t i = 0; i < source.size(); ++i) source[i] = static_cast<std::byte>(i * 37 + 11);
  constexpr std::byte kGuard{0xEE};
  for (std::size_t to = 0; to < 64; to += 3) {
    for (std::size_t from = 0; from < 64; from += 5) {
      for (const std::size_t size : std::initializer_list<std::size_t>{
               0, 1, 15, 16, 17, 63, 64, 65, 127, 128, 129, 200, 511, 777}) {
        alignas(64) std::byte target[1024];
        for (std::byte& byte : target) byte = kGuard;
        copy(target + to, source.data() + from, size, GetParam());
        store_fence();
        for (std::size_t i = 0; i < sizeof(target); ++i) {
          const bool inside = i >= to && i < to + size;
          ASSERT_EQ(target[i], inside ? source[from + i - to] : kGuard)
              << "to " << to << " from " << from << " size " << size << " byte " << i;
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Stores, CopyTest, testing::Values(Stores::cached, Stores::streaming),
                         [](const auto& instance) {
                           return instance.param == Stores::cached ? "cached" : "streaming";
                         });

}  // namespace
}  // namespace chunkio::base
