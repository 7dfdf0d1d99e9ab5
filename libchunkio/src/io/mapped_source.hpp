/// Rows copied straight from a mapping of the file.
///
/// For files whose rows lie in one unfiltered run (Dataset::Impl::linear_offset) on a local disk,
/// and small enough for the page cache. The one copy that remains, page cache to batch, is the
/// whole work: no system call copies bytes, and non-temporal stores keep the batch out of this
/// core's cache.
///
/// A file that is cut short under the mapping, or a disk that fails, ends in an Error: most pages
/// are asked for before they are touched (and the kernel refuses), FaultGuard catches the rest, and
/// Dataset::Impl::check_unchanged notices a page that was cut off inside, which reads as zeros
/// without any fault.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>

#include <chunkio/dataset.hpp>

#include "base/chunk_source.hpp"
#include "h5/dataset_impl.hpp"
#include "io/fault_guard.hpp"

namespace chunkio::io {

class MappedSource final : public ChunkSource {
 public:
  /// \pre dataset->linear_offset.
  /// \throws Error io_failed, out_of_resources.
  explicit MappedSource(std::shared_ptr<const Dataset::Impl> dataset);
  ~MappedSource() override;

  PlaceCost place(const RowGroup& group, std::span<const RowTarget> rows,
                  std::stop_token stop) const override;
  [[nodiscard]] std::int64_t memory_bytes(std::int64_t threads) const noexcept override;

 private:
  /// Brings bytes [begin, end) of the mapping into memory, all requests to the disk at once.
  void populate(std::size_t begin, std::size_t end) const;
  [[nodiscard]] bool resident(std::size_t offset) const;

  std::shared_ptr<const Dataset::Impl> dataset_;
  std::size_t sample_bytes_;
  std::size_t page_bytes_;
  std::int64_t map_offset_ = 0;       // in the file; a multiple of the page size
  std::size_t first_row_offset_ = 0;  // in the mapping
  std::size_t map_bytes_ = 0;
  std::byte* map_ = nullptr;
  std::optional<FaultGuard> guard_;
};

/// Whether `dataset` should be mapped by default: on a local file system, and not larger than half
/// of the memory that this process may use for the page cache. If not: why, as a clause.
[[nodiscard]] std::optional<std::string> reason_not_to_map(const Dataset::Impl& dataset);

}  // namespace chunkio::io
