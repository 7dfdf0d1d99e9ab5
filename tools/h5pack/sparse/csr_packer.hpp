/// Packs the entries of a source as rows, in bounded memory.
///
/// Data flow: source -> log of entries, in a temporary file -> buckets of consecutive rows of the
/// output, each of which fits memory -> rows sorted by column, duplicates merged -> SparseWriter.
///
/// With E entries, of 16 bytes here: the log is written once and read once if all of it fits half
/// the budget; else it is read, dealt out to buckets in a second temporary file, and each bucket is
/// read twice: once to count what is left of duplicates, since the places of all rows follow from
/// that, and once to write. So memory is E's share and 88 bytes a row, the disk 16 E or 32 E.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include <chunkio/epoch_order.hpp>

#include "h5pack/pack/repack_rows.hpp"
#include "h5pack/sparse/matrix_source.hpp"

namespace h5pack {

struct CsrOptions {
  /// Of the rows: shuffled; as they are in the source; or by its `source_index`, if it has that.
  RepackOrder order = RepackOrder::shuffled;
  std::uint64_t seed = 0;
  std::optional<Duplicates> duplicates = {};       ///< Absent: as the source means them.
  std::optional<chunkio::RowSelection> rows = {};  ///< Of the source, only these; absent: all.
  std::int64_t shards = 0;  ///< Files that are written, by the names of shards; 0: one, by its own.
  /// So many of them are there already, the first ones, and stay as they are; what they say that
  /// they belong to.
  std::int64_t shards_done = 0;
  std::string done_set = {};
  std::string options_json = "{}";
  bool overwrite = false;
  /// Called when the source has been read; what it throws goes through, and nothing is published.
  std::function<void()> after_reading = {};

  // Performance and talk: never change the file.
  int threads = 0;  ///< 0: the CPUs this process may use.
  std::int64_t memory_budget = std::int64_t{1} << 30;
  bool quiet = false;
};

struct CsrResult {
  // Of all files.
  std::int64_t num_rows = 0;
  std::int64_t num_columns = 0;
  std::int64_t num_entries = 0;  ///< Stored; pack_csr(): without those of shards that were done.
  std::int64_t file_bytes = 0;
  // Of the files that were written; of count_csr(), what was read.
  std::int64_t num_written = 0;     ///< Entries.
  std::int64_t num_duplicates = 0;  ///< Entries that were merged into others.
  std::int64_t num_empty_rows = 0;
  std::int64_t longest_row = 0;
  std::int64_t num_buckets = 0;
  double read_seconds = 0;
  double seconds = 0;
};

/// Blocks until the file, or each of the shards, is published, each as soon as it has its rows;
/// polls StopSignal.
/// \throws chunkio::Error as MatrixSource::read() and SparseWriter; invalid_argument: it lacks a
///         row of `rows`, or has fewer than shards; output_exists: the shards that are there are of
///         another matrix; out_of_resources: the budget is too small for the rows, or for one of
///         them; cancelled.
CsrResult pack_csr(MatrixSource& source, const std::string& path, const CsrOptions& options);

/// Reads the source, counts, and writes nothing. \throws as pack_csr().
CsrResult count_csr(MatrixSource& source, const CsrOptions& options);

}  // namespace h5pack
