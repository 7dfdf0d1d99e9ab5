/// The file of --report: a JSON line on each skipped image.
#pragma once

#include <string>
#include <vector>

#include "h5pack/sources/listing.hpp"
#include "h5pack/sources/skipped_image.hpp"

namespace h5pack {

/// Collects the lines of a report: a JSON object each, with `output`, `split`, `path`, `row` (in
/// source order), `label` and `class` (null where there is none), `code` and `reason`. A path that
/// is no UTF-8 has `path_hex` beside it, since JSON cannot hold it.
class SkipReport {
 public:
  /// \param path       of the file; empty: nothing is written.
  /// \param overwrite  replace an existing one.
  /// \throws Error output_exists, not_found, io_failed: what would make writing it fail at the end.
  SkipReport(std::string path, bool overwrite);

  /// Takes over what an existing report says of `output`, which is complete already.
  /// \pre write() was not called: it replaces that report.
  void keep(const std::string& output);
  void add(const std::string& output, const Listing& listing, const Split& split,
           const std::vector<SkippedImage>& skipped);
  /// Writes the file, whole or not at all; also without a line. Blocks on I/O.
  /// \throws Error io_failed, no_space.
  void write();

 private:
  std::string path_;
  bool overwrite_;
  std::string lines_;
};

}  // namespace h5pack
