/// Options that all packing commands have, append included; and what runs them.
#pragma once

#include <CLI/CLI.hpp>

#include "cli/command.hpp"
#include "h5pack/pack/pack_request.hpp"

namespace h5pack {

/// \param command  must outlive the parse.
void add_pack_options(CLI::App& app, PackRequest& command);

/// --chunk and --chunk-bytes.
/// \param writer  must outlive the parse.
void add_chunk_options(CLI::App& app, chunkio::WriterOptions& writer);

/// Those that one kind of source has.
/// \param request  must outlive the parse.
void add_source_options(CLI::App& app, const SourceKind& kind, SourceRequest& request);

/// Turns texts into options and finds contradictions; nothing has been touched yet.
/// \throws chunkio::Error invalid_argument.
void finish_options(PackRequest& command);

/// Lists the source, plans all splits, then packs one after the other; prints the result.
/// \returns ok; skipped if images were skipped; the signal's code if one stopped it.
/// \throws chunkio::Error why it could not.
cli::ExitCode run_pack(PackRequest& command, const cli::GlobalOptions& global);

}  // namespace h5pack
