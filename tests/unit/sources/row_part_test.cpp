#include "sources/row_part.hpp"

#include <algorithm>
#include <array>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "base/streaming_copy.hpp"
#include "support/scratch.hpp"

namespace chunkio::sources {
namespace {

using Dims = std::vector<std::int64_t>;
using Bytes = std::vector<std::byte>;

std::int64_t product(const Dims& dims) {
  std::int64_t result = 1;
  for (const std::int64_t dim : dims) result *= dim;
  return result;
}

/// A row of which every byte is known from its place, the rows of all chunks of it, and what each
/// holds, found one element at a time.
struct Row {
  Dims shape, chunk, grid;
  std::int64_t element_bytes = 1;
  Bytes bytes;

  [[nodiscard]] std::int64_t num_chunks() const { return product(grid); }
  [[nodiscard]] Dims position(std::int64_t index) const {
    Dims found(grid.size());
    for (std::size_t axis = grid.size(); axis-- > 0; index /= grid[axis]) {
      found[axis] = index % grid[axis];
    }
    return found;
  }
  /// Calls visit(offset in the row, offset in the chunk's row) for each element of both.
  template <class Visit>
  void for_each_element(const Dims& at, Visit visit) const {
    for (std::int64_t i = 0; i < product(chunk); ++i) {
      std::int64_t rest = i;
      std::int64_t offset = 0;
      std::int64_t stride = element_bytes;
      bool inside = true;
      for (std::size_t axis = chunk.size(); axis-- > 0; rest /= chunk[axis]) {
        const std::int64_t index = at[axis] * chunk[axis] + rest % chunk[axis];
        inside = inside && index < shape[axis];
        offset += index * stride;
        stride *= shape[axis];
      }
      if (inside)
        visit(static_cast<std::size_t>(offset), static_cast<std::size_t>(i * element_bytes));
    }
  }
  /// What lies beyond the row is 0xEE, which is nowhere in the row.
  [[nodiscard]] Bytes stored(const Dims& at) const {
    Bytes result(static_cast<std::size_t>(product(chunk) * element_bytes), std::byte{0xEE});
    for_each_element(at, [&](std::size_t row, std::size_t chunk_row) {
      std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(row), element_bytes,
                  result.begin() + static_cast<std::ptrdiff_t>(chunk_row));
    });
    return result;
  }
};

Row make_row(std::mt19937_64& random) {
  Row row;
  const std::size_t rank = random() % 5;
  for (std::size_t axis = 0; axis < rank; ++axis) {
    const auto dim = static_cast<std::int64_t>(1 + random() % 9);
    const auto chunk = static_cast<std::int64_t>(random() % 3 == 0 ? static_cast<std::uint64_t>(dim)
                                                                   : 1 + random() % 10);
    row.shape.push_back(dim);
    row.chunk.push_back(chunk);
    row.grid.push_back((dim + chunk - 1) / chunk);
  }
  // Larger runs once in a while, for the copies that use non-temporal stores.
  row.element_bytes = std::array<std::int64_t, 7>{1, 2, 3, 4, 8, 16, 400}[random() % 7];
  row.bytes.resize(static_cast<std::size_t>(product(row.shape) * row.element_bytes));
  for (std::byte& byte : row.bytes) byte = static_cast<std::byte>(random() % 0xEE);
  return row;
}

RowPart part_of(const Row& row, const Dims& at) {
  return RowPart(Shape(row.shape), Shape(row.chunk), at, row.element_bytes);
}

TEST(RowPart, AllChunksTogetherMakeTheRow) {
  std::mt19937_64 random(test::test_seed());
  for (int round = 0; round < 1000; ++round) {
    const Row row = make_row(random);
    Bytes result(row.bytes.size() + 2, std::byte{0xEF});
    for (std::int64_t chunk = 0; chunk < row.num_chunks(); ++chunk) {
      const Dims at = row.position(chunk);
      const RowPart part = part_of(row, at);
      const Bytes stored = row.stored(at);
      ASSERT_EQ(part.stored_bytes(), static_cast<std::int64_t>(stored.size()));
      part.copy(result.data() + 1, 0, stored);
    }
    base::store_fence();
    ASSERT_TRUE(std::equal(row.bytes.begin(), row.bytes.end(), result.begin() + 1))
        << Shape(row.shape).to_string() << " in " << Shape(row.chunk).to_string();
    ASSERT_EQ(result.front(), std::byte{0xEF});
    ASSERT_EQ(result.back(), std::byte{0xEF});
  }
}

TEST(RowPart, BytesOfAChunkMayComeInAnyPieces) {
  std::mt19937_64 random(test::test_seed());
  for (int round = 0; round < 1000; ++round) {
    const Row row = make_row(random);
    Bytes result(row.bytes.size(), std::byte{0xEF});
    for (std::int64_t chunk = 0; chunk < row.num_chunks(); ++chunk) {
      const Dims at = row.position(chunk);
      const RowPart part = part_of(row, at);
      const Bytes stored = row.stored(at);
      for (std::size_t from = 0; from < stored.size();) {
        const std::size_t size =
            std::min<std::size_t>(1 + random() % (1 + stored.size() / 3), stored.size() - from);
        // Its own memory, so that a sanitizer sees reads beyond the piece.
        const Bytes piece(stored.begin() + static_cast<std::ptrdiff_t>(from),
                          stored.begin() + static_cast<std::ptrdiff_t>(from + size));
        part.copy(result.data(), static_cast<std::int64_t>(from), piece);
        from += size;
      }
    }
    base::store_fence();
    ASSERT_EQ(result, row.bytes) << Shape(row.shape).to_string() << " in "
                                 << Shape(row.chunk).to_string();
  }
}

TEST(RowPart, APieceWritesOnlyItsOwnBytes) {
  std::mt19937_64 random(test::test_seed());
  for (int round = 0; round < 1000; ++round) {
    const Row row = make_row(random);
    const Dims at = row.position(static_cast<std::int64_t>(random() % 256) % row.num_chunks());
    const Bytes stored = row.stored(at);
    const std::size_t from = random() % stored.size();
    const std::size_t to = from + random() % (stored.size() - from + 1);
    Bytes expected(row.bytes.size(), std::byte{0xEF});
    row.for_each_element(at, [&](std::size_t in_row, std::size_t in_chunk) {
      for (std::size_t i = 0; i < static_cast<std::size_t>(row.element_bytes); ++i) {
        if (in_chunk + i >= from && in_chunk + i < to) expected[in_row + i] = stored[in_chunk + i];
      }
    });
    Bytes result(row.bytes.size(), std::byte{0xEF});
    part_of(row, at).copy(result.data(), static_cast<std::int64_t>(from),
                          std::span(stored).subspan(from, to - from));
    base::store_fence();
    ASSERT_EQ(result, expected) << Shape(row.shape).to_string() << " in "
                                << Shape(row.chunk).to_string() << " bytes " << from << " to "
                                << to;
  }
}

TEST(RowPart, FillsItsPartAndNothingElse) {
  std::mt19937_64 random(test::test_seed());
  for (int round = 0; round < 500; ++round) {
    const Row row = make_row(random);
    const Dims at = row.position(static_cast<std::int64_t>(random() % 256) % row.num_chunks());
    Bytes element(static_cast<std::size_t>(row.element_bytes));
    const bool uniform = random() % 2 == 0;
    for (std::byte& byte : element)
      byte = uniform ? std::byte{7} : static_cast<std::byte>(random());
    Bytes expected(row.bytes.size(), std::byte{0xEF});
    row.for_each_element(at, [&](std::size_t in_row, std::size_t) {
      std::copy(element.begin(), element.end(),
                expected.begin() + static_cast<std::ptrdiff_t>(in_row));
    });
    Bytes result(row.bytes.size(), std::byte{0xEF});
    part_of(row, at).fill(result.data(), element);
    ASSERT_EQ(result, expected);
  }
}

}  // namespace
}  // namespace chunkio::sources
