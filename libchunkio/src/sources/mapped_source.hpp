/// Rows copied straight from a mapping of the file.
///
/// For unfiltered arrays of whole rows, in one run or chunk by chunk (row_extents.hpp), on a local
/// disk, and small enough for the page cache. The one copy that remains, page cache to batch, is
/// the whole work: no system call copies bytes, and non-temporal stores keep the batch out of this
/// core's cache.
///
/// A file that is cut short under the mapping, or a disk that fails, ends in an Error: most pages
/// are asked for before they are touched (and the kernel refuses), FaultGuard catches the rest, and
/// Dataset::Impl::check_unchanged notices a page that was cut off inside, which reads as zeros
/// without any fault.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <chunkio/dataset.hpp>

#include "base/chunk_source.hpp"
#include "h5/dataset_impl.hpp"
#include "io/fault_guard.hpp"
#include "io/read_ahead.hpp"

namespace chunkio::sources {

class MappedSource final : public ChunkSource {
 public:
  /// \pre `file` is a local one, and why_no_row_extents(*array) is empty.
  /// \throws Error io_failed, out_of_resources.
  MappedSource(std::shared_ptr<const Dataset::Impl> file,
               std::shared_ptr<const h5::StoredArray> array,
               std::shared_ptr<io::ReadAhead> read_ahead);
  ~MappedSource() override;

  ReadCost place(const RowGroup& group, std::span<const RowTarget> rows,
                 std::stop_token stop) const override;
  [[nodiscard]] std::unique_ptr<const ByteSource> prefetch(
      const RowGroup& group, const RowRange& wanted) const noexcept override;
  [[nodiscard]] std::int64_t memory_bytes(std::int64_t threads) const noexcept override;

 private:
  class Ahead;

  /// The blocks that bytes [begin, end) of the file lie in (see mapped_).
  [[nodiscard]] auto blocks(std::size_t begin, std::size_t end) const {
    return std::pair(mapped_.begin() + static_cast<std::ptrdiff_t>(begin / kBlockBytes),
                     mapped_.begin() + static_cast<std::ptrdiff_t>((end - 1) / kBlockBytes) + 1);
  }
  /// Whether these bytes can be copied without waiting for the disk. If the kernel does not show
  /// the file's pages: whether this process has them mapped.
  [[nodiscard]] bool is_cached(std::size_t begin, std::size_t end) const;
  /// Whether all pages of these bytes were mapped once.
  [[nodiscard]] bool is_mapped(std::size_t begin, std::size_t end) const;
  /// Brings these bytes into memory, all requests to the disk at once, and maps them.
  /// \param cached  they are in the page cache already.
  /// \returns false if they cannot be read.
  [[nodiscard]] bool bring_in(std::size_t begin, std::size_t end, bool cached) const;
  /// Rows of one stored run; row 0 of their group is (or would be) at file offset `origin`.
  /// \returns false if they cannot be read.
  [[nodiscard]] bool place_extent(std::span<const RowTarget> rows, std::int64_t origin,
                                  base::Stores stores, const std::stop_token& stop,
                                  ReadCost& cost) const;

  /// What the kernel maps around a page that faults, by default.
  static constexpr std::size_t kBlockBytes = std::size_t{64} << 10;

  std::shared_ptr<const Dataset::Impl> file_;
  std::shared_ptr<const h5::StoredArray> array_;
  std::shared_ptr<const io::LocalFile> local_;
  std::shared_ptr<io::ReadAhead> read_ahead_;
  std::size_t map_bytes_ = 0;  // the whole file
  std::byte* map_ = nullptr;
  /// Of each block of kBlockBytes of the file: whether its pages were mapped once. Asking again for
  /// pages that are there costs a tenth of copying them.
  mutable std::vector<std::atomic<bool>> mapped_;
  std::optional<io::FaultGuard> guard_;
};

}  // namespace chunkio::sources
