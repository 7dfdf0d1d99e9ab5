#include "io/remote_index.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <chunkio/error.hpp>

#include "support/errors.hpp"
#include "support/noise_file.hpp"
#include "support/scratch.hpp"

namespace chunkio::io {
namespace {

constexpr std::int64_t kObjectBytes = 100'000;

class RemoteIndexTest : public testing::Test {
 protected:
  [[nodiscard]] ObjectPart part(std::int64_t offset, std::int64_t bytes) const {
    const auto* const first = reinterpret_cast<const std::byte*>(file_.bytes.data()) + offset;
    return {offset, {first, first + bytes}};
  }
  void write(std::vector<IndexedObject> objects) const { write(encode_index(std::move(objects))); }
  void write(const std::vector<std::byte>& bytes) const {
    test::write_bytes(path_,
                      std::span(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()));
  }
  /// Whether an index says that it has a range, and has the bytes of the object there.
  [[nodiscard]] bool has(const RemoteIndex& index, std::int64_t begin, std::int64_t end) const {
    std::vector<std::byte> out(static_cast<std::size_t>(end - begin));
    const bool read = index.read(begin, out);
    EXPECT_EQ(index.holds({begin, end}), read);
    if (read) {
      EXPECT_EQ(out, part(begin, end - begin).bytes);
    }
    return read;
  }

  test::ScratchFolder folder_;
  test::NoiseFile file_{folder_.file("object"), kObjectBytes};
  std::string path_ = folder_.file("object.index");
  ObjectVersion object_{"https://host/a.h5", "https://host/a.h5?id=7", "\"1\"", kObjectBytes};
};

TEST_F(RemoteIndexTest, PartsThatTouchAreOne) {
  write({{object_,
          {part(5000, 100), part(0, 8), part(5050, 10), part(5100, 50), part(4990, 20),
           part(kObjectBytes - 9, 9), part(0, 8)}}});
  const RemoteIndex index = RemoteIndex::load(path_, object_);
  EXPECT_TRUE(has(index, 0, 8));
  EXPECT_TRUE(has(index, 4990, 5150));
  EXPECT_TRUE(has(index, 5001, 5149));
  EXPECT_TRUE(has(index, kObjectBytes - 9, kObjectBytes));
  EXPECT_FALSE(has(index, 0, 9));
  EXPECT_FALSE(has(index, 4989, 4991));
  EXPECT_FALSE(has(index, 5149, 5151));
  EXPECT_FALSE(has(index, 60'000, 60'001));
}

TEST_F(RemoteIndexTest, RandomPartsAreFoundAgain) {
  std::mt19937_64 random(test::test_seed());
  const auto any_range = [&](std::int64_t most_bytes) {
    const std::int64_t begin =
        std::uniform_int_distribution<std::int64_t>(0, kObjectBytes - 1)(random);
    const std::int64_t bytes = std::uniform_int_distribution<std::int64_t>(1, most_bytes)(random);
    return ByteRange{begin, std::min(begin + bytes, kObjectBytes)};
  };
  std::vector<ObjectPart> parts;
  std::vector<bool> known(kObjectBytes);
  for (int i = 0; i < 300; ++i) {
    const ByteRange range = any_range(300);
    parts.push_back(part(range.begin, range.end - range.begin));
    std::fill(known.begin() + range.begin, known.begin() + range.end, true);
  }
  write({{object_, parts}});
  const RemoteIndex index = RemoteIndex::load(path_, object_);
  for (int i = 0; i < 3000; ++i) {
    const ByteRange range = any_range(200);
    const bool all = std::all_of(known.begin() + range.begin, known.begin() + range.end,
                                 [](bool is_known) { return is_known; });
    EXPECT_EQ(has(index, range.begin, range.end), all) << range.begin << " to " << range.end;
  }
}

TEST_F(RemoteIndexTest, EachObjectHasItsOwn) {
  ObjectVersion other = object_;
  other.place = "https://host/a.h5?id=8";
  write({{object_, {part(0, 100)}}, {other, {part(200, 100)}}});
  EXPECT_TRUE(has(RemoteIndex::load(path_, object_), 0, 100));
  EXPECT_FALSE(has(RemoteIndex::load(path_, object_), 200, 300));
  EXPECT_TRUE(has(RemoteIndex::load(path_, other), 200, 300));
  other.place = "https://host/a.h5";
  test::expect_error(ErrorCode::invalid_argument,
                     {path_, "other files than https://host/a.h5", "h5pack index"},
                     [&] { (void)RemoteIndex::load(path_, other); });
  const auto bytes = test::read_bytes(path_);
  const std::string text(bytes.begin(), bytes.end());
  EXPECT_EQ(text.find("id=7"), std::string::npos) << "the query may be secret";
}

TEST_F(RemoteIndexTest, AnotherVersionIsAnError) {
  write({{object_, {part(0, 100)}}});
  ObjectVersion tagged = object_, longer = object_;
  tagged.validator = "\"2\"";
  longer.bytes += 1;
  for (const ObjectVersion& other : {tagged, longer}) {
    test::expect_error(ErrorCode::corrupt_data,
                       {path_, "another version of https://host/a.h5", "h5pack index"},
                       [&] { (void)RemoteIndex::load(path_, other); });
  }
}

/// Whatever is damaged: an error, or the bytes of the object.
TEST_F(RemoteIndexTest, DamageIsAnError) {
  const std::vector<std::byte> sound = encode_index({{object_, {part(0, 100), part(500, 20)}}});
  std::mt19937 random(test::test_seed());
  for (std::size_t at = 0; at < sound.size(); ++at) {
    std::vector<std::byte> damaged = sound;
    damaged[at] ^= static_cast<std::byte>(1U << (random() % 8));
    if (at % 3 == 0) damaged.resize(at);
    write(damaged);
    try {
      const RemoteIndex index = RemoteIndex::load(path_, object_);
      EXPECT_TRUE(has(index, 0, 100)) << at;
    } catch (const Error& error) {
      EXPECT_TRUE(error.code() == ErrorCode::corrupt_data ||
                  error.code() == ErrorCode::invalid_argument)
          << at << ": " << error.what();
      EXPECT_NE(std::string(error.what()).find("h5pack index"), std::string::npos) << error.what();
    }
  }
}

/// Numbers that somebody wrote into it.
TEST_F(RemoteIndexTest, ImpossibleNumbersAreDamage) {
  const std::vector<std::byte> sound = encode_index({{object_, {part(0, 100)}}});
  const std::string text(reinterpret_cast<const char*>(sound.data()), sound.size());
  for (const char* const member : {"\"parts_at\":", "\"part_bytes\":", "\"head_bytes\":"}) {
    for (const char* const number : {"-1", "9223372036854775807", "1e300", "18446744073709551615",
                                     "\"7\"", "null", "1000000"}) {
      const std::size_t at = text.find(member) + std::string_view(member).size();
      const std::string changed =
          text.substr(0, at) + number + text.substr(text.find_first_of(",}", at));
      const auto raw = std::as_bytes(std::span(changed));
      write(std::vector<std::byte>(raw.begin(), raw.end()));
      test::expect_error(ErrorCode::corrupt_data, {path_, "is damaged", "h5pack index"},
                         [&] { (void)RemoteIndex::load(path_, object_); });
    }
  }
}

}  // namespace
}  // namespace chunkio::io
