/// What a DatasetWriter is asked for, checked before anything is done for it. The specification of
/// the dataset is checked by h5::validate().
#pragma once

#include <cstdint>

#include <chunkio/dataset_writer.hpp>

namespace chunkio::write {

/// \throws Error invalid_argument for options that do not depend on the dataset.
void check_options(const WriterOptions& options);

/// Samples of a chunk, as chosen or as asked for. \pre h5::validate(spec).
/// \throws Error invalid_argument if a chunk would exceed 4 GiB, or options are out of range.
[[nodiscard]] std::int64_t checked_chunk_samples(const DatasetSpec& spec,
                                                 const WriterOptions& options);

/// \throws Error invalid_argument if the statistics cannot be those of such a dataset.
void check_statistics(const DatasetSpec& spec, const DatasetStatistics& statistics);

}  // namespace chunkio::write
