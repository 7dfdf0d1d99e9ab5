/// Which chunk source reads a file.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <string>

#include <chunkio/dataset.hpp>
#include <chunkio/loader.hpp>

#include "base/buffer_pool.hpp"
#include "base/chunk_source.hpp"
#include "h5/stored_array.hpp"
#include "io/blocks_ahead.hpp"
#include "io/disk_limiter.hpp"
#include "io/read_ahead.hpp"
#include "sources/trial_source.hpp"

namespace chunkio::sources {

struct SelectedSource {
  std::unique_ptr<ChunkSource> source;
  SourceKind kind = SourceKind::automatic;
  std::string reason;  ///< One clause.
  /// Those of the file, as the source reads them.
  std::shared_ptr<const ByteSource> bytes = nullptr;
  bool direct_io = false;  ///< They bypass the page cache.
  /// It has storage asked for what is prefetched.
  bool reads_ahead = false;
  /// What finds out which source it is to be, and knows more than `kind` in time; or none.
  std::shared_ptr<SourceTrials> trials = nullptr;
};

/// What is asked of a source.
struct SourceRequest {
  SourceKind kind = SourceKind::automatic;
  std::int64_t group_samples = 1;  ///< Rows in a full row group.
  bool direct_io = false;          ///< See LoaderOptions.
  /// What brings ranges into the page cache; to be shared by what is read together.
  std::shared_ptr<io::ReadAhead> read_ahead = std::make_shared<io::ReadAhead>(false);
  /// Scratch memory of callers; to be shared likewise.
  std::shared_ptr<base::BufferPool> scratch = std::make_shared<base::BufferPool>();
  /// What reads ahead bypassing the page cache; to be shared likewise.
  std::shared_ptr<io::BlocksAhead> blocks_ahead = std::make_shared<io::BlocksAhead>(0);
  /// A slower disk that the file is to lie on, or none; to be shared likewise.
  std::shared_ptr<io::DiskLimiter> disk = nullptr;
  std::int64_t disk_offset = 0;  ///< Of the file on it.
  /// Memory for what the work can be done without.
  std::int64_t spare_bytes = std::numeric_limits<std::int64_t>::max();
  std::int64_t num_threads = 1;
  /// Stored bytes of other files that are read alternately with this one.
  std::int64_t other_bytes = 0;
  /// Of files of the same array that were selected before, to be shared where the ways are the
  /// same.
  std::shared_ptr<SourceTrials> trials = nullptr;
};

/// What to read an array with, and why.
struct SourceChoice {
  SourceKind kind = SourceKind::automatic;
  std::string reason = {};  ///< One clause.
  bool direct_io = false;   ///< Bypass the page cache if the file system allows it.
};

/// The source to begin with: one that is correct for the array, and by experience the fastest.
/// \param direct_io  asked for; the choice may be to bypass the page cache even if it is not.
/// \param cacheable  bytes of memory there are for cached pages (page_cache.hpp).
/// \param other_bytes  stored bytes of other files that want to be there, too.
/// \param simulated  the disk is, so that a mapping cannot be read.
[[nodiscard]] SourceChoice choose_source(const Dataset::Impl& file, const h5::StoredArray& array,
                                         bool direct_io, std::int64_t cacheable,
                                         std::int64_t other_bytes = 0, bool simulated = false);

/// Makes the source asked for, or with `automatic` the fastest that is correct for the array, which
/// may show only while it is used (trial_source.hpp).
/// \throws Error unsupported if the source asked for cannot read this array; the message says why
///         and which can. invalid_argument if the source asked for cannot bypass the page cache
///         and `direct_io` wants it to, or to map what is no local file.
[[nodiscard]] SelectedSource select_source(std::shared_ptr<const Dataset::Impl> file,
                                           std::shared_ptr<const h5::StoredArray> array,
                                           const SourceRequest& request);

/// Only what concerns the bytes of a file, for a source of another kind: bypassing the page cache
/// if that is asked for, or if the arrays that are read together are larger than it.
[[nodiscard]] SelectedSource select_bytes(const Dataset::Impl& file, const SourceRequest& request);

}  // namespace chunkio::sources
