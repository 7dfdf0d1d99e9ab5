/// Which chunk source reads a file.
#pragma once

#include <memory>
#include <string>

#include <chunkio/dataset.hpp>
#include <chunkio/loader.hpp>

#include "base/chunk_source.hpp"

namespace chunkio::io {

struct SelectedSource {
  std::unique_ptr<ChunkSource> source;
  SourceKind kind = SourceKind::automatic;
  std::string reason;  ///< One clause.
};

/// Makes the source asked for, or with `automatic` the fastest that is correct for the file.
/// \param group_samples  rows in a full row group.
/// \throws Error unsupported if the source asked for cannot read this file; the message says why
/// and which can.
[[nodiscard]] SelectedSource select_source(std::shared_ptr<const Dataset::Impl> dataset,
                                           SourceKind wanted, std::int64_t group_samples);

}  // namespace chunkio::io
