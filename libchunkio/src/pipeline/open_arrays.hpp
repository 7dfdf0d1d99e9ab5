/// What a Loader reads row group by row group, and by which chunk sources.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <chunkio/dataset.hpp>
#include <chunkio/epoch_order.hpp>
#include <chunkio/loader.hpp>

#include "io/trial_source.hpp"
#include "pipeline/ring.hpp"
#include "pipeline/window_reader.hpp"

namespace chunkio::pipeline {

struct OpenedArrays {
  std::vector<StreamedArray> arrays = {};     ///< The pictures, then the large fields.
  SourceKind source = SourceKind::automatic;  ///< Of the pictures.
  std::string reason = {};                    ///< Why it was chosen, one clause.
  bool direct_io = false;                     ///< Pictures are read round the page cache.
  /// Of the pictures: see io::SelectedSource.
  std::shared_ptr<const io::SourceTrials> trials = nullptr;
};

/// Chooses sources for the pictures and for every field of `layout` (labels excepted) whose rows
/// take more than an eighth of the memory budget: smaller ones are worth keeping.
/// \param ring_rows  of the ring, which was never written; 0: rows go elsewhere.
/// \throws Error unsupported, io_failed, hdf5_failed, corrupt_data, out_of_resources.
[[nodiscard]] OpenedArrays open_arrays(const Dataset& dataset, const RowGroups& groups,
                                       const LoaderOptions& options, const RingLayout& layout,
                                       std::int64_t ring_rows);

}  // namespace chunkio::pipeline
