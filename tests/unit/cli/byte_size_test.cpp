#include "cli/byte_size.hpp"

#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "support/errors.hpp"

namespace cli {
namespace {

constexpr std::int64_t kKiB = 1024, kMiB = kKiB << 10, kGiB = kKiB << 20, kTiB = kKiB << 30;
constexpr std::int64_t kLargest = std::numeric_limits<std::int64_t>::max();

TEST(ParseByteSize, TakesUnitsOf1024AndOf1000InAnyCaseAndRoundsFractionsDown) {
  const std::vector<std::pair<std::string, std::int64_t>> cases = {
      {"0", 0},
      {"65536", 65536},
      {"512B", 512},
      {"9223372036854775807", kLargest},
      {"64KiB", 64 * kKiB},
      {"64MiB", 64 * kMiB},
      {"3GiB", 3 * kGiB},
      {"2TiB", 2 * kTiB},
      {"512k", 512 * kKiB},
      {"1G", kGiB},
      {"1KB", 1000},
      {"1GB", 1'000'000'000},
      {"2TB", 2'000'000'000'000},
      {"4 MiB", 4 * kMiB},
      {"4mib", 4 * kMiB},
      {"4\tmB", 4'000'000},
      {"1.5GiB", 3 * kGiB / 2},
      {"0.29KB", 290},
      {"1.1GB", 1'100'000'000},
      {"0.0001KiB", 0},
      {"2.0", 2},
      {"0.9999999999999999999999TiB", kTiB * 999999 / 1000000}};
  for (const auto& [text, bytes] : cases) EXPECT_EQ(parse_byte_size(text), bytes) << text;
}

TEST(ParseByteSize, RefusesNonsenseAndNamesItInOneLine) {
  for (const std::string text :
       {"", " ", "abc", "-1", "+1", "1.", ".5", "1.5", "1.5B", "12x", "1 2", "0x10", "1e6",
        "64MiB ", " 64", "1,5GiB", "9223372036854775808", "8388608TiB", "9223373TB"}) {
    chunkio::test::expect_error(chunkio::ErrorCode::invalid_argument, {"'" + text + "'", "64MiB"},
                                [&] { parse_byte_size(text); });
  }
  chunkio::test::expect_error(chunkio::ErrorCode::invalid_argument, {},
                              [] { parse_byte_size("1\nMiB"); });
}

TEST(FormatBytes, ChoosesTheUnitThatReadsWell) {
  const std::vector<std::pair<std::int64_t, std::string>> cases = {
      {0, "0 B"},        {1023, "1023 B"},      {kKiB, "1.0 KiB"},    {4 * kMiB, "4.0 MiB"},
      {kGiB, "1.0 GiB"}, {kMiB - 1, "1.0 MiB"}, {kLargest, "8.0 EiB"}};
  for (const auto& [bytes, text] : cases) EXPECT_EQ(format_bytes(bytes), text);
}

TEST(FormatBytes, WholeSizesSurviveTheRoundTrip) {
  for (int shift = 0; shift < 50; ++shift) {
    const std::int64_t bytes = std::int64_t{1} << shift;
    EXPECT_EQ(parse_byte_size(format_bytes(bytes)), bytes);
  }
}

}  // namespace
}  // namespace cli
