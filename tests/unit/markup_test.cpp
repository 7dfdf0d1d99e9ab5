#include "markup.hpp"

#include <gtest/gtest.h>

#include "fitted_text.hpp"

namespace {

using namespace bench;

TEST(Markup, EscapesWhatWouldEndATextOrAnAttribute) {
  EXPECT_EQ(escape_html("<a href=\"x\">&'"), "&lt;a href=&quot;x&quot;&gt;&amp;'");
  EXPECT_EQ(escape_html("two\nlines"), "two\nlines");
  EXPECT_EQ(escape_html("\x01\x1b[31m"), "\\x01\\x1b[31m");
  EXPECT_EQ(escape_html("\xff\xc3"), "\\xff\\xc3");
  EXPECT_EQ(escape_html("4 × größer"), "4 × größer");
  // The mark that reverses what follows.
  EXPECT_EQ(escape_html("\xe2\x80\xae"), "\\xe2\\x80\\xae");
}

TEST(Markup, EscapesEverywhere) {
  Markup html;
  html.open("p", {{"title", "\"><script>"}}).text("<b>").leaf("i", "&").close();
  EXPECT_EQ(html.str(), "<p title=\"&quot;&gt;&lt;script&gt;\">&lt;b&gt;<i>&amp;</i></p>");
}

TEST(Markup, ClosesTheInnermost) {
  Markup html;
  html.open("a").open("b").close().empty("rect", {{"x", "1"}}).close();
  EXPECT_EQ(html.str(), "<a><b></b><rect x=\"1\"/></a>");
}

TEST(Markup, CoordinatesAreShort) {
  EXPECT_EQ(coordinate(12), "12");
  EXPECT_EQ(coordinate(12.5), "12.5");
  EXPECT_EQ(coordinate(1.0 / 3), "0.33");
  EXPECT_EQ(coordinate(-0.001), "0");
  EXPECT_EQ(coordinate(100), "100");
}

TEST(FittedText, CountsCharactersNotBytes) {
  EXPECT_EQ(characters("größe"), 5U);
  EXPECT_EQ(fitted("größe", 5), "größe");
  EXPECT_EQ(fitted("größer", 5), "größ…");
  EXPECT_EQ(fitted("abc", 1), "…");
}

TEST(FittedText, BreaksAtBlanks) {
  using Lines = std::vector<std::string>;
  EXPECT_EQ(fitted_lines("one two three", 7, 2), (Lines{"one two", "three"}));
  EXPECT_EQ(fitted_lines("one two three", 8, 2), (Lines{"one two", "three"}));
  EXPECT_EQ(fitted_lines("one two three four", 7, 2), (Lines{"one two", "three …"}));
  EXPECT_EQ(fitted_lines("oneverylongword two", 7, 2), (Lines{"onever…"}));
  EXPECT_EQ(fitted_lines("short", 7, 2), (Lines{"short"}));
  EXPECT_EQ(fitted_lines("", 7, 2), (Lines{""}));
}

}  // namespace
