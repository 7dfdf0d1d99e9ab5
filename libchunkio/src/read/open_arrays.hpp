/// What a Loader reads row group by row group, and by which chunk sources.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <chunkio/dataset.hpp>
#include <chunkio/epoch_order.hpp>
#include <chunkio/loader.hpp>

#include "read/ring.hpp"
#include "read/window_reader.hpp"
#include "sources/trial_source.hpp"

namespace chunkio::read {

struct OpenedArrays {
  std::vector<StreamedArray> arrays = {};     ///< The one that leads, then large fields.
  SourceKind source = SourceKind::automatic;  ///< Of the one that leads.
  std::string reason = {};                    ///< Why it was chosen, one clause.
  bool direct_io = false;                     ///< It is read bypassing the page cache.
  /// Storage is asked for prefetched rows of it before a worker comes to them.
  bool reads_ahead = false;
  std::int64_t read_ahead_bytes = 0;  ///< Memory for that.
  /// How far ahead a WindowScheduler is to prefetch, if farther than it does by itself.
  std::int64_t prefetch_bytes = 0;
  /// That rows of a CSR matrix are read to, and batches are made in.
  std::int64_t sparse_bytes = 0;
  /// See sources::SelectedSource.
  std::shared_ptr<const sources::SourceTrials> trials = nullptr;
};

/// The most that is read and not yet handed over.
struct InFlight {
  std::int64_t rows = 0;
  std::int64_t groups = 0;  ///< Row groups that these are of.
};

/// What Verify::automatic stands for; other values stand for themselves.
[[nodiscard]] Verify resolved_verify(const Dataset& dataset, const RowGroups& groups,
                                     const LoaderOptions& options);

/// Chooses sources for the leading array and for every field of `layout` (labels excepted) whose
/// rows take more than an eighth of the memory budget: smaller ones are worth keeping. Of a CSR
/// matrix, notes in `layout` how large batches may be. \throws
/// Error unsupported, io_failed, hdf5_failed, corrupt_data, out_of_resources.
/// \pre options.io.verify is resolved.
[[nodiscard]] OpenedArrays open_arrays(const Dataset& dataset, const RowGroups& groups,
                                       const LoaderOptions& options, const InFlight& in_flight,
                                       RingLayout& layout);

}  // namespace chunkio::read
