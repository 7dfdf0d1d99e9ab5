#include "h5/chunk_index.hpp"

#include <fcntl.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <limits>
#include <map>
#include <mutex>
#include <utility>

#include <hdf5.h>

#include <chunkio/error.hpp>

#include "base/checked_math.hpp"
#include "base/host_memory.hpp"
#include "base/positional_io.hpp"
#include "h5/error_stack.hpp"
#include "h5/file_contents.hpp"
#include "h5/handle.hpp"
#include "h5/library.hpp"
#include "h5/probe_driver.hpp"

namespace chunkio::h5 {
namespace {

/// An entry as it is kept; zero bytes mean that it was not looked up yet, so that memory is taken
/// only where chunks were.
struct Slot {
  static constexpr std::uint64_t kUnknown = 0;
  static constexpr std::uint64_t kUnallocated = 1;
  static constexpr std::uint64_t kFirstOffset = 2;

  std::uint64_t place = kUnknown;  // kFirstOffset + file offset
  std::uint32_t stored_bytes = 0;  // HDF5's limit of a chunk is 4 GiB
  std::uint32_t filter_mask = 0;
};

/// A node of std::map with two numbers, as allocators round it.
constexpr std::int64_t kRangeBytes = 64;

}  // namespace

struct ChunkIndex::Impl {
  Impl(int original, Target what) : target(std::move(what)), fd(duplicate(original)) {
    for (std::size_t axis = 0; axis < target.shape.rank(); ++axis) {
      grid[axis] = base::ceil_divide(target.shape[axis], target.chunk[axis]);
      num_chunks *= grid[axis];
    }
    slots = base::HostBuffer(static_cast<std::size_t>(num_chunks) * sizeof(Slot));
  }
  [[nodiscard]] base::FileDescriptor duplicate(int original) const {
    base::FileDescriptor copy(::fcntl(original, F_DUPFD_CLOEXEC, 0));
    if (!copy.valid()) throw base::system_error(errno, "open once more", target.path);
    return copy;
  }

  [[nodiscard]] std::string where(std::span<const std::int64_t> coord) const {
    std::string text = "chunk [";
    for (std::size_t axis = 0; axis < coord.size(); ++axis) {
      text += (axis == 0 ? "" : ",") + std::to_string(coord[axis]);
    }
    const std::int64_t first = coord[0] * target.chunk[0];
    const std::int64_t last = std::min(first + target.chunk[0], target.shape[0]) - 1;
    return text + "] (rows " + std::to_string(first) + " to " + std::to_string(last) + ") of " +
           printable(target.dataset) + " in " + target.path;
  }

  [[nodiscard]] Slot& slot_of(std::span<const std::int64_t> coord) const {
    std::int64_t number = 0;
    for (std::size_t axis = 0; axis < coord.size(); ++axis) {
      number = number * grid[axis] + coord[axis];
    }
    return reinterpret_cast<Slot*>(slots.data())[number];
  }

  /// Checks an entry and keeps it. Library and `mutex` are held.
  void keep(std::span<const std::int64_t> coord, std::int64_t file_offset,
            std::int64_t stored_bytes, std::uint32_t filter_mask) {
    const auto end = base::checked_add(file_offset, stored_bytes);
    if (file_offset <= 0 || stored_bytes <= 0 || !end || *end > target.file_bytes ||
        !std::in_range<std::uint32_t>(stored_bytes)) {
      throw Error(ErrorCode::corrupt_data,
                  where(coord) + " lies at byte " + std::to_string(file_offset) + " with " +
                      std::to_string(stored_bytes) + " bytes, outside of the file's " +
                      std::to_string(target.file_bytes) + "; copy or download the file again");
    }
    if (target.raw_bytes != 0 && stored_bytes != target.raw_bytes) {
      throw Error(ErrorCode::corrupt_data,
                  where(coord) + " has " + std::to_string(stored_bytes) + " bytes, expected " +
                      std::to_string(target.raw_bytes) + "; copy or download the file again");
    }
    Slot& slot = slot_of(coord);
    if (slot.place != Slot::kUnknown) return;
    const auto after = ranges.lower_bound(file_offset);
    const bool runs_into_next = after != ranges.end() && after->first < *end;
    const bool runs_into_last = after != ranges.begin() && std::prev(after)->second > file_offset;
    if (runs_into_next || runs_into_last) {
      throw Error(ErrorCode::corrupt_data,
                  where(coord) + " overlaps another chunk; copy or download the file again");
    }
    ranges.emplace_hint(after, file_offset, *end);
    slot = {.place = Slot::kFirstOffset + static_cast<std::uint64_t>(file_offset),
            .stored_bytes = static_cast<std::uint32_t>(stored_bytes),
            .filter_mask = filter_mask};
  }

  void look_up(std::span<const std::int64_t> coord);

  Target target;
  base::FileDescriptor fd;
  std::array<std::int64_t, Shape::kMaxRank> grid{};
  std::int64_t num_chunks = 1;

