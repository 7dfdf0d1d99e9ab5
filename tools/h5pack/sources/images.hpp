/// The rows of a split: all that packing asks of them, whatever holds them.
///
/// Most rows are opened in a decoder: ImageFiles, PlanarImages. StoredRows has also rows that a
/// packed file holds already, which are copied. Nobody else asks which of the three it has.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <chunkio/dataset.hpp>

#include "cli/file_bytes.hpp"
#include "h5pack/image/decode.hpp"
#include "h5pack/image/image.hpp"
#include "h5pack/image/image_sizes.hpp"

namespace h5pack {

/// The files that images are decoded from.
struct SourceFiles {
  std::vector<std::string> paths = {};
  /// What each of them was when the source was listed; empty: nobody looked.
  std::vector<cli::FileStamp> stamps = {};
};

/// Functions that are const are thread-safe; those that read block on I/O.
class Images {
 public:
  using Json = nlohmann::ordered_json;

  Images() = default;
  Images(const Images&) = delete;
  Images& operator=(const Images&) = delete;
  virtual ~Images() = default;

  [[nodiscard]] virtual std::int64_t count() const = 0;
  /// For messages: the file, the record within its file, or the row of the packed file.
  [[nodiscard]] virtual std::string name(std::int64_t row) const = 0;
  /// `source_index` of the row.
  [[nodiscard]] virtual std::int64_t source_index(std::int64_t row) const { return row; }
  [[nodiscard]] virtual const SourceFiles& files() const = 0;
  virtual void set_stamps(std::vector<cli::FileStamp> stamps) = 0;
  /// Calls `visit` with the path of each file that is read.
  virtual void visit_inputs(const std::function<void(const std::string&)>& visit) const {
    for (const std::string& path : files().paths) visit(path);
  }

  /// Opens a row in the calling thread's decoder.
  /// \pre not is_stored(row).
  /// \throws chunkio::Error as ImageDecoder::open().
  virtual ImageSize open(std::int64_t row, ImageDecoder& decoder) const = 0;
  /// \throws chunkio::Error io_failed if a file that open() does not look at each time has changed.
  virtual void check_unchanged() const {}

  // Of rows that a packed file holds, which the other kinds do not have.

  [[nodiscard]] virtual bool is_stored(std::int64_t /*row*/) const { return false; }
  /// Their size, which all other rows must have, too; absent without stored rows.
  /// \param wanted  what the options say.
  /// \throws chunkio::Error invalid_argument if that is another size.
  [[nodiscard]] virtual std::optional<ImageSize> stored_size(
      const std::optional<ImageSize>& /*wanted*/) const {
    return std::nullopt;
  }
  /// Reads consecutive rows, all of them stored.
  virtual void read_stored(std::int64_t /*first*/, std::int64_t /*count*/,
                           std::span<std::byte> /*pixels*/) const {}
  /// Reads one of a file of encoded images, with its digest. \pre is_stored(row).
  [[nodiscard]] virtual chunkio::EncodedImage read_stored_encoded(std::int64_t /*row*/) const {
    return {};
  }
  /// Bytes of all of them; of encoded ones, rounded up to whole bytes an image.
  [[nodiscard]] virtual std::int64_t stored_bytes() const { return 0; }
  /// Compares them with their digests before they are copied: a copy of damaged pixels would get
  /// digests that match.
  /// \throws chunkio::Error digest_mismatch and the like, cancelled.
  virtual void check_stored(const std::stop_token& /*stop*/, bool /*quiet*/) const {}
  /// Adds the sizes that they had in their source. \returns false if not all of them are known.
  [[nodiscard]] virtual bool add_stored_sizes(ImageSizes& /*sizes*/) const { return true; }
  /// Adds to a run's fingerprint which file they are of.
  virtual void add_fingerprint(Json& /*fingerprint*/) const {}
  /// What the new file records: `options` of this run, behind those that made the stored rows.
  [[nodiscard]] virtual Json with_stored_options(Json options) const { return options; }
};

}  // namespace h5pack
