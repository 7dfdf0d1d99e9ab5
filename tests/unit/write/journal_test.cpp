#include "write/journal.hpp"

#include <algorithm>
#include <filesystem>

#include <gtest/gtest.h>

#include "support/errors.hpp"
#include "support/scratch.hpp"
#include "write/run_description.hpp"

namespace chunkio::write {
namespace {

using test::expect_error;

std::vector<std::byte> some_bytes(std::size_t count, int first) {
  std::vector<std::byte> bytes(count);
  for (std::size_t i = 0; i < count; ++i) {
    bytes[i] = static_cast<std::byte>(static_cast<std::size_t>(first) + i);
  }
  return bytes;
}

class JournalTest : public testing::Test {
 protected:
  JournalHeader header_ = {.first_chunk_offset = 4096,
                           .chunk_bytes = 360,
                           .num_chunks = 3,
                           .file_bytes = 6000,
                           .structure_digest = 0xfedcba9876543210U,
                           .run = R"({"identity":{}})"};
  std::vector<ChunkRecord> records_ = {{2, 4, 11, "a note"}, {0, 4, 12, ""}, {2, 3, 13, "a\0b"}};
  std::vector<std::byte> saved_ = some_bytes(40, 7);

  /// Three records in two groups, and the bytes of a structure. \returns the length after each.
  std::vector<std::int64_t> write_journal(const std::string& path) const {
    Journal journal = Journal::create(path, header_);
    journal.file().keep();
    std::vector<std::int64_t> ends = {journal.file().size()};
    journal.append(std::span(records_).first(2));
    // Both are as long as they are without their notes, but for these.
    ends.push_back(ends.back() + 44 + static_cast<std::int64_t>(records_[0].note.size()));
    ends.push_back(journal.file().size());
    journal.append(std::span(records_).last(1));
    ends.push_back(journal.file().size());
    journal.append_saved(0, std::span(saved_).first(30));
    ends.push_back(journal.file().size());
    journal.append_saved(5900, std::span(saved_).last(10));
    ends.push_back(journal.file().size());
    journal.append_saved_end();
    ends.push_back(journal.file().size());
    journal.sync();
    return ends;
  }

  /// That `journal`, just taken up, has the first `count` records, and the structure or not.
  void expect_records(auto&& journal, std::size_t count, bool saved) const {
    ASSERT_TRUE(journal);
    EXPECT_EQ(journal->header(), header_);
    const std::vector<ChunkRecord> chunks = journal->take_chunks();
    ASSERT_EQ(chunks.size(), count);
    EXPECT_TRUE(std::equal(chunks.begin(), chunks.end(), records_.begin()));
    EXPECT_EQ(journal->saved().size(), saved ? 2U : 0U);
  }

