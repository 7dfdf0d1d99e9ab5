#include "io/merged_ranges.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <stop_token>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <chunkio/error.hpp>

#include "support/byte_sources.hpp"
#include "support/errors.hpp"

namespace chunkio::io {
namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 20;

/// 40 MiB, of which each byte is its own number modulo 251; notes what is asked for.
class NumberedBytes final : public ByteSource {
 public:
  [[nodiscard]] const std::string& name() const noexcept override { return name_; }
  [[nodiscard]] std::int64_t size() const noexcept override { return 40 * kMiB; }
  [[nodiscard]] std::uint64_t version() const override { return 0; }
  ReadTime read_at(std::int64_t offset, std::span<std::byte> out,
                   const std::stop_token& stop) const override {
    {
      const std::lock_guard lock(mutex_);
      asked_.insert({offset, offset + std::ssize(out)});
    }
    while (hangs && !stop.stop_requested()) std::this_thread::yield();
    if (hangs) throw Error(ErrorCode::cancelled, "stopped");
    if (offset == fails_at) throw Error(ErrorCode::io_failed, "the server is gone");
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = byte_at(offset + std::int64_t(i));
    return {};
  }

  static std::byte byte_at(std::int64_t offset) { return static_cast<std::byte>(offset % 251); }
  [[nodiscard]] std::set<std::pair<std::int64_t, std::int64_t>> asked() const {
    const std::lock_guard lock(mutex_);
    return asked_;
  }

  bool hangs = false;
  std::int64_t fails_at = -1;

 private:
  std::string name_ = "numbers";
  mutable std::mutex mutex_;
  mutable std::set<std::pair<std::int64_t, std::int64_t>> asked_;
};

void expect_bytes(const ByteSource& source, std::int64_t offset, std::int64_t count) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(count));
  source.read_at(offset, bytes, {});
  for (std::int64_t i = 0; i < count; ++i) {
    ASSERT_EQ(bytes[static_cast<std::size_t>(i)], NumberedBytes::byte_at(offset + i)) << i;
  }
}

TEST(MergedRanges, RangesAreReadOnceInRequestsOfAtMost12MiB) {
  const auto file = std::make_shared<NumberedBytes>();
  const std::vector<ByteRange> ranges{{5, 105}, {kMiB, 31 * kMiB}};
  const MergedRanges merged(file, ranges, 3);
  expect_bytes(merged, 5, 10);
  expect_bytes(merged, 50, 55);
  expect_bytes(merged, kMiB, 1);
  expect_bytes(merged, 12 * kMiB, 2 * kMiB);  // the end of a request and the beginning of another
  expect_bytes(merged, 31 * kMiB - 7, 7);
  const std::set<std::pair<std::int64_t, std::int64_t>> requests{
      {5, 105}, {kMiB, 13 * kMiB}, {13 * kMiB, 25 * kMiB}, {25 * kMiB, 31 * kMiB}};
  EXPECT_EQ(file->asked(), requests);
}

TEST(MergedRanges, NoMoreRequestsThanAllowedAreUnderWay) {
  const auto file = std::make_shared<NumberedBytes>();
  const std::vector<ByteRange> ranges{{0, 1}, {10, 11}, {20, 21}, {30, 31}};
  const MergedRanges merged(file, ranges, 2);
  expect_bytes(merged, 0, 1);
  EXPECT_FALSE(file->asked().contains({20, 21}));
  expect_bytes(merged, 10, 1);  // so that of the first is not needed any more
  expect_bytes(merged, 20, 1);
  EXPECT_TRUE(file->asked().contains({20, 21}));
}

TEST(MergedRanges, WhatWasNotSaidIsReadAsItIs) {
  const auto file = std::make_shared<NumberedBytes>();
  const std::vector<ByteRange> ranges{{1000, 2000}};
  const MergedRanges merged(file, ranges, 2);
  expect_bytes(merged, 0, 10);       // before
  expect_bytes(merged, 900, 200);    // across the beginning
  expect_bytes(merged, 1990, 20);    // across the end
  expect_bytes(merged, 5000, 10);    // behind
  expect_bytes(merged, 1000, 1000);  // again, after all requests are gone
}

TEST(MergedRanges, AnErrorIsThatOfItsRequest) {
  const auto file = std::make_shared<NumberedBytes>();
  file->fails_at = 10;
  const std::vector<ByteRange> ranges{{0, 5}, {10, 15}, {20, 25}};
  const MergedRanges merged(file, ranges, 3);
  expect_bytes(merged, 0, 5);
  std::vector<std::byte> bytes(5);
  for (int i = 0; i < 2; ++i) {
    test::expect_error(ErrorCode::io_failed, {"the server is gone"},
                       [&] { merged.read_at(10, bytes, {}); });
  }
  expect_bytes(merged, 20, 5);
}

TEST(MergedRanges, WaitingEndsWithItsStopTokenAndRequestsWithTheirOwner) {
  const auto file = std::make_shared<NumberedBytes>();
  file->hangs = true;
  const std::vector<ByteRange> ranges{{0, 5}, {10, 15}};
  const MergedRanges merged(file, ranges, 2);
  std::stop_source stop;
  stop.request_stop();
  std::vector<std::byte> bytes(5);
  test::expect_error(ErrorCode::cancelled, {"numbers"},
                     [&] { merged.read_at(0, bytes, stop.get_token()); });
}

}  // namespace
}  // namespace chunkio::io
