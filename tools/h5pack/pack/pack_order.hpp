/// Which source rows a file gets, in which order, and what goes with each.
#pragma once

#include <cstdint>
#include <vector>

#include <chunkio/dataset_writer.hpp>

#include "h5pack/pack/pack_plan.hpp"
#include "h5pack/sources/listing.hpp"
#include "h5pack/sources/skipped_image.hpp"

namespace h5pack {

/// The source rows of the file in pack order: shuffled, or as in the source. Those of a shard are a
/// part of the same order.
[[nodiscard]] std::vector<std::int64_t> pack_order(const PackPlan& plan,
                                                   const PackOptions& options);

/// All fields of a file whose row i is source row order[i]: those of the split, and source_index.
[[nodiscard]] std::vector<chunkio::FieldData> fields_of(const Split& split,
                                                        const std::vector<std::int64_t>& order);

/// The places of the images that were packed, as source rows. \param skipped  in pack order.
[[nodiscard]] std::vector<std::int64_t> without(const std::vector<std::int64_t>& order,
                                                const std::vector<SkippedImage>& skipped);

}  // namespace h5pack
