/// Puts a source behind the rows of a packed file: what h5pack append packs.
#pragma once

#include <string>

#include <chunkio/dataset.hpp>

#include "h5pack/sources/listing.hpp"

namespace h5pack {

/// Puts the rows of `before` in front of one split of `added`. Blocks on I/O: labels and fields of
/// the file are read.
///
/// Classes are matched by name: labels become those of the file, and so do columns of attributes.
/// Classes that only the file has are fine. Labels without names stay as they are. `source_index`
/// of the file's rows is kept; that of the new ones is their row in the source plus one more than
/// the highest of the file, so that no two are the same.
/// \param split  name of the split of `added`; empty: its only one, else that of the file.
/// \returns a listing of one split.
/// \throws chunkio::Error invalid_argument (no such split), unsupported (a class, attribute or
///         field that only one of them has: it is named), and as Dataset::read_field().
[[nodiscard]] Listing append_to(const chunkio::Dataset& before, Listing added,
                                const std::string& split);

}  // namespace h5pack
