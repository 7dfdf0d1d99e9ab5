#include "cli/byte_size.hpp"

#include <cstdint>
#include <limits>
#include <string>

#include <gtest/gtest.h>

#include "support/errors.hpp"

namespace cli {
namespace {

TEST(ParseByteSize, PlainNumbersAreBytes) {
  EXPECT_EQ(parse_byte_size("0"), 0);
  EXPECT_EQ(parse_byte_size("65536"), 65536);
  EXPECT_EQ(parse_byte_size("512B"), 512);
  EXPECT_EQ(parse_byte_size("9223372036854775807"), std::numeric_limits<std::int64_t>::max());
}

TEST(ParseByteSize, BinaryUnitsArePowersOf1024) {
  EXPECT_EQ(parse_byte_size("64KiB"), 65536);
  EXPECT_EQ(parse_byte_size("64MiB"), 67108864);
  EXPECT_EQ(parse_byte_size("3GiB"), std::int64_t{3} << 30);
  EXPECT_EQ(parse_byte_size("2TiB"), std::int64_t{2} << 40);
  EXPECT_EQ(parse_byte_size("512k"), 524288);
  EXPECT_EQ(parse_byte_size("1G"), std::int64_t{1} << 30);
}

TEST(ParseByteSize, DecimalUnitsArePowersOf1000) {
  EXPECT_EQ(parse_byte_size("1KB"), 1000);
  EXPECT_EQ(parse_byte_size("1GB"), 1'000'000'000);
  EXPECT_EQ(parse_byte_size("2TB"), 2'000'000'000'000);
}

TEST(ParseByteSize, CaseAndBlanksDoNotMatter) {
  EXPECT_EQ(parse_byte_size("4 MiB"), 4194304);
  EXPECT_EQ(parse_byte_size("4mib"), 4194304);
  EXPECT_EQ(parse_byte_size("4\tmB"), 4'000'000);
}

TEST(ParseByteSize, FractionsAreExactAndRoundDown) {
  EXPECT_EQ(parse_byte_size("1.5GiB"), std::int64_t{3} << 29);
  EXPECT_EQ(parse_byte_size("0.29KB"), 290);
  EXPECT_EQ(parse_byte_size("1.1GB"), 1'100'000'000);
  EXPECT_EQ(parse_byte_size("0.0001KiB"), 0);
  EXPECT_EQ(parse_byte_size("2.0"), 2);
  EXPECT_EQ(parse_byte_size("0.9999999999999999999999TiB"), 1099511627776 * 999999 / 1000000);
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
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(1023), "1023 B");
  EXPECT_EQ(format_bytes(1024), "1.0 KiB");
  EXPECT_EQ(format_bytes(4 << 20), "4.0 MiB");
  EXPECT_EQ(format_bytes(std::int64_t{1} << 30), "1.0 GiB");
  EXPECT_EQ(format_bytes((std::int64_t{1} << 20) - 1), "1.0 MiB");
  EXPECT_EQ(format_bytes(std::numeric_limits<std::int64_t>::max()), "8.0 EiB");
}

TEST(FormatBytes, WholeSizesSurviveTheRoundTrip) {
  for (int shift = 0; shift < 50; ++shift) {
    const std::int64_t bytes = std::int64_t{1} << shift;
    EXPECT_EQ(parse_byte_size(format_bytes(bytes)), bytes);
  }
}

}  // namespace
}  // namespace cli
