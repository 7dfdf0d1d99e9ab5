/// Packs the entries of a source as rows, in bounded memory.
///
/// Data flow: source -> log of entries, in a temporary file -> buckets of consecutive rows of the
/// output, each of which fits memory -> rows sorted by column, duplicates merged -> SparseWriter.
///
/// With E entries, of 16 bytes here: the log is written once and read once if all of it fits half
/// the budget; else it is read, dealt out to buckets in a second temporary file, and each bucket is
/// read twice: once to count what is left of duplicates, since the places of all rows follow from
/// that, and once to write. So memory is E's share and 80 bytes a row, the disk 16 E or 32 E.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "h5pack/sparse/matrix_source.hpp"

namespace h5pack {

struct CsrOptions {
  bool shuffled = true;
  std::uint64_t seed = 0;
  std::optional<Duplicates> duplicates = {};  ///< Absent: as the source means them.
  std::string options_json = "{}";
  bool overwrite = false;
  /// Called when all is written; what it throws goes through, and nothing is published.
  std::function<void()> before_publishing = {};

  // Performance and talk: never change the file.
  int threads = 0;  ///< 0: the CPUs this process may use.
  std::int64_t memory_budget = std::int64_t{1} << 30;
  bool quiet = false;
};

struct CsrResult {
  std::int64_t num_rows = 0;
  std::int64_t num_columns = 0;
  std::int64_t num_entries = 0;     ///< That were stored; of count_csr(), read.
  std::int64_t num_duplicates = 0;  ///< Entries that were merged into others.
  std::int64_t num_empty_rows = 0;
  std::int64_t longest_row = 0;
  std::int64_t num_buckets = 0;
  std::int64_t file_bytes = 0;
  double read_seconds = 0;
  double seconds = 0;
};

/// Blocks until the file is published; polls StopSignal.
/// \throws chunkio::Error as MatrixSource::read() and SparseWriter; out_of_resources: the budget is
///         too small for the rows, or for one of them; cancelled.
CsrResult pack_csr(MatrixSource& source, const std::string& path, const CsrOptions& options);

/// Reads the source, counts, and writes nothing. \throws as pack_csr().
CsrResult count_csr(MatrixSource& source, const CsrOptions& options);

}  // namespace h5pack
