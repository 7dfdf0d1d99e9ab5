/// A packing command from its options to its exit code.
#pragma once

#include "command.hpp"
#include "pack_command.hpp"

namespace h5pack {

/// Lists the source, plans all splits, then packs one after the other; prints the result.
/// \returns ok; skipped if images were left out; the signal's code if one stopped it.
/// \throws chunkio::Error why it could not.
ExitCode run_pack(PackCommand& command, const GlobalOptions& global);

}  // namespace h5pack