  std::mutex mutex;  // guards what follows; taken after Library::lock()
  base::HostBuffer slots;
  std::map<std::int64_t, std::int64_t> ranges;  // of chunks found: first byte, one past the last
#if CHUNKIO_HAVE_CHUNK_ITER
  bool listed = false;
#else
  ProbedRange probed;
#endif
  FileId file;
  DatasetId dataset;
};

#if CHUNKIO_HAVE_CHUNK_ITER

namespace {

struct Listing {
  ChunkIndex::Target const* target = nullptr;
  std::vector<std::pair<std::array<std::int64_t, Shape::kMaxRank>, std::array<std::int64_t, 3>>>
      chunks;
  bool failed = false;
};

/// H5D_chunk_iter_op_t. No exception may pass through libhdf5's frames.
int collect_chunk(const hsize_t* offset, unsigned filter_mask, haddr_t address, hsize_t size,
                  void* data) noexcept {
  auto& listing = *static_cast<Listing*>(data);
  try {
    std::array<std::int64_t, Shape::kMaxRank> coord{};
    for (std::size_t axis = 0; axis < listing.target->shape.rank(); ++axis) {
      coord[axis] = static_cast<std::int64_t>(offset[axis]) / listing.target->chunk[axis];
    }
    listing.chunks.push_back({coord,
                              {static_cast<std::int64_t>(address), static_cast<std::int64_t>(size),
                               static_cast<std::int64_t>(filter_mask)}});
    return 0;
  } catch (...) {
    listing.failed = true;
    return -1;
  }
}

}  // namespace

void ChunkIndex::Impl::look_up(std::span<const std::int64_t> coord) {
  if (!listed) {
    const std::string action = "list the chunks of " + printable(target.dataset) + " in";
    file = open_file(target.path);
    dataset = open_dataset(file, target.dataset, target.path);
    Listing listing{.target = &target};
    const herr_t status = H5Dchunk_iter(dataset.get(), H5P_DEFAULT, &collect_chunk, &listing);
    if (listing.failed) throw std::bad_alloc();
    check_status(status, action, target.path);
    const std::size_t rank = target.shape.rank();
    for (const auto& [place, entry] : listing.chunks) {
      for (std::size_t axis = 0; axis < rank; ++axis) {
        if (place[axis] < 0 || place[axis] >= grid[axis]) {
          throw Error(ErrorCode::corrupt_data,
                      where(std::span(place).first(rank)) + " lies outside of the dataset");
        }
      }
      keep(std::span(place).first(rank), entry[0], entry[1], static_cast<std::uint32_t>(entry[2]));
    }
    listed = true;
    dataset.reset();
    file.reset();
  }
  Slot& slot = slot_of(coord);
  if (slot.place == Slot::kUnknown) slot.place = Slot::kUnallocated;
}

#else

void ChunkIndex::Impl::look_up(std::span<const std::int64_t> coord) {
  probed = {};
  const auto failed = [&](const std::string& cause) {
    if (probed.failure) {
      return Error(probed.failure->code(),
                   where(coord) + " cannot be looked up: " + probed.failure->what());
    }
    return Error(ErrorCode::corrupt_data, where(coord) + " cannot be looked up (libhdf5: " + cause +
                                              "); copy or download the file again");
  };
  if (!dataset) {
    try {
      if (!file) file = open_probe(fd.get(), probed, target.path);
      dataset = open_dataset(file, target.dataset, target.path);
    } catch (const Error& error) {
      throw failed(error.what());
    }
  }
  std::array<hsize_t, Shape::kMaxRank> origin{};
  for (std::size_t axis = 0; axis < coord.size(); ++axis) {
    origin[axis] = static_cast<hsize_t>(coord[axis] * target.chunk[axis]);
  }
  std::uint32_t filter_mask = 0;
  std::byte unused{};
  // Fails for a chunk without storage, for which H5Dget_chunk_storage_size alone has a distinct
  // answer: 0 bytes, or in some versions an error that says so.
  if (H5Dread_chunk(dataset.get(), H5P_DEFAULT, origin.data(), &filter_mask, &unused) < 0) {
    const std::string cause = describe_error_stack();
    hsize_t stored_bytes = 0;
    const herr_t status = H5Dget_chunk_storage_size(dataset.get(), origin.data(), &stored_bytes);
    const bool unallocated =
        !probed.failure &&
        (status < 0 ? describe_error_stack().find("not allocated") != std::string::npos
                    : stored_bytes == 0);
    if (!unallocated) throw failed(cause);
    slot_of(coord).place = Slot::kUnallocated;
    return;
  }
  if (probed.requests != 1) {
    throw Error(ErrorCode::hdf5_failed, where(coord) + " cannot be looked up: libhdf5 asked for " +
                                            std::to_string(probed.requests) + " runs of bytes");
  }
  keep(coord, probed.file_offset, probed.bytes, filter_mask);
}

#endif

ChunkIndex::ChunkIndex(int fd, Target target)
    : impl_(std::make_unique<Impl>(fd, std::move(target))) {}
ChunkIndex::~ChunkIndex() = default;

ChunkEntry ChunkIndex::find(std::span<const std::int64_t> coord) const {
  const auto as_entry = [](const Slot& slot) -> ChunkEntry {
    if (slot.place == Slot::kUnallocated) return {};
    return {.file_offset = static_cast<std::int64_t>(slot.place - Slot::kFirstOffset),
            .stored_bytes = slot.stored_bytes,
            .filter_mask = slot.filter_mask};
  };
  const Slot& slot = impl_->slot_of(coord);
  {
    const std::lock_guard lock(impl_->mutex);
    if (slot.place != Slot::kUnknown) return as_entry(slot);
  }
  const auto guard = Library::lock();
  const std::lock_guard lock(impl_->mutex);
  if (slot.place == Slot::kUnknown) impl_->look_up(coord);
  return as_entry(slot);
}

std::span<const std::int64_t> ChunkIndex::grid() const noexcept {
  return std::span(impl_->grid).first(impl_->target.shape.rank());
}

std::int64_t ChunkIndex::num_chunks() const noexcept { return impl_->num_chunks; }

std::int64_t ChunkIndex::memory_bytes() const noexcept {
  return static_cast<std::int64_t>(base::HostBuffer::footprint(impl_->slots.bytes().size())) +
         impl_->num_chunks * kRangeBytes;
}

}  // namespace chunkio::h5
