/// Lists a folder of images, by the rules of torchvision's ImageFolder.
#pragma once

#include <string>
#include <vector>

#include "h5pack/sources/listing.hpp"
#include "h5pack/sources/source_kind.hpp"

namespace h5pack {

/// Lists DIR.
///
/// - Class folders, sorted by bytes, give labels 0..K-1; images in nested folders belong to the
///   top class folder. Within a class images are sorted by folder, then by name. Symbolic links
///   are followed, loops are not.
/// - A folder with images but no folders gives one split without labels.
/// - Two or more of train/, val/ and test/ are splits with one common class list, their union.
///
/// Blocks on I/O.
/// \throws Error not_found (no DIR, no images, a class without any), io_failed
///         (unreadable).
[[nodiscard]] Listing list_folder(const std::string& dir);

/// The images directly in `dir`, as paths, sorted by bytes; used by other sources, too.
/// \throws Error not_found, io_failed.
[[nodiscard]] std::vector<std::string> list_flat_folder(const std::string& dir);

/// The entry of the kind.
extern const SourceKind kFolderSource;

}  // namespace h5pack
