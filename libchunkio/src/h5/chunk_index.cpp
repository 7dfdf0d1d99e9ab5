#include "h5/chunk_index.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <iterator>
#include <limits>
#include <map>
#include <mutex>
#include <new>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <hdf5.h>

#include <chunkio/error.hpp>

#include "base/checked_math.hpp"
#include "base/host_memory.hpp"
#include "h5/error_stack.hpp"
#include "h5/file_contents.hpp"
#include "h5/handle.hpp"
#include "h5/library.hpp"
#include "h5/source_file.hpp"

namespace chunkio::h5 {
namespace {

/// An entry as it is kept; zero bytes mean that it was not looked up yet, so that memory is taken
/// only where chunks were. Entries that cannot be true are kept, too: find() says so each time.
struct Slot {
  static constexpr std::uint64_t kUnknown = 0;
  static constexpr std::uint64_t kUnallocated = 1;
  static constexpr std::uint64_t kOverlaps = 2;
  static constexpr std::uint64_t kFirstOffset = 3;

  std::uint64_t place = kUnknown;  // kFirstOffset + file offset
  /// HDF5's limit of a chunk is 4 GiB. For kOverlaps: the number of the other chunk.
  std::uint32_t stored_bytes = 0;
  std::uint32_t filter_mask = 0;
};

/// Bytes of the file that belong to a chunk, kept by their first one.
struct Range {
  std::int64_t end = 0;  // one past the last
  std::int64_t owner = 0;
};

/// A node of std::map with three numbers, as allocators round it.
constexpr std::int64_t kRangeBytes = 64;

using Coord = std::array<std::int64_t, Shape::kMaxRank>;

}  // namespace

struct ChunkIndex::Impl {
  Impl(std::shared_ptr<const ByteSource> source, Target what)
      : target(std::move(what)),
        bytes(std::move(source)),
        file(bytes, External::refused, probed_range()) {
    for (std::size_t axis = 0; axis < target.shape.rank(); ++axis) {
      grid[axis] = base::ceil_divide(target.shape[axis], target.chunk[axis]);
      const auto product = base::checked_multiply(num_chunks, grid[axis]);
      if (!product) {
        throw Error(ErrorCode::corrupt_data, target.path + ": " + printable(target.dataset) +
                                                 " has more chunks than can be counted");
      }
      num_chunks = *product;
    }
    if (num_chunks <= kMaxChunks) {
      slots = base::HostBuffer(static_cast<std::size_t>(num_chunks) * sizeof(Slot));
    }
  }

  [[nodiscard]] std::string describe(std::span<const std::int64_t> coord) const {
    std::string text = "chunk [";
    for (std::size_t axis = 0; axis < coord.size(); ++axis) {
      text += (axis == 0 ? "" : ",") + std::to_string(coord[axis]);
    }
    const std::int64_t first = coord[0] * target.chunk[0];
    const std::int64_t last = std::min(first + target.chunk[0], target.shape[0]) - 1;
    return text + "] (rows " + std::to_string(first) + " to " + std::to_string(last) + ")";
  }
  [[nodiscard]] std::string where(std::span<const std::int64_t> coord) const {
    return describe(coord) + " of " + printable(target.dataset) + " in " + target.path;
  }

  [[nodiscard]] std::int64_t number_of(std::span<const std::int64_t> coord) const {
    std::int64_t number = 0;
    for (std::size_t axis = 0; axis < coord.size(); ++axis) {
      number = number * grid[axis] + coord[axis];
    }
    return number;
  }
  [[nodiscard]] Coord coord_of(std::int64_t number) const {
    Coord coord{};
    for (std::size_t axis = target.shape.rank(); axis-- > 0; number /= grid[axis]) {
      coord[axis] = number % grid[axis];
    }
    return coord;
  }
  [[nodiscard]] Slot& slot(std::int64_t number) const {
    return reinterpret_cast<Slot*>(slots.data())[number];
  }

  [[nodiscard]] bool lies_inside(const ChunkEntry& entry) const {
    const auto end = base::checked_add(entry.file_offset, entry.stored_bytes);
    return entry.stored_bytes > 0 && entry.file_offset >= target.first_byte && end &&
           *end <= target.file_bytes;
  }

