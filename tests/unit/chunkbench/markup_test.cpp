#include "chunkbench/markup.hpp"

#include <gtest/gtest.h>

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

}  // namespace
