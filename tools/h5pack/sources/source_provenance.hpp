/// Re-opens the source recorded in a packed file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <chunkio/dataset.hpp>
#include <chunkio/epoch_order.hpp>

#include "h5pack/image/image.hpp"
#include "h5pack/sources/listing.hpp"

namespace h5pack {

/// `source_index` of the file; absent if it has none, or another kind of field of that name.
[[nodiscard]] std::optional<chunkio::FieldInfo> find_source_index(const chunkio::Dataset& dataset);

/// `source_index` of the rows: which row of the source each one was; empty if the file has no such
/// field. Blocks on I/O.
/// \throws chunkio::Error corrupt_data, hdf5_failed.
[[nodiscard]] std::vector<std::int64_t> source_rows(const chunkio::Dataset& dataset,
                                                    chunkio::RowRange rows);

/// How the images of a file were made from their source, as it records it.
/// \throws chunkio::Error unsupported: it does not, or in words that this version does not know.
[[nodiscard]] ImageOptions recorded_image_options(const chunkio::DatasetInfo& info);

/// A source that was listed again, and the split of it that a file was made from; and the sources
/// that were appended to it.
class SourceProvenance {
 public:
  /// Lists the sources that `info` records. Blocks on I/O.
  /// \param path  where the first one is now; empty: where it was when the file was packed.
  /// \throws Error unsupported (the file does not say what it was made from), not_found (no such
  ///         source, or it has no such split), and as the listing functions.
  SourceProvenance(const chunkio::DatasetInfo& info, const std::string& path);

  /// Something was appended to what the file was first packed from, which the next three are of.
  [[nodiscard]] bool is_appended() const noexcept { return parts_.size() > 1; }
  [[nodiscard]] const Listing& listing() const noexcept { return parts_.front().listing; }
  [[nodiscard]] const Split& split() const noexcept {
    return listing().splits[parts_.front().split];
  }
  [[nodiscard]] std::int64_t num_images() const { return split().images->count(); }
  /// The file (or record) of a source row; absent if the sources have no such row now.
  [[nodiscard]] std::optional<std::string> name(std::int64_t row) const;

 private:
  struct Part {
    std::int64_t first_row = 0;  ///< In `source_index`.
    Listing listing = {};
    std::size_t split = 0;
  };

  void add_part(const chunkio::DatasetInfo& info, Listing listing, const std::string& split,
                std::int64_t first_row);

  std::vector<Part> parts_;  ///< At least one; ascending by first_row.
};

}  // namespace h5pack