  /// \throws Error corrupt_data.
  void check(std::span<const std::int64_t> coord, const ChunkEntry& entry) const {
    if (!lies_inside(entry)) {
      throw Error(ErrorCode::corrupt_data,
                  where(coord) + " lies at byte " + std::to_string(entry.file_offset) + " with " +
                      std::to_string(entry.stored_bytes) +
                      " bytes, outside of the file's bytes for data, " +
                      std::to_string(target.first_byte) + " to " +
                      std::to_string(target.file_bytes) + "; copy or download the file again");
    }
    if (target.raw_bytes != 0 && entry.stored_bytes != target.raw_bytes) {
      throw Error(ErrorCode::corrupt_data,
                  where(coord) + " has " + std::to_string(entry.stored_bytes) +
                      " bytes, expected " + std::to_string(target.raw_bytes) +
                      "; copy or download the file again");
    }
  }

  /// What find() answers of a slot that is filled, or cannot be. `mutex` is held, or `listed` is
  /// set.
  [[nodiscard]] ChunkEntry entry_of(std::span<const std::int64_t> coord) const {
    const Slot& kept = slot(number_of(coord));
    if (kept.place == Slot::kUnknown && !damage.empty()) {
      throw Error(ErrorCode::corrupt_data,
                  where(coord) + " cannot be found: the index of chunks is damaged, " + damage +
                      "; copy or download the file again");
    }
    if (kept.place <= Slot::kUnallocated) return {};
    if (kept.place == Slot::kOverlaps) {
      const Coord other = coord_of(kept.stored_bytes);
      throw Error(ErrorCode::unsupported,
                  describe(coord) + " and " + where(std::span(other).first(coord.size())) +
                      " overlap, so one of them is wrong, and rows of it may have been delivered; "
                      "copy or download the file again");
    }
    const ChunkEntry entry{
        .file_offset = static_cast<std::int64_t>(kept.place - Slot::kFirstOffset),
        .stored_bytes = kept.stored_bytes,
        .filter_mask = kept.filter_mask};
    check(coord, entry);
    return entry;
  }

  /// Keeps an entry as it was found, and says nothing of others. `mutex` is held.
  void put(std::int64_t number, const ChunkEntry& entry) const {
    Slot& kept = slot(number);
    if (!entry.allocated()) {
      kept.place = Slot::kUnallocated;
      return;
    }
    kept = {.place = Slot::kFirstOffset + static_cast<std::uint64_t>(entry.file_offset),
            // 0 is as wrong as what does not fit.
            .stored_bytes = std::in_range<std::uint32_t>(entry.stored_bytes)
                                ? static_cast<std::uint32_t>(entry.stored_bytes)
                                : 0,
            .filter_mask = entry.filter_mask};
  }

  /// The same of one that was looked up alone; finds what it overlaps. `mutex` is held.
  void keep(std::span<const std::int64_t> coord, const ChunkEntry& entry) {
    const std::int64_t number = number_of(coord);
    if (slot(number).place != Slot::kUnknown) return;
    put(number, entry);
    if (!entry.allocated() || !lies_inside(entry)) return;
    try {
      take_range(number, entry.file_offset, entry.file_offset + entry.stored_bytes);
    } catch (const std::bad_alloc&) {
      slot(number) = {};  // Known without its range, it would hide what overlaps it.
      throw;
    }
  }

  /// `one` overlaps `other`. A slot keeps the first that it is told.
  void mark(std::int64_t one, std::int64_t other) const {
    Slot& marked = slot(one);
    if (marked.place == Slot::kOverlaps) return;
    marked = {.place = Slot::kOverlaps, .stored_bytes = static_cast<std::uint32_t>(other)};
  }

