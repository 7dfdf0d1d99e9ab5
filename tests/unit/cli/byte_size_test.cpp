#include "cli/byte_size.hpp"

#include <cstdint>
#include <limits>
#include <string>

#include <gtest/gtest.h>

#include <chunkio/error.hpp>

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

TEST(ParseByteSize, RefusesNonsenseAndNamesIt) {
  for (const std::string text : {"",
                                 " ",
                                 "abc",
                                 "MiB",
                                 "-1",
                                 "+1",
                                 "1.",
                                 ".5",
                                 "1.5",
                                 "1.5B",
                                 "12x",
                                 "1KiBB",
                                 "1 2",
                                 "0x10",
                                 "1e6",
                                 "64MiB ",
                                 " 64",
                                 "1,5GiB",
                                 "1iB",
                                 "inf",
                                 "nan",
                                 "9223372036854775808",
                                 "99999999999999999999",
                                 "8388608TiB",
                                 "9223373TB"}) {
    try {
      parse_byte_size(text);
      ADD_FAILURE() << "accepted '" << text << "'";
    } catch (const chunkio::Error& error) {
      EXPECT_EQ(error.code(), chunkio::ErrorCode::invalid_argument) << text;
      EXPECT_NE(std::string(error.what()).find("'" + text + "'"), std::string::npos)
          << error.what();
      EXPECT_NE(std::string(error.what()).find("64MiB"), std::string::npos) << error.what();
    }
  }
}

TEST(ParseByteSize, MessageStaysOnOneLine) {
  try {
    parse_byte_size("1\nMiB");
    ADD_FAILURE() << "accepted a line break";
  } catch (const chunkio::Error& error) {
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
  }
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
