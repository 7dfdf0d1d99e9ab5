/// What makes two packing runs the same: a run may only go on where one just like it stopped.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include <chunkio/dataset_writer.hpp>

#include "pack_command.hpp"
#include "sources/listing.hpp"

namespace h5pack {

/// The source of one split and every option that changes the file, as texts and numbers. Options
/// have the names of the command line. What only decides whether, how fast and with how much talk a
/// run gets through is left out: threads, --on-error, --max-errors, --report, --force.
/// \pre stamp_files() was called for the listing.
[[nodiscard]] nlohmann::ordered_json pack_identity(const PackCommand& command,
                                                   const Listing& listing, const Split& split);

/// What is equal for all shards of one dataset and for no others: a digest of the names of its
/// images below the folder they have in common, of labels and fields, and of all options but
/// --shard. Not of sizes and times, which may differ between copies of a source.
[[nodiscard]] std::string shard_set(const nlohmann::ordered_json& identity);

/// Packing options and source, as stored in the file; with the identity.
[[nodiscard]] std::string options_json(const PackCommand& command, const Listing& listing,
                                       const nlohmann::ordered_json& identity);

/// Whether a run has nothing to do for `path`: it is to go on with what is there, and a run like it
/// has published the file. Blocks on I/O.
/// \param identity  of the run, also what options_json() was given for the file.
/// \throws chunkio::Error output_exists if another run has published it, and it may not be replaced
///         (the message names what differs); and as Dataset::open().
[[nodiscard]] bool is_complete(const std::string& path, const chunkio::WriterOptions& writer,
                               const nlohmann::ordered_json& identity);

}  // namespace h5pack
