#include "cli/escape.hpp"

#include <string>

#include <gtest/gtest.h>

namespace cli {
namespace {

TEST(Escape, LeavesPrintableTextAlone) {
  EXPECT_EQ(escape("a photo (1).jpg"), "a photo (1).jpg");
  EXPECT_EQ(escape("caf\xc3\xa9 \xe7\x8c\xab \xf0\x9f\x90\x88"),
            "caf\xc3\xa9 \xe7\x8c\xab \xf0\x9f\x90\x88");
}

TEST(Escape, ControlCharactersCannotActOnATerminal) {
  EXPECT_EQ(escape("a\nb\tc\rd"), "a\\nb\\tc\\rd");
  EXPECT_EQ(escape("\x1b[31mred\x7f"), "\\x1b[31mred\\x7f");
  EXPECT_EQ(escape(std::string("a\0b", 3)), "a\\x00b");
  EXPECT_EQ(escape("\xc2\x9b"
                   "31m"),
            "\\xc2\\x9b31m");                                          // C1 "control sequence"
  EXPECT_EQ(escape("\xe2\x80\xaegpj.exe"), "\\xe2\\x80\\xaegpj.exe");  // right-to-left override
}

TEST(Escape, BytesThatAreNoUtf8BecomeHex) {
  EXPECT_EQ(escape("\xff"), "\\xff");
  EXPECT_EQ(escape("\xc3"), "\\xc3");                    // cut off
  EXPECT_EQ(escape("\xc0\xaf"), "\\xc0\\xaf");           // overlong
  EXPECT_EQ(escape("\xed\xa0\x80"), "\\xed\\xa0\\x80");  // surrogate
  EXPECT_EQ(escape("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");
}

TEST(Escape, DoingItTwiceChangesNothing) {
  const std::string once = escape("x\n\xff\\y");
  EXPECT_EQ(escape(once), once);
}

}  // namespace
}  // namespace cli
