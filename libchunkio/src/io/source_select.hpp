/// Which chunk source reads a file.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <chunkio/dataset.hpp>
#include <chunkio/loader.hpp>

#include "base/chunk_source.hpp"
#include "h5/stored_array.hpp"

namespace chunkio::io {

struct SelectedSource {
  std::unique_ptr<ChunkSource> source;
  SourceKind kind = SourceKind::automatic;
  std::string reason;  ///< One clause.
};

/// What is asked of a source.
struct SourceRequest {
  SourceKind kind = SourceKind::automatic;
  std::int64_t group_samples = 1;  ///< Rows in a full row group.
  bool direct_io = false;          ///< See LoaderOptions.
};

/// Makes the source asked for, or with `automatic` the fastest that is correct for the array.
/// \throws Error unsupported if the source asked for cannot read this array; the message says why
///         and which can.
[[nodiscard]] SelectedSource select_source(std::shared_ptr<const Dataset::Impl> file,
                                           std::shared_ptr<const h5::StoredArray> array,
                                           const SourceRequest& request);

}  // namespace chunkio::io
