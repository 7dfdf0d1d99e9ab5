/// What a packed file says about where it came from, made usable again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <chunkio/dataset.hpp>
#include <chunkio/epoch_order.hpp>

#include "picture.hpp"
#include "sources/listing.hpp"

namespace h5pack {

/// `source_index` of the rows: which row of the source each one was; empty if the file has no such
/// field. Blocks on I/O.
/// \throws chunkio::Error corrupt_data, hdf5_failed.
[[nodiscard]] std::vector<std::int64_t> source_rows(const chunkio::Dataset& dataset,
                                                    chunkio::RowRange rows);

/// How the pictures of a file were made from their source, as it records it.
/// \throws chunkio::Error unsupported: it does not, or in words that this version does not know.
[[nodiscard]] PictureOptions recorded_picture_options(const chunkio::DatasetInfo& info);

/// A source that was listed again, and the split of it that a file was made from.
class RecordedSource {
 public:
  /// Lists the source that `info` records. Blocks on I/O.
  /// \param path  where it is now; empty: where it was when the file was packed.
  /// \throws chunkio::Error unsupported (the file does not say what it was made from), not_found
  ///         (no such source, or it has no such split), and as the listing functions.
  RecordedSource(const chunkio::DatasetInfo& info, const std::string& path);

  [[nodiscard]] const Listing& listing() const noexcept { return listing_; }
  [[nodiscard]] const Split& split() const noexcept { return listing_.splits[split_]; }
  [[nodiscard]] std::int64_t num_pictures() const { return h5pack::num_pictures(split().pictures); }
  /// The file (or record) of a source row. \pre 0 <= row < num_pictures().
  [[nodiscard]] std::string name(std::int64_t row) const {
    return picture_name(split().pictures, row);
  }

 private:
  Listing listing_;
  std::size_t split_ = 0;
};

}  // namespace h5pack
