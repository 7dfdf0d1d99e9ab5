/// Which rows of a file a Loader delivers.
#pragma once

#include <optional>

#include <chunkio/dataset.hpp>
#include <chunkio/epoch_order.hpp>
#include <chunkio/loader.hpp>

namespace chunkio::read {

/// The rows that meet LoaderOptions::rows and only_labels; absent: all. Reads the labels if they
/// matter: blocks on I/O.
/// \throws Error invalid_argument (rows that do not exist, labels that no sample has, nothing
/// left),
///         unsupported (no labels, or a table of them), hdf5_failed.
[[nodiscard]] std::optional<RowSelection> filter_rows(const Dataset& dataset,
                                                      const LoaderOptions& options);

}  // namespace chunkio::read
