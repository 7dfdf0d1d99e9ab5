#include "h5pack/sources/csv_source.hpp"

#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "h5pack/sources/csv_reader.hpp"
#include "support/source_files.hpp"

namespace h5pack {
namespace {

std::vector<Names> parse(const std::string& text) {
  CsvReader reader(text, "t.csv");
  std::vector<Names> records;
  Names fields;
  while (reader.next(fields)) records.push_back(fields);
  return records;
}

TEST(CsvReader, SplitsAsRfc4180Says) {
  EXPECT_EQ(parse("a,b\n1,2\n"), (std::vector<Names>{{"a", "b"}, {"1", "2"}}));
  EXPECT_EQ(parse("a,b\r\n1,2"), (std::vector<Names>{{"a", "b"}, {"1", "2"}}));
  EXPECT_EQ(parse("\xEF\xBB\xBF"
                  "a\n"),
            (std::vector<Names>{{"a"}}));
  EXPECT_EQ(parse("\"a,b\",\"say \"\"hi\"\"\",\"two\r\nlines\"\n"),
            (std::vector<Names>{{"a,b", "say \"hi\"", "two\r\nlines"}}));
  EXPECT_EQ(parse(",\n,,\n"), (std::vector<Names>{{"", ""}, {"", "", ""}}));
  EXPECT_EQ(parse("a\n\n\r\nb"), (std::vector<Names>{{"a"}, {"b"}}));
  EXPECT_EQ(parse("\"\"\n"), (std::vector<Names>{{""}}));
  EXPECT_EQ(parse(" a , b \n"), (std::vector<Names>{{" a ", " b "}}));
  EXPECT_TRUE(parse("").empty());
}

TEST(CsvReader, CountsLinesInsideQuotes) {
  CsvReader reader("h\n\"a\nb\"\nc\n", "t.csv");
  Names fields;
  std::vector<std::int64_t> lines;
  while (reader.next(fields)) lines.push_back(reader.line());
  EXPECT_EQ(lines, (std::vector<std::int64_t>{1, 2, 4}));
}

TEST(CsvReader, MalformedQuotesAreLocated) {
  expect_error(ErrorCode::corrupt_data, {"'t.csv' line 2", "quote"},
               [] { (void)parse("a\nb\"c\n"); });
  expect_error(ErrorCode::corrupt_data, {"'t.csv' line 2", "closing quote"},
               [] { (void)parse("a\n\"b\"c\n"); });
  expect_error(ErrorCode::corrupt_data, {"'t.csv' line 2", "never closed"},
               [] { (void)parse("a\n\"b\nc"); });
  expect_error(ErrorCode::corrupt_data, {"'t.csv'", "zero bytes", "UTF-8"},
               [] { (void)parse(std::string("a\nb\0c", 5)); });
}

class CsvSource : public SourceTest {
 protected:
  CsvSource() {
    for (const char* name : {"1.jpg", "sub/2.jpg", "with, comma.jpg"})
      write_text(scratch_.path() / name, "x");
  }
  Listing list(const std::string& text, const CsvOptions& options = {}) {
    write_text(scratch_.path() / "list.csv", text);
    return list_csv(scratch_.file("list.csv"), options);
  }
  void expect_failure(const std::string& text, ErrorCode code,
                      const std::vector<std::string>& parts, const CsvOptions& options = {}) {
    expect_error(code, parts, [&] { (void)list(text, options); });
  }
};

TEST_F(CsvSource, NamesBecomeSortedClassesInFileOrder) {
  const Listing listing = list("path,label\nsub/2.jpg,dog\n\"with, comma.jpg\",cat\n1.jpg,dog\n");
  EXPECT_FALSE(listing.output_is_folder);
  EXPECT_EQ(listing.class_names, (Names{"cat", "dog"}));
  EXPECT_EQ(relative_paths(listing.splits[0], root()),
            (Names{"sub/2.jpg", "with, comma.jpg", "1.jpg"}));
  EXPECT_EQ(field_values<std::int64_t>(listing.splits[0], "labels"), (Labels{1, 0, 1}));
}

TEST_F(CsvSource, IntegersStayAsTheyAre) {
  const Listing listing = list("label,path\n7,1.jpg\n-2,sub/2.jpg\n");
  EXPECT_TRUE(listing.class_names.empty());
  EXPECT_EQ(field_values<std::int64_t>(listing.splits[0], "labels"), (Labels{7, -2}));
}

TEST_F(CsvSource, ColumnsAreChosenByNameOrDefault) {
  const Listing first = list("file,breed\n1.jpg,x\n");
  EXPECT_EQ(relative_paths(first.splits[0], root()), (Names{"1.jpg"}));
  EXPECT_TRUE(first.splits[0].fields.empty());
  EXPECT_EQ(first.notes.size(), 1U);
  const Listing named = list("id,file,breed,label\n0,1.jpg,x,y\n", {"file", "breed", ""});
  EXPECT_EQ(named.class_names, (Names{"x"}));
}

TEST_F(CsvSource, RelativePathsStartAtRoot) {
  const Listing listing =
      list("path\n2.jpg\n" + scratch_.file("1.jpg") + "\n", {"", "", scratch_.file("sub")});
  EXPECT_EQ(relative_paths(listing.splits[0], root()), (Names{"sub/2.jpg", "1.jpg"}));
}

TEST_F(CsvSource, BadRowsAreLocated) {
  expect_failure("path,label\n1.jpg,a\nabsent.jpg,b\n", ErrorCode::not_found,
                 {"list.csv' line 3", "absent.jpg", "--root"});
  expect_failure("path,label\n1.jpg\n", ErrorCode::corrupt_data, {"line 2", "1 fields"});
  expect_failure("path,label\n1.jpg,a,b\n", ErrorCode::corrupt_data, {"line 2", "3 fields"});
  expect_failure("path,label\n,a\n", ErrorCode::corrupt_data, {"line 2", "empty path"});
  expect_failure("path,label\n1.jpg,\n", ErrorCode::corrupt_data, {"line 2", "empty label"});
  expect_failure("path,label\nsub,a\n", ErrorCode::unsupported, {"line 2", "regular"});
}

TEST_F(CsvSource, BadColumnsAreNamed) {
  expect_failure("a,b\n1.jpg,x\n", ErrorCode::invalid_argument,
                 {"'c'", "--path-column", "'a', 'b'"}, {"c", "", ""});
  expect_failure("a,b\n1.jpg,x\n", ErrorCode::invalid_argument, {"'c'", "--label-column"},
                 {"", "c", ""});
  expect_failure("label,b\n1.jpg,x\n", ErrorCode::invalid_argument, {"both paths and labels"});
}

TEST_F(CsvSource, EmptyAndMissingFilesAreErrors) {
  expect_failure("", ErrorCode::corrupt_data, {"list.csv", "empty"});
  expect_failure("\n\n", ErrorCode::corrupt_data, {"list.csv", "no header"});
  expect_failure("path,label\n", ErrorCode::not_found, {"list.csv", "no images"});
  expect_error(ErrorCode::not_found, {"absent.csv"},
               [&] { (void)list_csv(scratch_.file("absent.csv"), {}); });
}

}  // namespace
}  // namespace h5pack
