#include "h5pack/pack/chunk_record.hpp"

#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <chunkio/error.hpp>

#include "support/errors.hpp"

namespace h5pack {
namespace {

using chunkio::ErrorCode;
using chunkio::test::expect_error;

TEST(ChunkRecord, NotesGiveBackTheRecord) {
  ChunkRecord record{
      .first_place = 3, .end_place = 99, .pixels = PixelStatistics(3, chunkio::Layout::nchw)};
  record.skipped = {{4, 17, ErrorCode::not_found, "cannot open 'a\\nb'"},
                    {5, 2, ErrorCode::corrupt_data, "line \"two\""}};
  record.sizes.add({218, 178}, 5);
  record.sizes.add({1, 65535});
  const std::vector<std::uint8_t> image = {1, 2, 3, 255, 0, 9};
  record.pixels.add(image);
  const std::string note = to_note(record);
  EXPECT_EQ(note.find('\n'), std::string::npos);
  const ChunkRecord back = from_note(note, 3, chunkio::Layout::nchw);
  EXPECT_EQ(back.first_place, 3);
  EXPECT_EQ(back.end_place, 99);
  ASSERT_EQ(back.skipped.size(), 2U);
  EXPECT_EQ(back.skipped[0].place, 4);
  EXPECT_EQ(back.skipped[0].row, 17);
  EXPECT_EQ(back.skipped[0].code, ErrorCode::not_found);
  EXPECT_EQ(back.skipped[1].reason, "line \"two\"");
  EXPECT_EQ(back.sizes.counts(), record.sizes.counts());
  EXPECT_EQ(back.pixels.values(), record.pixels.values());
}

TEST(ChunkRecord, WhatIsNoNoteIsRefused) {
  const std::string note = to_note({.pixels = PixelStatistics(3, chunkio::Layout::nhwc)});
  for (const std::string& text :
       {std::string(), std::string("{}"), std::string("[1]"), note.substr(1)}) {
    expect_error(ErrorCode::corrupt_data, {"--force"},
                 [&] { (void)from_note(text, 3, chunkio::Layout::nhwc); });
  }
  expect_error(ErrorCode::corrupt_data, {"1 channels"},
               [&] { (void)from_note(note, 1, chunkio::Layout::nhwc); });
}

}  // namespace
}  // namespace h5pack
