/// Digests of samples (format.md, from version 2 on): of the pixels and of all fields together.
///
/// Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
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
  /// \throws Error io_failed, corrupt_data, hdf5_failed.
  [[nodiscard]] std::vector<RowRange> differing(std::int64_t first,
                                                std::span<std::uint64_t> digests) const;

  /// Drops from the page cache what differing() reads, as far as the kernel follows.
  void drop_from_cache() const noexcept;

 private:
  [[nodiscard]] std::shared_ptr<const h5::StoredArray> open_covered(const std::string& name) const;
  void read(const h5::StoredArray& array, std::int64_t first, std::int64_t count,
            std::span<std::byte> out) const;

  std::shared_ptr<const Dataset::Impl> file_;
  std::vector<std::shared_ptr<const h5::StoredArray>> fields_;  ///< In the order of the chain.
  std::shared_ptr<const h5::StoredArray> stored_;               ///< The digests.
};

}  // namespace chunkio::sources