  /// Ranges that overlap become one, so that all are disjoint and whatever overlaps either of them
  /// later is found.
  void take_range(std::int64_t number, std::int64_t begin, std::int64_t end) {
    auto at = ranges.lower_bound(begin);
    if (at != ranges.begin() && std::prev(at)->second.end > begin) --at;
    while (at != ranges.end() && at->first < end) {
      mark(number, at->second.owner);
      mark(at->second.owner, number);
      begin = std::min(begin, at->first);
      end = std::max(end, at->second.end);
      at = ranges.erase(at);
    }
    ranges.emplace_hint(at, begin, Range{.end = end, .owner = number});
  }

  /// The bytes of a chunk; empty if it has none, or none that lie inside the file.
  [[nodiscard]] ByteRange range_of(std::int64_t number) const {
    const Slot& kept = slot(number);
    if (kept.place < Slot::kFirstOffset) return {};
    const ChunkEntry entry{
        .file_offset = static_cast<std::int64_t>(kept.place - Slot::kFirstOffset),
        .stored_bytes = kept.stored_bytes};
    if (!lies_inside(entry)) return {};
    return {entry.file_offset, entry.file_offset + entry.stored_bytes};
  }

  /// Marks all chunks that overlap, once all are known.
  void mark_overlaps() const {
    bool ascending = true;
    std::int64_t end = 0;
    for (std::int64_t number = 0; number < num_chunks && ascending; ++number) {
      const ByteRange range = range_of(number);
      ascending = range.begin == range.end || range.begin >= end;
      end = std::max(end, range.end);
    }
    if (ascending) return;
    std::vector<std::uint32_t> by_offset(static_cast<std::size_t>(num_chunks));
    std::iota(by_offset.begin(), by_offset.end(), 0U);
    std::sort(by_offset.begin(), by_offset.end(), [this](std::uint32_t one, std::uint32_t other) {
      return range_of(one).begin < range_of(other).begin;
    });
    std::int64_t owner = -1;
    end = 0;  // of all bytes so far, which go to `owner`
    for (const std::uint32_t number : by_offset) {
      const ByteRange range = range_of(number);
      if (range.begin == range.end) continue;
      if (range.begin < end) {
        mark(number, owner);
        mark(owner, number);
      }
      if (range.end > end) {
        end = range.end;
        owner = number;
      }
    }
  }

  /// Whether the index comes whole.
  [[nodiscard]] bool lists() const noexcept {
    return CHUNKIO_HAVE_CHUNK_ITER != 0 || target.tree.has_value();
  }
  /// Fills all slots unless that was done. The library and `mutex` are held.
  /// \throws Error io_failed, hdf5_failed.
  void list() {
    if (listed.load(std::memory_order_relaxed)) return;
    if (target.tree) {
      list_tree();
    } else {
      list_by_libhdf5();
    }
    mark_overlaps();
    listed.store(true, std::memory_order_release);
  }
  void list_tree();
  void list_by_libhdf5();

  /// Asks libhdf5 for one chunk. The library and `mutex` are held.
  /// \throws Error corrupt_data, hdf5_failed.
  [[nodiscard]] ChunkEntry look_up(std::span<const std::int64_t> coord);
  [[nodiscard]] std::array<hsize_t, Shape::kMaxRank> origin_of(
      std::span<const std::int64_t> coord) const {
    std::array<hsize_t, Shape::kMaxRank> origin{};
    for (std::size_t axis = 0; axis < coord.size(); ++axis) {
      origin[axis] = static_cast<hsize_t>(coord[axis] * target.chunk[axis]);
    }
    return origin;
  }

  [[nodiscard]] ProbedRange* probed_range() {
#if CHUNKIO_HAVE_CHUNK_ITER
    return nullptr;
#else
    return &probed;
#endif
  }
  /// Opens the dataset, of a file that the chunk cache of others has nothing to do with. The
  /// library and `mutex` are held. \throws Error corrupt_data, io_failed, hdf5_failed.
  void open() {
    if (dataset) return;
    if (!file.id()) file.open();
    dataset = open_dataset(file.id(), target.dataset, target.path);
  }

  Target target;
  std::shared_ptr<const ByteSource> bytes;
  Coord grid{};
  std::int64_t num_chunks = 1;

