#include "base/host_memory.hpp"

#include <cstdint>
#include <limits>
#include <utility>

#include <gtest/gtest.h>

#include "support/errors.hpp"

namespace chunkio::base {
namespace {

TEST(HostBuffer, IsZeroedWritableAndAligned) {
  for (const std::size_t size : {std::size_t{1}, std::size_t{4097}, (std::size_t{2} << 20) + 1}) {
    HostBuffer buffer(size);
    ASSERT_EQ(buffer.size(), size);
    const auto address = reinterpret_cast<std::uintptr_t>(buffer.data());
    EXPECT_EQ(address % (size >= (std::size_t{2} << 20) ? std::size_t{2} << 20 : 4096), 0u);
    EXPECT_EQ(buffer.data()[0], std::byte{0});
    EXPECT_EQ(buffer.data()[size - 1], std::byte{0});
    buffer.data()[size - 1] = std::byte{1};
    EXPECT_GE(HostBuffer::footprint(size), size);
  }
}

TEST(HostBuffer, MovesItsMemory) {
  HostBuffer a(10);
  std::byte* data = a.data();
  HostBuffer b(std::move(a));
  EXPECT_EQ(b.data(), data);
  EXPECT_EQ(a.data(), nullptr);  // NOLINT(bugprone-use-after-move): that is what is tested
  HostBuffer c(20);
  c = std::move(b);
  EXPECT_EQ(c.data(), data);
  EXPECT_EQ(c.size(), 10u);
}

TEST(HostBuffer, EmptyBufferTakesNothing) {
  HostBuffer buffer(0);
  EXPECT_EQ(buffer.data(), nullptr);
  EXPECT_EQ(HostBuffer::footprint(0), 0u);
}

TEST(HostBuffer, RefusalIsAnError) {
  test::expect_error(ErrorCode::out_of_resources, {},
                     [] { HostBuffer buffer(std::numeric_limits<std::size_t>::max() / 4); });
}

}  // namespace
}  // namespace chunkio::base
