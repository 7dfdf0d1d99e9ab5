/// Options that all packing commands have, append included.
#pragma once

#include <CLI/CLI.hpp>

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

}  // namespace h5pack
