/// Makes a loader that delivers each row once, in file order, for copying.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <chunkio/dataset.hpp>
#include <chunkio/epoch_order.hpp>
#include <chunkio/loader.hpp>

namespace h5pack {

struct CopyOptions {
  /// Rows of a batch, >= 1.
  std::int64_t batch_rows = 1;
  /// Batches that are worked on at the same time.
  std::int64_t max_held = 1;
  /// Only these; absent: all.
  std::optional<chunkio::RowSelection> rows = {};
  /// Chunks are compared with their digests, if the file has any.
  bool check_digests = true;
  /// Bytes that reading may take, and, if they are not all of --memory-budget, what an error says
  /// behind its name: ", of which reading has half".
  std::int64_t memory_budget = std::int64_t{1} << 30;
  std::string memory_share = {};
};

/// A loader that delivers each row once, ascending, in its only epoch, 0. Who writes the pixels
/// has digests checked: a copy of damaged pixels would get digests that match.
/// \throws chunkio::Error as Loader: out_of_resources says `memory_share`.
[[nodiscard]] chunkio::Loader copy_loader(const chunkio::Dataset& dataset,
                                          const CopyOptions& options);

}  // namespace h5pack
