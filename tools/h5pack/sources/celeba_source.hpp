/// Lists CelebA: aligned faces with forty attributes, identities and landmarks.
#pragma once

#include <string>

#include "h5pack/sources/listing.hpp"
#include "h5pack/sources/source_kind.hpp"

namespace h5pack {

/// Lists DIR, which holds
///
/// - `img_align_celeba/` (or the same once more inside it) with the images;
/// - `list_attr_celeba.txt` or `.csv`: `labels` uint8 [N,A], -1 as 0 and 1 as 1, with the names of
///   the attributes;
/// - `list_eval_partition.txt` or `.csv`, if present: splits train, val, test (0, 1, 2); else all
///   is train;
/// - `identity_CelebA.txt`, if present: `identity` int64 [N];
/// - `list_landmarks_align_celeba.txt` or `.csv`, if present: `landmarks` int32 [N,L].
///
/// Tables may also lie in `Anno/` and `Eval/`, as the original archive has them. Rows are joined to
/// images by file name; a table that lacks an image or names one that is not there is an error.
///
/// Blocks on I/O.
/// \throws Error not_found (folder, table, or rows and images that do not match, the first few
///         named), corrupt_data (wrong count, columns, values or duplicates, with the line),
///         io_failed.
[[nodiscard]] Listing list_celeba(const std::string& dir);

/// The entry of the kind.
extern const SourceKind kCelebaSource;

}  // namespace h5pack
