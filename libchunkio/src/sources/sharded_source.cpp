#include "sources/sharded_source.hpp"

#include <algorithm>
#include <utility>

namespace chunkio::sources {

ShardedSource::ShardedSource(std::vector<std::unique_ptr<ChunkSource>> sources,
                             std::span<const std::int64_t> file_rows)
    : sources_(std::move(sources)) {
  std::int64_t first = 0;
  for (const std::int64_t rows : file_rows) {
    first_rows_.push_back(first);
    first += rows;
  }
}

std::size_t ShardedSource::file_of(std::int64_t row) const noexcept {
  const auto next = std::upper_bound(first_rows_.begin(), first_rows_.end(), row);
  return static_cast<std::size_t>(next - first_rows_.begin()) - 1;
}

ReadCost ShardedSource::place(const RowGroup& group, std::span<const RowTarget> rows,
                              std::stop_token stop) const {
  const std::size_t file = file_of(group.first_row);
  RowGroup in_file = group;
  in_file.first_row -= first_rows_[file];
  try {
    return sources_[file]->place(in_file, rows, std::move(stop));
  } catch (const DamagedRows& error) {
    std::vector<RowRange> in_all = error.rows();
    std::vector<std::string> reasons;
    for (std::size_t i = 0; i < in_all.size(); ++i) {
      in_all[i].begin += first_rows_[file];
      in_all[i].end += first_rows_[file];
      reasons.push_back(error.reason(i));
    }
    DamagedRows mismatch(std::move(in_all), error.what(), error.code(), std::move(reasons));
    mismatch.cost = error.cost;
    throw mismatch;
  }
}

std::unique_ptr<const ByteSource> ShardedSource::prefetch(const RowGroup& group,
                                                          const RowRange& wanted) const noexcept {
  const std::size_t file = file_of(group.first_row);
  const std::int64_t first = first_rows_[file];
  return sources_[file]->prefetch({group.first_row - first, group.num_rows},
                                  {wanted.begin - first, wanted.end - first});
}

std::int64_t ShardedSource::memory_bytes(std::int64_t threads) const noexcept {
  return chunkio::memory_bytes(sources_, threads);
}

}  // namespace chunkio::sources
