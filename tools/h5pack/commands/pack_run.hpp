/// Runs a packing command: from its options to its exit code.
#pragma once

#include "cli/command.hpp"
#include "h5pack/pack/pack_request.hpp"

namespace h5pack {

/// Lists the source, plans all splits, then packs one after the other; prints the result.
/// \returns ok; skipped if images were skipped; the signal's code if one stopped it.
/// \throws chunkio::Error why it could not.
cli::ExitCode run_pack(PackRequest& command, const cli::GlobalOptions& global);

}  // namespace h5pack
