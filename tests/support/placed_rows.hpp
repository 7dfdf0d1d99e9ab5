/// Rows that a chunk source places: where nobody would put them, and with nothing written between.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <random>
#include <stop_token>
#include <vector>

#include <gtest/gtest.h>

#include <chunkio/dataset.hpp>

#include "base/chunk_source.hpp"

namespace chunkio::test {

/// The bytes of a row, by its number in the file.
using RowBytes = std::function<std::vector<std::byte>(std::int64_t row)>;

/// Of an array of rows that stays in memory.
inline RowBytes rows_in(const std::vector<std::byte>& array, std::int64_t row_bytes) {
  return [&array, row_bytes](std::int64_t row) {
    const auto begin = array.begin() + row * row_bytes;
    return std::vector(begin, begin + row_bytes);
  };
}

inline std::vector<std::uint32_t> all_rows(const RowGroup& group) {
  std::vector<std::uint32_t> rows(static_cast<std::size_t>(group.num_rows));
  std::iota(rows.begin(), rows.end(), 0U);
  return rows;
}

/// Places `rows` of `group` at shuffled, unaligned places and compares them with what is expected.
inline ReadCost place_rows(const ChunkSource& source, const RowGroup& group,
                           const std::vector<std::uint32_t>& rows, std::int64_t row_bytes,
                           const RowBytes& expected, const std::stop_token& stop = {}) {
  constexpr std::byte kGuard{0xA5};
  const auto size = static_cast<std::size_t>(row_bytes);
  std::vector<std::byte> memory(1 + rows.size() * (size + 3), kGuard);
  std::vector<std::byte*> places;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    places.push_back(memory.data() + 1 + i * (size + 3));
  }
  std::shuffle(places.begin(), places.end(), std::mt19937_64(rows.size()));
  std::vector<RowTarget> targets;
  for (std::size_t i = 0; i < rows.size(); ++i) targets.push_back({rows[i], places[i]});
  const ReadCost cost = source.place(group, targets, stop);
  for (const RowTarget& target : targets) {
    const std::vector<std::byte> row = expected(group.first_row + target.row);
    EXPECT_TRUE(std::equal(row.begin(), row.end(), target.target, target.target + size))
        << "row " << target.row << " of the group at " << group.first_row;
    std::fill_n(target.target, size, kGuard);
  }
  EXPECT_EQ(std::ranges::count(memory, kGuard), std::ssize(memory)) << "written between the rows";
  return cost;
}

/// The same for images, which must be what Dataset::read_images() gives.
inline ReadCost place_rows(const ChunkSource& source, const RowGroup& group,
                           const std::vector<std::uint32_t>& rows, const Dataset& dataset) {
  const std::int64_t row_bytes = dataset.info().sample_bytes();
  return place_rows(source, group, rows, row_bytes, [&](std::int64_t row) {
    std::vector<std::byte> bytes(static_cast<std::size_t>(row_bytes));
    dataset.read_images(row, 1, bytes);
    return bytes;
  });
}

}  // namespace chunkio::test
