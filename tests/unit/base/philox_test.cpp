#include "base/philox.hpp"

#include <cstdint>

#include <gtest/gtest.h>

#include "support/golden_vectors.hpp"

namespace {

using namespace chunkio::base;

// Known answers published with Random123 ("philox4x32 10" in its kat_vectors).
TEST(Philox, MatchesPublishedKnownAnswers) {
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}),
            (PhiloxBlock{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox4x32({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
            (PhiloxBlock{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (PhiloxBlock{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, IsUsableInConstantExpressions) {
  static_assert(philox4x32({0, 0, 0, 0}, {0, 0})[0] == 0x6627e8d5);
}

TEST(Philox, MatchesTheReference) {
  int blocks = 0, streams = 0, draws = 0;
  for (const auto& entry : chunkio::test::golden_vectors("random_numbers.json")) {
    SCOPED_TRACE(entry.dump());
    const PhiloxKey key = entry.contains("key") ? entry["key"].get<PhiloxKey>() : PhiloxKey{};
    if (entry.contains("block")) {
      EXPECT_EQ(philox4x32(entry["counter"].get<PhiloxBlock>(), key),
                entry["block"].get<PhiloxBlock>());
      ++blocks;
    } else if (entry.contains("words")) {
      const PhiloxKey made = stream_key(entry["seed"], entry["epoch"], entry["lane"],
                                        static_cast<StreamPurpose>(entry["purpose"]));
      EXPECT_EQ(made, entry["stream_key"].get<PhiloxKey>());
      PhiloxStream stream(made, entry["slot"]);
      for (const std::uint32_t word : entry["words"]) ASSERT_EQ(stream.next32(), word);
      ++streams;
    } else {
      PhiloxStream stream(key, 0);
      for (const std::uint64_t draw : entry["draws"]) ASSERT_EQ(stream.below(entry["n"]), draw);
      ++draws;
    }
  }
  EXPECT_GE(blocks, 4);
  EXPECT_GE(streams, 3);
  EXPECT_GE(draws, 13);
}

TEST(PhiloxStream, SixtyFourBitsAreTwoWordsLowFirst) {
  PhiloxStream words({3, 4}, 5);
  PhiloxStream pairs({3, 4}, 5);
  for (int i = 0; i < 100; ++i) {
    const std::uint64_t low = words.next32();
    const std::uint64_t high = words.next32();
    ASSERT_EQ(pairs.next64(), low | high << 32);
  }
}

}  // namespace
