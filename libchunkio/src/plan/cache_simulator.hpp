/// libhdf5's raw data chunk cache, simulated: which chunks a series of reads loads, and what it
/// reads from the file.
///
/// The cache belongs to an open dataset. It is a hash table without chains, so two chunks that want
/// the same slot evict each other, and a list of the chunks held, from the first to evict to the
/// last:
///
/// - The slot of a chunk at grid position s of d axes is h mod rdcc_nslots, where h = s[0], and for
///   each further axis a, h = (h << b[a]) xor s[a]. b[a] is the number of bits that count the
///   chunks along the axis, rounded up to a power of two. 64 bits, wrapping.
/// - A hit moves a chunk one place towards the end of the list, not to the end.
/// - A chunk that is loaded first evicts the one in its slot, and then others until it fits into
///   rdcc_nbytes: a first walk along the list takes chunks that have been read completely; a second
///   walk, which takes any chunk, starts when the first has made floor(chunks held * rdcc_w0)
///   steps. So with rdcc_w0 = 1, and nothing read completely, nothing is evicted and the cache
///   grows beyond its limit. What counts as read completely: the bytes asked for since it was
///   loaded, the same bytes asked for twice included, are those of a whole chunk. At an edge of the
///   dataset one reading of everything is therefore not enough.
/// - A chunk with filters is always read and decoded whole, and not kept if it is larger than
///   rdcc_nbytes. One without is read whole if it is not larger; otherwise only the bytes asked
///   for are read, each run of them with a request of its own.
///
/// Learnt from the sources of versions 1.10.8 and 1.14.5 (H5D__chunk_hash_val, H5D__chunk_lock,
/// H5D__chunk_cache_prune, H5D__chunk_cacheable in H5Dchunk.c), and compared with the requests that
/// 1.10.8, 1.12.2, 1.14.6 and 2.0.0 make to their file driver: all of them agree.
///
/// Not simulated: writing, page buffers, several datasets read by one call, chunks that were never
/// written, filters that leave out chunks at the edge.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include <chunkio/chunk_layout.hpp>
#include <chunkio/tensor.hpp>

namespace chunkio::plan {

/// How a chunked dataset lies in its file.
struct StoredGeometry {
  Shape shape = {};        ///< [N, ...]; 1 to 8 axes, each >= 1.
  Shape chunk_shape = {};  ///< As many axes, each >= 1. May be larger than the dataset.
  std::int64_t element_bytes = 1;
  bool filtered = false;
  /// Bytes of each chunk in the file, row-major by grid position. Empty: all bytes of each chunk.
  std::vector<std::int64_t> stored_bytes = {};
};

/// What reads came to. Sums; all start with 0.
struct CacheCounts {
  std::int64_t reads = 0;        ///< Calls of read(), or rows of read_each().
  std::int64_t visits = 0;       ///< Chunks that reads touched, each read counting anew.
  std::int64_t hits = 0;         ///< Visits that found their chunk in the cache.
  std::int64_t loads = 0;        ///< Visits that read their chunk whole from the file.
  std::int64_t piece_reads = 0;  ///< Visits that read only the bytes asked for from the file.
  std::int64_t evictions = 0;    ///< Chunks that others pushed out of the cache.
  std::int64_t requests = 0;     ///< Read requests for raw data to the file.
  std::int64_t file_bytes = 0;   ///< Raw data read from the file.
  std::int64_t read_bytes = 0;   ///< Bytes delivered.

  /// Share of the visits that read nothing from the file, 0..1; 0 without visits.
  [[nodiscard]] double hit_rate() const;
  /// Bytes read from the file for each byte delivered; 0 without reads.
  [[nodiscard]] double read_amplification() const;

  friend bool operator==(const CacheCounts&, const CacheCounts&) = default;
};

/// The cache of one open dataset. Starts empty. For one thread at a time.
///
/// A read of whole samples that lie in one chunk takes some ten nanoseconds. Memory: 4 bytes for
/// each slot that some chunk can have, and 24 for each chunk held.
class CacheSimulator {
 public:
  /// \throws Error invalid_argument if the geometry contradicts itself, a chunk reaches 4 GiB, or
  ///         rdcc_w0 is not within 0..1; out_of_resources for more than 2^31 - 1 chunks.
  CacheSimulator(StoredGeometry geometry, const ChunkCacheSettings& settings);

  /// One H5Dread of the samples [first, first + count), whole, into memory without gaps.
  /// \throws Error invalid_argument unless 0 <= first, 1 <= count and they lie in the dataset.
  void read(std::int64_t first, std::int64_t count = 1);
  /// One H5Dread of a box: `count` elements from `first` on along each axis, into memory without
  /// gaps. \throws Error invalid_argument if it is not within the dataset, or empty.
  void read_box(std::span<const std::int64_t> first, std::span<const std::int64_t> count);
  /// One H5Dread for each of `samples`, in that order.
  void read_each(std::span<const std::int64_t> samples);

  [[nodiscard]] const CacheCounts& counts() const noexcept { return counts_; }

 private:
  using Position = std::array<std::int64_t, Shape::kMaxRank>;
  using EntryIndex = std::int32_t;
  static constexpr EntryIndex kNone = -1;

  struct Entry {
    EntryIndex previous = kNone, next = kNone;  // towards the first and the last to evict
    std::uint32_t slot = 0;
    std::int32_t chunk = 0;
    std::int64_t unread_bytes = 0;
  };

  /// What one read wants of one chunk.
  struct Visit {
    std::int64_t chunk = 0;
    std::uint64_t hash = 0;
    std::int64_t wanted_bytes = 0;
    std::int64_t runs = 1;  // of wanted bytes without a gap in the chunk and in memory
  };

  void visit(const Visit& made);
  void keep(const Visit& made, std::uint32_t slot);
  void make_room();
  void evict(EntryIndex index);
  void move_back_by_one(EntryIndex index);
  [[nodiscard]] std::int64_t stored_bytes(std::int64_t chunk) const;
  [[nodiscard]] Entry& entry(EntryIndex index) { return entries_[static_cast<std::size_t>(index)]; }

  StoredGeometry geometry_;
  std::size_t rank_ = 0;
  Position shape_{};
  Position chunk_shape_{};
  Position grid_{};          // chunks along each axis
  Position grid_strides_{};  // from grid position to chunk number
  std::array<unsigned, Shape::kMaxRank> hash_bits_{};
  bool whole_samples_ = true;  // no chunk cuts a sample
  std::int64_t sample_bytes_ = 0;
  std::int64_t chunk_bytes_ = 0;

  std::uint64_t num_slots_ = 0;  // 0: no cache
  std::uint64_t limit_bytes_ = 0;
  double w0_ = 0;
  std::vector<EntryIndex> slots_;
  std::vector<Entry> entries_;
  EntryIndex unused_ = kNone;  // list of entries, linked by `next`
  EntryIndex first_ = kNone, last_ = kNone;
  std::int64_t num_held_ = 0;
  std::int64_t num_complete_ = 0;  // of them, read completely

  CacheCounts counts_;
};

}  // namespace chunkio::plan
