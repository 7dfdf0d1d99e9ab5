/// Lists CIFAR-10 and CIFAR-100 in their binary versions.
#pragma once

#include <string>

#include "h5pack/sources/listing.hpp"
#include "h5pack/sources/source_kind.hpp"

namespace h5pack {

/// Reads all batches of DIR (or of cifar-10-batches-bin/ or cifar-100-binary/ in it) into memory
/// and checks them: whole records, equal batches, labels in range.
///
/// A record is the label (CIFAR-100: coarse, then fine) and 3072 bytes [3,32,32] RGB. Splits are
/// train and test; `labels` int64 [N] (CIFAR-100: fine), and `coarse_labels` int64 [N] for
/// CIFAR-100.
///
/// Blocks on I/O.
/// \throws Error not_found (no batches, one missing, or only the Python version), corrupt_data
///         (wrong length, label out of range: with the byte offset), io_failed.
[[nodiscard]] Listing list_cifar(const std::string& dir);

/// The entry of the kind.
extern const SourceKind kCifarSource;

}  // namespace h5pack
