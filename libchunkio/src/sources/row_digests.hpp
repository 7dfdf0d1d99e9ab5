/// Stored rows of different lengths, sparse ones and encoded images, compared with their digests.
///
/// The digest of a row is that of its bytes in the first array, continued with those in the next
/// (libchunkio/doc/format.md).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include <chunkio/epoch_order.hpp>

#include "base/buffer_pool.hpp"
#include "base/chunk_source.hpp"
#include "h5/dataset_impl.hpp"
#include "sources/element_reader.hpp"

namespace chunkio::sources {

/// Whether rows of the file differ in length: sparse ones, and encoded images.
[[nodiscard]] bool has_ragged_rows(const Dataset::Impl& file) noexcept;
/// Why the rows of a file, of whichever kind, cannot be compared with digests, as a clause; empty
/// if they can. Takes Library::lock(). \throws Error hdf5_failed, corrupt_data.
[[nodiscard]] std::string why_not_comparable(const Dataset::Impl& file);

/// Thread-safe.
class RowDigests {
 public:
  /// Why rows cannot be compared, as a clause; empty if they can. Takes Library::lock().
  [[nodiscard]] static std::string why_not(const Dataset::Impl& file);

  /// \throws Error unsupported if why_not() says something.
  static void require(const Dataset::Impl& file);
  /// The error that rows do not match.
  [[nodiscard]] static DamagedRows mismatch(std::vector<RowRange> rows, const std::string& path);
  /// The stored digests. \pre why_not() is empty. \throws Error hdf5_failed, corrupt_data.
  [[nodiscard]] static std::shared_ptr<const h5::StoredArray> open_digests(
      const Dataset::Impl& file);

  /// \pre why_not() is empty. \throws Error hdf5_failed, corrupt_data, out_of_resources.
  RowDigests(std::shared_ptr<const Dataset::Impl> file, std::shared_ptr<const ByteSource> bytes);

  /// Reads rows [first, end) and compares them. Blocks on I/O.
  /// \returns bytes read. \throws DamagedRows; Error corrupt_data, io_failed, hdf5_failed,
  /// cancelled.
  std::int64_t check(const RowRange& rows, const std::stop_token& stop) const;
  /// Rows that are best compared together: some MiB, or one.
  [[nodiscard]] std::int64_t rows_together() const noexcept { return rows_together_; }
  [[nodiscard]] std::int64_t num_rows() const noexcept { return file_->info.num_samples; }

 private:
  struct Part {
    ElementReader reader;
    std::int64_t element_bytes = 0;
  };

  std::shared_ptr<const Dataset::Impl> file_;
  std::shared_ptr<base::BufferPool> scratch_ = std::make_shared<base::BufferPool>();
  std::optional<ElementReader> offsets_;
  std::optional<ElementReader> digests_;
  std::vector<Part> parts_;
  std::int64_t rows_together_ = 1;
};

}  // namespace chunkio::sources
