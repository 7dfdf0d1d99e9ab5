/// Packs one split into one file of images that stay encoded.
///
/// Data flow: Split -> pack order -> files read and decoded in parallel, to find the damaged ones
/// -> in pack order to EncodedWriter. The file gets the bytes as they are in the source, but for
/// images that exceed the size limit, which become smaller JPEG files.
#pragma once

#include <string>

#include "h5pack/pack/pack_plan.hpp"
#include "h5pack/pack/packer.hpp"
#include "h5pack/sources/listing.hpp"
#include "h5pack/sources/skipped_image.hpp"

namespace h5pack {

/// As pack(). num_chunks is 0.
PackResult pack_encoded(const Listing& listing, const Split& split, const PackPlan& plan,
                        const std::string& path, const PackOptions& options, ErrorBudget& budget);

}  // namespace h5pack
