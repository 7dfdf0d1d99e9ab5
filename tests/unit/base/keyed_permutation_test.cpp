#include "base/keyed_permutation.hpp"

#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "support/golden_vectors.hpp"

namespace {

using namespace chunkio::base;

constexpr std::uint64_t kNoTable = 0;

void expect_bijection(const KeyedPermutation& permutation) {
  std::vector<bool> seen(permutation.size());
  for (std::uint64_t x = 0; x < permutation.size(); ++x) {
    const std::uint64_t y = permutation(x);
    ASSERT_LT(y, permutation.size());
    ASSERT_FALSE(seen[y]) << "two numbers map to " << y;
    seen[y] = true;
    ASSERT_EQ(permutation.inverse(y), x);
  }
}

TEST(KeyedPermutation, MatchesTheReference) {
  int entries = 0;
  for (const auto& entry : chunkio::test::golden_vectors("permutations.json")) {
    SCOPED_TRACE(entry.dump());
    const bool table = entry["kind"] == "table";
    const auto purpose =
        table ? StreamPurpose::row_groups : static_cast<StreamPurpose>(entry["purpose"]);
    const std::uint64_t size = entry["size"];
    const KeyedPermutation permutation(size, entry["key"].get<PhiloxKey>(), purpose,
                                       table ? KeyedPermutation::kMaxTableSize : kNoTable);
    for (std::size_t i = 0; i < entry["images"].size(); ++i) {
      const std::uint64_t x = entry.contains("at") ? entry["at"][i].get<std::uint64_t>() : i;
      ASSERT_EQ(permutation(x), entry["images"][i]) << x;
      ASSERT_EQ(permutation.inverse(permutation(x)), x);
    }
    ++entries;
  }
  EXPECT_GE(entries, 30);
}

TEST(KeyedPermutation, FeistelIsABijectionOnSmallDomainsAndAroundPowersOfTwo) {
  std::vector<std::uint64_t> sizes{1023, 1024, 1025, 4096, 4097, 65537};
  for (std::uint64_t size = 1; size <= 300; ++size) sizes.push_back(size);
  for (const std::uint64_t size : sizes) {
    SCOPED_TRACE(size);
    expect_bijection(KeyedPermutation(size, {static_cast<std::uint32_t>(size), 9},
                                      StreamPurpose::row_groups, kNoTable));
  }
}

TEST(KeyedPermutation, TableIsABijection) {
  for (const std::uint64_t size : {1U, 2U, 3U, 100U, 65536U}) {
    SCOPED_TRACE(size);
    expect_bijection(KeyedPermutation(size, {7, 8}, StreamPurpose::row_groups));
  }
}

TEST(KeyedPermutation, InvertsTheLargestDomains) {
  for (const std::uint64_t size :
       {std::uint64_t{1} << 32, (std::uint64_t{1} << 62) + 1, (std::uint64_t{1} << 63) - 1}) {
    const KeyedPermutation permutation(size, {1, 2}, StreamPurpose::rows);
    for (std::uint64_t i = 0; i < 200; ++i) {
      const std::uint64_t x = i % 2 == 0 ? i : size - i;
      ASSERT_LT(permutation(x), size);
      ASSERT_EQ(permutation.inverse(permutation(x)), x);
    }
  }
}

}  // namespace
