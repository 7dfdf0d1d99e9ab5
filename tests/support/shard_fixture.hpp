/// Datasets of several files.
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <numeric>
#include <string>

#include <gtest/gtest.h>

#include <chunkio/dataset.hpp>
#include <chunkio/loader.hpp>

#include "support/packed_loader.hpp"

namespace chunkio::test {

inline std::int64_t sum(const Rows& rows) {
  return std::accumulate(rows.begin(), rows.end(), std::int64_t{0});
}

inline constexpr std::int64_t kChunk = 7;
/// Whole chunks but for the last file, as h5pack plans them.
inline const Rows kWhole{21, 14, 28, 9};
/// After images were left out; the second is a single chunk that is not full, the last a row.
inline const Rows kUneven{20, 5, 27, 14, 1};

class ShardsTest : public ::testing::Test {
 protected:
  /// Files of a dataset, `rows` each.
  std::string write(const Rows& rows, const std::string& name = "train.h5", PackedFile file = {}) {
    const std::string path = scratch_.file(name);
    const std::int64_t total = std::accumulate(rows.begin(), rows.end(), std::int64_t{0});
    std::int64_t first = 0;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      file.num_samples = rows[i];
      file.chunk_samples = std::min(kChunk, rows[i]);
      const ShardInfo shard{.index = static_cast<std::int64_t>(i),
                            .count = std::ssize(rows),
                            .first_row = first,
                            .total_rows = total,
                            .set = "a set"};
      write_shard(path, file, shard);
      first += rows[i];
    }
    return shard_pattern(path, std::ssize(rows));
  }
  static void write_shard(const std::string& path, const PackedFile& file, const ShardInfo& shard) {
    const std::string target = shard_path(path, shard.index, shard.count);
    std::filesystem::remove(target);
    write_packed(target, file, shard.first_row, shard);
  }

  static LoaderOptions small(std::int64_t batch_size = 8) {
    // Windows of three chunks.
    return {.batch_size = batch_size, .seed = 5, .order = {.window_bytes = 3 * kChunk * 60}};
  }

  static Rows in_order(const Rows& files, const LoaderOptions& options, std::int64_t epoch) {
    return rows_of(EpochOrder(RowGroups(kChunk, files),
                              {.mode = options.order.mode,
                               .seed = options.seed,
                               .batch_size = options.batch_size,
                               .window_groups = 3,
                               .rank = options.ranks.rank,
                               .world_size = options.ranks.world_size},
                              epoch));
  }
  static Rows sorted_rows(Loader& loader) {
    Rows rows = rows_of(loader, 0);
    std::sort(rows.begin(), rows.end());
    return rows;
  }

  ScratchFolder scratch_;
};

}  // namespace chunkio::test
