/// Which dataset of a file leads, and if that is images, how their axes lie.
///
/// A file of this format says both; of a third-party file they are found out, unless the options
/// say them.
#pragma once

#include <chunkio/dataset.hpp>

#include "h5/dataset_impl.hpp"
#include "h5/file_contents.hpp"

namespace chunkio::h5 {

/// Finds and opens the dataset of an open file that leads: sets `leading` and what `info` says of
/// it. Called while Library::lock() is held. \throws Error not_found, refused_by_policy,
/// unsupported, invalid_argument, corrupt_data.
void open_leading(Dataset::Impl& file, const FileContents& contents, const OpenOptions& options);

}  // namespace chunkio::h5
