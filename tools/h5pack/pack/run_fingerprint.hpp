/// The fingerprint of a packing run: a run may resume only what one with the same has begun.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include <chunkio/dataset_writer.hpp>

#include "h5pack/pack/pack_request.hpp"
#include "h5pack/sources/listing.hpp"

namespace h5pack {

/// The source of one split and every option that changes the file, as texts and numbers. Options
/// have the names of the command line. Those that do not change the file are not in it: --threads,
/// --on-error, --max-errors, --report, --force.
/// \pre stamp_files() was called for the listing.
[[nodiscard]] nlohmann::ordered_json run_fingerprint(const PackRequest& command,
                                                     const Listing& listing, const Split& split);

/// What is equal for all shards of one dataset and for no others: a digest of the names of its
/// images below the folder they have in common, of labels and fields, and of all options but
/// --shard. Not of times and, but for encoded images, sizes, which may differ between copies of a
/// source.
[[nodiscard]] std::string shard_set(const nlohmann::ordered_json& identity);

/// Packing options and source, as stored in the file; with the identity.
[[nodiscard]] std::string options_json(const PackRequest& command, const Listing& listing,
                                       const nlohmann::ordered_json& identity);

/// Whether a run that is to go on with what is there has nothing to do for `path`: a run like it
/// has published the file. Blocks on I/O.
/// \param identity   of the run, also what options_json() was given for the file.
/// \param overwrite  it may be replaced.
/// \throws chunkio::Error output_exists if another run has published it, and it may not be replaced
///         (the message names what differs); and as Dataset::open().
[[nodiscard]] bool is_complete(const std::string& path, bool overwrite,
                               const nlohmann::ordered_json& identity);

}  // namespace h5pack