  std::mutex mutex;  // guards what follows; taken after Library::lock()
  base::HostBuffer slots;
  std::map<std::int64_t, Range> ranges;  // of chunks looked up, by their first byte; disjoint
  std::string damage;                    // of the index that was listed, as a clause
  /// All slots are filled and stay as they are.
  std::atomic<bool> listed = false;
#if !CHUNKIO_HAVE_CHUNK_ITER
  ProbedRange probed;
#endif
  SourceFile file;  // libhdf5's own hold on it: what is looked up is not what is read
  DatasetId dataset;
};

#if CHUNKIO_HAVE_CHUNK_ITER

namespace {

/// Numbers of libhdf5 as ours. Those beyond 63 bits lie in no file, as does the largest.
ChunkEntry as_entry(haddr_t address, hsize_t size, unsigned filter_mask) {
  if (address == HADDR_UNDEF || size == 0) return {};
  constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  return {
      .file_offset =
          std::in_range<std::int64_t>(address) ? static_cast<std::int64_t>(address) : kMax,
      .stored_bytes = std::in_range<std::int64_t>(size) ? static_cast<std::int64_t>(size) : kMax,
      .filter_mask = filter_mask};
}

/// H5D_chunk_iter_op_t, of a function that takes what it is told of a chunk and throws nothing.
template <class Take>
int take_chunk(const hsize_t* offset, unsigned filter_mask, haddr_t address, hsize_t size,
               void* data) noexcept {
  (*static_cast<Take*>(data))(offset, as_entry(address, size, filter_mask));
  return 0;
}

}  // namespace

ChunkEntry ChunkIndex::Impl::look_up(std::span<const std::int64_t> coord) {
  open();
  unsigned filter_mask = 0;
  haddr_t address = HADDR_UNDEF;
  hsize_t size = 0;
  check_status(H5Dget_chunk_info_by_coord(dataset.get(), origin_of(coord).data(), &filter_mask,
                                          &address, &size),
               "look up " + describe(coord) + " of " + printable(target.dataset) + " in",
               target.path);
  return as_entry(address, size, filter_mask);
}

void ChunkIndex::Impl::list_by_libhdf5() {
  open();
  auto take = [this](const hsize_t* offset, const ChunkEntry& entry) noexcept {
    Coord coord{};
    bool inside = true;  // nobody asks for chunks outside of the dataset
    const std::size_t rank = target.shape.rank();
    for (std::size_t axis = 0; axis < rank; ++axis) {
      const hsize_t place = offset[axis] / static_cast<hsize_t>(target.chunk[axis]);
      inside = inside && std::cmp_less(place, grid[axis]);
      coord[axis] = static_cast<std::int64_t>(place);
    }
    if (inside) put(number_of(std::span(coord).first(rank)), entry);
  };
  check_status(H5Dchunk_iter(dataset.get(), H5P_DEFAULT, &take_chunk<decltype(take)>, &take),
               "list the chunks of " + printable(target.dataset) + " in", target.path);
}

#else

ChunkEntry ChunkIndex::Impl::look_up(std::span<const std::int64_t> coord) {
  probed = {};
  const auto failed = [&](const std::string& cause) {
    const std::optional<Error> failure = file.take_failure();
    if (failure) {
      return Error(failure->code(), where(coord) + " cannot be looked up: " + failure->what());
    }
    return Error(ErrorCode::corrupt_data, where(coord) + " cannot be looked up (libhdf5: " + cause +
                                              "); copy or download the file again");
  };
  try {
    open();
  } catch (const Error& error) {
    if (error.code() == ErrorCode::hdf5_failed) throw failed(error.what());
    throw Error(error.code(), where(coord) + " cannot be looked up: " + error.what());
  }
  const auto origin = origin_of(coord);
  std::uint32_t filter_mask = 0;
  std::byte unused{};
  // Fails for a chunk without storage, for which H5Dget_chunk_storage_size alone has a distinct
  // answer: 0 bytes, or in some versions an error that says so.
  if (H5Dread_chunk(dataset.get(), H5P_DEFAULT, origin.data(), &filter_mask, &unused) < 0) {
    const std::string cause = describe_error_stack();
    hsize_t stored_bytes = 0;
    const herr_t status = H5Dget_chunk_storage_size(dataset.get(), origin.data(), &stored_bytes);
    const bool unallocated =
        !file.failed() &&
        (status < 0 ? describe_error_stack().find("not allocated") != std::string::npos
                    : stored_bytes == 0);
    if (!unallocated) throw failed(cause);
    return {};
  }
  if (probed.requests != 1) {
    throw Error(ErrorCode::hdf5_failed, where(coord) + " cannot be looked up: libhdf5 asked for " +
                                            std::to_string(probed.requests) + " runs of bytes");
  }
  return {
      .file_offset = probed.file_offset, .stored_bytes = probed.bytes, .filter_mask = filter_mask};
}

void ChunkIndex::Impl::list_by_libhdf5() {}  // not asked: lists()

#endif

void ChunkIndex::Impl::list_tree() {
  constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  const auto base = static_cast<std::uint64_t>(target.tree->base);
  const auto keep_entry = [&](const TreeEntry& entry) {
    const std::uint64_t offset = entry.address + base;
    // What lies beyond 63 bits lies in no file, as does the largest.
    const bool fits = offset >= base && std::in_range<std::int64_t>(offset);
    put(entry.number, {.file_offset = fits ? static_cast<std::int64_t>(offset) : kMax,
                       .stored_bytes = entry.stored_bytes,
                       .filter_mask = entry.filter_mask});
  };
  damage = list_chunks(*bytes, *target.tree, target.shape, target.chunk, keep_entry).damage;
}

ChunkIndex::ChunkIndex(std::shared_ptr<const ByteSource> bytes, Target target)
    : impl_(std::make_unique<Impl>(std::move(bytes), std::move(target))) {}
ChunkIndex::~ChunkIndex() = default;

ChunkEntry ChunkIndex::find(std::span<const std::int64_t> coord) const {
  Impl& impl = *impl_;
  if (impl.listed.load(std::memory_order_acquire)) return impl.entry_of(coord);
  const Slot& slot = impl.slot(impl.number_of(coord));
  if (!impl.lists()) {
    const std::lock_guard lock(impl.mutex);
    if (slot.place != Slot::kUnknown) return impl.entry_of(coord);
  }
  const auto guard = Library::lock();
  const std::lock_guard lock(impl.mutex);
  if (!impl.lists()) {
    if (slot.place == Slot::kUnknown) impl.keep(coord, impl.look_up(coord));
  } else {
    try {
      impl.list();
    } catch (const Error& error) {
      throw Error(error.code(), impl.where(coord) + " cannot be looked up: " + error.what());
    }
  }
  return impl.entry_of(coord);
}

ChunkEntry ChunkIndex::find_once(std::span<const std::int64_t> coord) const {
  const auto guard = Library::lock();
  const std::lock_guard lock(impl_->mutex);
  const ChunkEntry entry = impl_->look_up(coord);
  if (entry.allocated()) impl_->check(coord, entry);
  return entry;
}

std::optional<ChunkIndex::Listed> ChunkIndex::list() const {
  if (!impl_->lists()) return std::nullopt;
  const auto guard = Library::lock();
  const std::lock_guard lock(impl_->mutex);
  impl_->list();
  Listed listed{.damage = impl_->damage};
  for (std::int64_t number = 0; number < impl_->num_chunks; ++number) {
    const ByteRange range = impl_->range_of(number);
    listed.bytes += range.end - range.begin;
  }
  return listed;
}

std::span<const std::int64_t> ChunkIndex::grid() const noexcept {
  return std::span(impl_->grid).first(impl_->target.shape.rank());
}

std::int64_t ChunkIndex::num_chunks() const noexcept { return impl_->num_chunks; }

std::int64_t ChunkIndex::memory_bytes() const noexcept {
  const std::int64_t beside = impl_->lists() ? std::int64_t{sizeof(std::uint32_t)} : kRangeBytes;
  return static_cast<std::int64_t>(base::HostBuffer::footprint(impl_->slots.bytes().size())) +
         impl_->num_chunks * beside + kMetadataBytes;
}

}  // namespace chunkio::h5