  test::ScratchFolder folder_;
  std::string path_ = folder_.file("journal");
};

TEST_F(JournalTest, ComesBackAsItWasWritten) {
  write_journal(path_);
  std::optional<Journal> journal = Journal::take_up(path_);
  expect_records(journal, 3, true);
  EXPECT_EQ(journal->saved()[0].file_offset, 0);
  EXPECT_EQ(journal->saved()[1].file_offset, 5900);
  const auto bytes = test::read_bytes(path_);
  std::size_t done = 0;
  for (const SavedBytes& saved : journal->saved()) {
    EXPECT_TRUE(std::equal(saved_.begin() + static_cast<std::ptrdiff_t>(done),
                           saved_.begin() + static_cast<std::ptrdiff_t>(done) + saved.num_bytes,
                           bytes.begin() + saved.journal_offset, [](std::byte a, std::uint8_t b) {
                             return std::to_integer<int>(a) == b;
                           }));
    done += static_cast<std::size_t>(saved.num_bytes);
  }
  EXPECT_EQ(done, saved_.size());
}

TEST_F(JournalTest, IsGoneWithoutAWordToKeepIt) {
  { Journal journal = Journal::create(path_, header_); }
  EXPECT_TRUE(folder_.names().empty());
  EXPECT_FALSE(Journal::take_up(path_));
}

TEST_F(JournalTest, CutAtAnyByteItHoldsWhatWasWhole) {
  const auto ends = write_journal(path_);
  const auto bytes = test::read_bytes(path_);
  ASSERT_EQ(ends.back(), static_cast<std::int64_t>(bytes.size()));
  const std::string cut = folder_.file("cut");
  for (std::size_t length = 0; length <= bytes.size(); ++length) {
    SCOPED_TRACE(length);
    test::write_bytes(cut, std::span(bytes).first(length));
    const auto whole = static_cast<std::size_t>(
        std::upper_bound(ends.begin(), ends.end(), static_cast<std::int64_t>(length)) -
        ends.begin());
    {
      std::optional<Journal> journal = Journal::take_up(cut);
      if (whole == 0) {
        ASSERT_FALSE(journal);
        continue;
      }
      expect_records(journal, std::min<std::size_t>(whole - 1, 3), whole == ends.size());
      // It goes on behind what was whole.
      journal->forget_saved();
      journal->append(std::vector<ChunkRecord>{{1, 4, 14, "more"}});
      journal->sync();
    }
    std::optional<Journal> journal = Journal::take_up(cut);
    ASSERT_TRUE(journal);
    const std::vector<ChunkRecord> chunks = journal->take_chunks();
    ASSERT_EQ(chunks.size(), std::min<std::size_t>(whole - 1, 3) + 1);
    EXPECT_EQ(chunks.back(), (ChunkRecord{1, 4, 14, "more"}));
    EXPECT_TRUE(journal->saved().empty());
  }
}

TEST_F(JournalTest, ADamagedByteEndsItThere) {
  const auto ends = write_journal(path_);
  const auto bytes = test::read_bytes(path_);
  const std::string damaged = folder_.file("damaged");
  for (std::size_t place = 0; place < bytes.size(); ++place) {
    for (const int bit : {1, 128}) {
      SCOPED_TRACE(place);
      auto changed = bytes;
      changed[place] = static_cast<std::uint8_t>(changed[place] ^ bit);
      test::write_bytes(damaged, changed);
      const auto whole = static_cast<std::size_t>(
          std::upper_bound(ends.begin(), ends.end(), static_cast<std::int64_t>(place)) -
          ends.begin());
      if (place >= 8 && place < 12 && changed[8] + changed[9] + changed[10] + changed[11] != 0) {
        expect_error(ErrorCode::unsupported, {damaged, "version"},
                     [&] { static_cast<void>(Journal::take_up(damaged)); });
      } else if (whole == 0) {
        EXPECT_FALSE(Journal::take_up(damaged));
      } else {
        expect_records(Journal::take_up(damaged), std::min<std::size_t>(whole - 1, 3), false);
      }
    }
  }
}

TEST_F(JournalTest, RecordsOfAnotherJournalAreNotBelieved) {
  const auto ends = write_journal(path_);
  const auto bytes = test::read_bytes(path_);
  header_.structure_digest = 5;
  const std::string other = folder_.file("other");
  write_journal(other);
  auto mixed = test::read_bytes(other);
  const auto from = static_cast<std::ptrdiff_t>(ends[1]);
  std::copy(bytes.begin() + from, bytes.end(), mixed.begin() + from);
  test::write_bytes(other, mixed);
  expect_records(Journal::take_up(other), 1, false);
}

TEST_F(JournalTest, OneRunAtATime) {
  write_journal(path_);
  const std::optional<Journal> first = Journal::take_up(path_);
  expect_error(ErrorCode::output_exists, {path_, "in use"},
               [&] { static_cast<void>(Journal::take_up(path_)); });
  expect_error(ErrorCode::output_exists, {path_, "in use"}, [&] { PartialFile::discard(path_); });
  EXPECT_EQ(folder_.names().size(), 1U);
}

TEST_F(JournalTest, ALinkIsNotFollowed) {
  write_journal(path_);
  std::filesystem::create_symlink(path_, folder_.file("link"));
  expect_error(ErrorCode::io_failed, {folder_.file("link")},
               [&] { static_cast<void>(Journal::take_up(folder_.file("link"))); });
}

// ---- Runs ----

DatasetSpec described_spec() {
  DatasetSpec spec;
  spec.num_samples = 2;
  spec.height = spec.width = spec.channels = 1;
  spec.class_names = {"cat", "dog"};
  spec.fields = {{{"labels", DType::uint8, Shape{}}, some_bytes(2, 0)}};
  return spec;
}

std::string describe(const std::string& identity, const DatasetSpec& spec) {
  return describe_run(identity, spec, digest_fields(spec.fields), 1);
}

TEST(RunDescription, TheFirstDifferenceIsNamedInTheIdentitysOrder) {
  const DatasetSpec spec = described_spec();
  const std::string before = describe(R"({"size":"8x8","files":3,"old":true})", spec);
  EXPECT_EQ(first_difference(before, before), std::nullopt);
  const auto difference = [&](const std::string& identity) {
    return first_difference(before, describe(identity, spec)).value_or("none");
  };
  EXPECT_EQ(difference(R"({"old":true,"files":3,"size":"8x8"})"), "none")
      << "order is no difference";
  EXPECT_EQ(difference(R"({"size":"8x9","files":4,"old":true})"),
            R"("size" was "8x8" and is now "8x9")");
  EXPECT_EQ(difference(R"({"size":"8x8","files":4,"old":true})"), R"("files" was 3 and is now 4)");
  EXPECT_EQ(difference(R"({"size":"8x8","files":3})"), R"("old" was true and is now not there)");
  EXPECT_EQ(difference(R"({"size":"8x8","files":3,"old":true,"new":1})"),
            R"("new" was not there and is now 1)");
  EXPECT_LT(difference("{\"size\":\"" + std::string(5000, 'x') + "\"}").size(), 200U);
}

TEST(RunDescription, EveryPartOfTheSpecificationCounts) {
  const DatasetSpec spec = described_spec();
  const std::string before = describe("{}", spec);
  const auto expect_named = [&](const std::string& name, auto change) {
    DatasetSpec other = described_spec();
    change(other);
    const auto difference = first_difference(before, describe("{}", other));
    ASSERT_TRUE(difference) << name;
    EXPECT_EQ(difference->find("\"" + name + "\""), 0U) << *difference;
  };
  expect_named("num_samples", [](DatasetSpec& s) { s.num_samples = 3; });
  expect_named("height", [](DatasetSpec& s) { s.height = 3; });
  expect_named("width", [](DatasetSpec& s) { s.width = 3; });
  expect_named("channels", [](DatasetSpec& s) { s.channels = 3; });
  expect_named("layout", [](DatasetSpec& s) { s.layout = Layout::nchw; });
  expect_named("channel_order", [](DatasetSpec& s) { s.channel_order = "gray"; });
  expect_named("split", [](DatasetSpec& s) { s.split = "test"; });
  expect_named("order", [](DatasetSpec& s) { s.order = "shuffled"; });
  expect_named("seed", [](DatasetSpec& s) { s.seed = 3; });
  expect_named("options", [](DatasetSpec& s) { s.options_json = "{\"a\":1}"; });
  expect_named("class_names", [](DatasetSpec& s) { s.class_names = {"ca", "tdog"}; });
  expect_named("attribute_names", [](DatasetSpec& s) { s.attribute_names = {"a"}; });
  expect_named("field labels", [](DatasetSpec& s) { s.fields[0].values[1] = std::byte{9}; });
  expect_named("field labels", [](DatasetSpec& s) { s.fields.clear(); });
  expect_named("field labels", [](DatasetSpec& s) { s.fields[0].info.dtype = DType::int8; });
  expect_named("shard", [](DatasetSpec& s) {
    s.shard = ShardInfo{.index = 1, .count = 3, .first_row = 2, .total_rows = 6, .set = "a"};
  });
  EXPECT_EQ(first_difference(before, describe_run("{}", spec, digest_fields(spec.fields), 2)),
            R"("chunk_samples" was 1 and is now 2)");
  EXPECT_EQ(first_difference(before,
                             describe_run("{}", spec, digest_fields(spec.fields), 1, "deflate:6")),
            R"("filter" was not there and is now "deflate:6")");
}

TEST(RunDescription, OnlyFlatObjectsAreIdentities) {
  for (const char* text : {"", "3", "[]", "{\"a\":[1]}", "{\"a\":{}}", "{\"a\":null}", "{\"a\":1",
                           "{\"a\":\"\xff\"}"}) {
    expect_error(ErrorCode::invalid_argument, {"identity"},
                 [&] { static_cast<void>(describe(text, described_spec())); });
  }
  for (const char* text : {"", "3", "{}", "{\"identity\":{}}", "{\"identity\":3}"}) {
    expect_error(ErrorCode::corrupt_data, {"journal"}, [&] {
      static_cast<void>(first_difference(text, describe("{}", described_spec())));
    });
  }
}

}  // namespace
}  // namespace chunkio::write
