/// Digests of samples (format.md, from version 2 on): of the pixels and of all fields together.
///
/// Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include <chunkio/dataset.hpp>
#include <chunkio/epoch_order.hpp>

#include "h5/dataset_impl.hpp"
#include "h5/stored_array.hpp"

namespace chunkio::sources {

class SampleDigests {
 public:
  /// \pre file->info.digests_cover is not empty.
  /// \throws Error corrupt_data if the file lacks a dataset that they cover, unsupported,
  ///         hdf5_failed.
  explicit SampleDigests(std::shared_ptr<const Dataset::Impl> file);

  /// Chains the rows of the covered fields onto `digests`, those of the pixels of the samples from
  /// `first` on, and compares the result with the digests in the file. Blocks on I/O.
  /// \returns the samples that differ, as ascending ranges.
  /// \throws Error io_failed, corrupt_data, hdf5_failed, cancelled (`stop` requested).
  [[nodiscard]] std::vector<RowRange> differing(std::int64_t first,
                                                std::span<std::uint64_t> digests,
                                                const std::stop_token& stop) const;
  /// Bytes that it keeps.
  [[nodiscard]] std::int64_t memory_bytes() const noexcept;

  /// Drops from the page cache what differing() reads, as far as the kernel follows.
  void drop_from_cache() const noexcept;

 private:
  /// An array of a row for each sample.
  struct Array {
    std::shared_ptr<const h5::StoredArray> stored;
    /// Of a remote file, rows of a number each are read once, all together, and kept: row by row,
    /// each chunk would wait for the server twice more.
    bool is_kept = false;
    mutable std::mutex mutex = {};
    // Guarded by mutex.
    mutable std::vector<std::byte> rows = {};
    mutable std::uint64_t doubts = 0;  // that were there when rows were read
  };

  [[nodiscard]] std::unique_ptr<const Array> open(const std::string& name, const Shape& row_shape,
                                                  DType dtype) const;
  [[nodiscard]] std::unique_ptr<const Array> open_covered(const std::string& name) const;
  void read(const Array& array, std::int64_t first, std::span<std::byte> out,
            const std::stop_token& stop) const;
  void read_stored(const h5::StoredArray& array, std::int64_t first, std::int64_t count,
                   std::span<std::byte> out, const std::stop_token& stop) const;

  std::shared_ptr<const Dataset::Impl> file_;
  std::vector<std::unique_ptr<const Array>> fields_;  ///< In the order of the chain.
  std::unique_ptr<const Array> digests_;
};

}  // namespace chunkio::sources
