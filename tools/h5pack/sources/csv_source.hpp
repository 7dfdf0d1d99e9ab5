/// Lists a manifest: a CSV file with a path column and, if wanted, a label column.
#pragma once

#include <string>

#include "h5pack/sources/listing.hpp"
#include "h5pack/sources/source_kind.hpp"

namespace h5pack {

/// In place of a path: the manifest comes through standard input.
inline constexpr const char* kStandardInput = "-";

struct CsvOptions {
  std::string path_column;   ///< Empty: `path` if there is one, else the first column.
  std::string label_column;  ///< Empty: `label` if there is one, else no labels.
  std::string root;          ///< Relative paths start here. Empty: the folder of the CSV file;
                             ///< of standard input, the working folder.
  /// List missing images, too: reading them fails later.
  bool keep_missing = false;
};

/// Lists the images of a manifest in its order. The first record names the columns. Labels that
/// are all integers stay as they are (int64, no class names); otherwise the distinct names, sorted
/// by bytes, give labels 0..K-1.
///
/// Blocks on I/O. \param path  of the manifest, or kStandardInput, which is read to its end.
/// \throws Error not_found (no such file, or a row's image is missing: with its line),
///         unless they are to be kept), invalid_argument (no such column), unsupported (not a
///         regular file), corrupt_data (malformed CSV, wrong number of fields, empty path or
///         label), io_failed.
[[nodiscard]] Listing list_csv(const std::string& path, const CsvOptions& options);

/// The entry of the kind.
extern const SourceKind kCsvSource;

}  // namespace h5pack
