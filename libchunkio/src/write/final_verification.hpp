/// The check of a finished file before it is published: a disk can lose what it said it wrote, and
/// libhdf5 does not always tell.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <stop_token>
#include <string>

#include <chunkio/dataset_writer.hpp>

#include "write/chunk_store.hpp"
#include "write/run_description.hpp"

namespace chunkio::write {

/// What a finished file shall hold beside its pixels.
struct ExpectedFile {
  const FieldDigests& fields;
  std::span<const std::uint64_t> row_digests;  ///< Of each sample.
  const std::optional<DatasetStatistics>& statistics;
};

/// Reads back all that was not read back yet. Blocks on I/O. \param target  for messages.
/// \throws Error digest_mismatch naming what is otherwise than it was written; cancelled,
///         io_failed, hdf5_failed, corrupt_data, out_of_resources.
void verify_finished(ChunkStore& chunks, const ExpectedFile& expected, const std::string& target,
                     std::stop_token stop);

/// For a ChunkStore: reads all chunks of `dataset`. \throws Error if one cannot be read.
[[nodiscard]] std::optional<std::int64_t> first_damaged_chunk(const Dataset& dataset,
                                                              std::stop_token stop);
/// For a ChunkStore. \param what  "field labels".
[[nodiscard]] Error read_back_otherwise(const std::string& target, const std::string& what);

}  // namespace chunkio::write
