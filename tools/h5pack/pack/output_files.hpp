/// Chooses and checks the paths of packed files before any work is done.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "h5pack/pack/shard.hpp"
#include "h5pack/sources/listing.hpp"

namespace h5pack {

/// The path of each split's file: OUT itself, or OUT/SPLIT.h5; of a shard, with its numbers in the
/// name (chunkio::shard_path).
[[nodiscard]] std::vector<std::string> output_paths(const Listing& listing, const std::string& out,
                                                    const std::optional<Shard>& shard = {});

/// Finds what would make writing one file fail that is made of another. Changes nothing.
/// \throws Error as check_outputs().
void check_output_file(const std::string& out, const std::string& input, bool force);

/// Finds what would make writing fail. Changes nothing.
/// \param report  another file that will be written, or empty: it must be neither input nor output.
/// \param force   an output may be there already.
/// \throws Error output_exists (a file is there and `force` is not set, or it is an input or no
///         regular file), not_found (its folder is not), io_failed (a folder where a file should
///         go or the other way round, or one that is not writable), invalid_argument (`report` is
///         an output).
void check_outputs(const Listing& listing, const std::string& out, const std::string& report,
                   bool force, const std::optional<Shard>& shard = {});

/// Makes the output folder, parents included. Folders made here and still empty at the end are
/// removed again.
class OutputFolder {
 public:
  /// \throws Error io_failed.
  explicit OutputFolder(const std::string& path);
  OutputFolder(const OutputFolder&) = delete;
  OutputFolder& operator=(const OutputFolder&) = delete;
  ~OutputFolder();

 private:
  std::vector<std::string> made_;  // Outermost first.
};

}  // namespace h5pack
