#include "read/open_arrays.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include <chunkio/tuning.hpp>

#include "base/access.hpp"
#include "base/checked_math.hpp"
#include "h5/dataset_impl.hpp"
#include "h5/shard_set.hpp"
#include "h5/stored_array.hpp"
#include "io/blocks_ahead.hpp"
#include "io/disk_limiter.hpp"
#include "io/local_file.hpp"
#include "io/read_ahead.hpp"
#include "io/remote_file.hpp"
#include "sources/encoded_source.hpp"
#include "sources/rereading_source.hpp"
#include "sources/resident_source.hpp"
#include "sources/row_digests.hpp"
#include "sources/sharded_source.hpp"
#include "sources/source_select.hpp"
#include "sources/sparse_source.hpp"
#include "sources/verifying_source.hpp"

namespace chunkio::read {
namespace {

constexpr std::int64_t kCachedShare = 8;
/// Of the memory budget, for what the work can be done without.
constexpr std::int64_t kSpareShare = 8;
/// As much again as is under way, and twice that for what has arrived and is being copied.
constexpr std::int64_t kDirectAheadBytes = 3 * ReadingPlan::kDirectReadAheadBytes;

/// Of remote files: as many requests under way as the options say, and half as many blocks that
/// have arrived; else of a disk.
std::shared_ptr<io::BlocksAhead> make_blocks_ahead(const ByteSource& bytes,
                                                   std::int64_t spare_bytes) {
  const io::RemoteFile* const remote = io::as_remote_file(bytes);
  if (remote == nullptr) {
    return std::make_shared<io::BlocksAhead>(std::min(kDirectAheadBytes, spare_bytes));
  }
  const std::int64_t blocks = remote->num_requests() + remote->num_requests() / 2 + 4;
  return std::make_shared<io::BlocksAhead>(
      std::min(blocks * (io::RemoteFile::kRequestBytes + (std::int64_t{16} << 10)), spare_bytes),
      io::AheadShape{.block_bytes = io::RemoteFile::kRequestBytes,
                     .requests = static_cast<std::size_t>(remote->num_requests()),
                     .at_multiples = false,
                     .impatient = true});
}

/// How far ahead of group reads a remote file is asked for rows, in bytes that they have in memory:
/// as far as there is memory for what comes, which is stored with fewer bytes if it is encoded or
/// filtered.
std::int64_t remote_prefetch_bytes(const DatasetInfo& info, std::int64_t read_ahead_bytes) {
  constexpr double kMostGained = 64;
  const auto in_memory =
      static_cast<double>(info.num_samples) * static_cast<double>(info.sample_bytes());
  const auto stored =
      static_cast<double>(info.encoded ? info.encoded->num_bytes : info.stored_bytes);
  const double gained = stored > 0 ? std::clamp(in_memory / stored, 1.0, kMostGained) : 1.0;
  return std::llround(gained * static_cast<double>(read_ahead_bytes));
}

bool is_large(const RingField& field, std::int64_t num_rows, std::int64_t memory_budget) {
  const auto bytes = base::checked_multiply(num_rows, static_cast<std::int64_t>(field.row_bytes));
  return !bytes || *bytes > memory_budget / kCachedShare;
}

/// \throws Error out_of_resources unless the budget has room for what is kept.
/// \param bytes  absent: too many to count.
void require_room(std::optional<std::int64_t> bytes, const RowGroups& groups,
                  const std::string& of_rows, const LoaderOptions& options) {
  if (bytes && *bytes <= options.memory.budget) return;
  throw Error(ErrorCode::out_of_resources,
              "resident = host keeps " + std::to_string(groups.num_samples()) + " rows of " +
                  of_rows + ", more than memory_budget " + std::to_string(options.memory.budget) +
                  "; raise it, or leave them in the file",
              "resident = host", "memory_budget");
}

std::unique_ptr<ChunkSource> keep_if_wanted(std::unique_ptr<ChunkSource> source,
                                            std::int64_t row_bytes, const RowGroups& groups,
                                            const LoaderOptions& options) {
  if (options.memory.resident == Resident::none) return source;
  // Asked before the memory is reserved, so that the error is that of the budget.
  require_room(sources::ResidentSource::kept_bytes(groups, row_bytes), groups,
               std::to_string(row_bytes) + " bytes", options);
  return std::make_unique<sources::ResidentSource>(groups, row_bytes, std::move(source));
}

using Files = std::vector<std::shared_ptr<const Dataset::Impl>>;
using Arrays = std::vector<std::shared_ptr<const h5::StoredArray>>;

/// Bytes in the file of all arrays, or files. \param bytes_of  one of them.
template <class List, class BytesOf>
std::int64_t sum_of(const List& list, BytesOf bytes_of) {
  return std::accumulate(list.begin(), list.end(), std::int64_t{0},
                         [&](std::int64_t sum, const auto& one) {
                           return base::checked_add(sum, bytes_of(*one))
                               .value_or(std::numeric_limits<std::int64_t>::max());
                         });
}

/// Sources of the files of a dataset, in order.
std::unique_ptr<ChunkSource> one_source(std::vector<std::unique_ptr<ChunkSource>> by_file,
                                        const Files& files) {
  if (by_file.size() == 1) return std::move(by_file.front());
  std::vector<std::int64_t> rows;
  for (const auto& file : files) rows.push_back(file->info.num_samples);
  return std::make_unique<sources::ShardedSource>(std::move(by_file), rows);
}

/// Of a remote file, `source` as one that reads again what came wrong.
std::unique_ptr<ChunkSource> reread_if_remote(std::unique_ptr<ChunkSource> source,
                                              const Dataset::Impl& file) {
  if (io::as_remote_file(*file.bytes) == nullptr) return source;
  return std::make_unique<sources::RereadingSource>(std::move(source), file.bytes);
}

/// Whether digests cover fields that would come twice: for their own sake, and for the digests.
bool has_large_fields(const Dataset::Impl& file) {
  const auto& covered = file.info.digests_cover;
  return std::any_of(file.info.fields.begin(), file.info.fields.end(), [&](const FieldInfo& field) {
    return field.row_shape.rank() > 0 &&
           std::find(covered.begin(), covered.end(), field.name) != covered.end();
  });
}

/// Calls make(file, bytes, first row) for each file, whose arrays are read together.
/// \param request  of the first file. \returns their sources as one.
template <class Make>
std::unique_ptr<ChunkSource> select_together(const Files& files, sources::SourceRequest request,
                                             OpenedArrays& opened, Make make) {
  const std::int64_t all_bytes =
      sum_of(files, [](const auto& file) { return file.info.stored_bytes; });
  std::vector<std::unique_ptr<ChunkSource>> by_file;
  std::int64_t first_row = 0;
  for (const auto& file : files) {
    request.other_bytes = all_bytes - file->info.stored_bytes;
    sources::SelectedSource bytes = sources::select_bytes(*file, request);
    request.disk_offset += file->bytes->size();  // there they lie one behind the other
    opened.direct_io = opened.direct_io || bytes.direct_io;
    opened.reads_ahead = opened.reads_ahead || bytes.reads_ahead;
    by_file.push_back(reread_if_remote(make(file, std::move(bytes.bytes), first_row), *file));
    first_row += file->info.num_samples;
  }
  return one_source(std::move(by_file), files);
}

/// One source for all rows of an array that lies in one file or several. What is said of it is said
/// of the first file, and of others where it differs.
/// \param verify  compare with stored digests; for the array that leads.
sources::SelectedSource select_sources(const Files& files, const Arrays& arrays,
                                       sources::SourceRequest request, Verify verify) {
  const std::int64_t all_bytes =
      sum_of(arrays, [](const auto& array) { return array.stored_bytes; });
  sources::SelectedSource selected;
  std::vector<std::unique_ptr<ChunkSource>> by_file;
  for (std::size_t i = 0; i < files.size(); ++i) {
    request.other_bytes = all_bytes - arrays[i]->stored_bytes;
    sources::SelectedSource one = sources::select_source(files[i], arrays[i], request);
    if (!request.trials) request.trials = one.trials;
    if (verify != Verify::off) {
      one.source = std::make_unique<sources::VerifyingSource>(
          files[i], verify, std::move(one.source), one.bytes, request.scratch);
    }
    request.disk_offset += files[i]->bytes->size();  // there they lie one behind the other
    by_file.push_back(reread_if_remote(std::move(one.source), *files[i]));
    if (i == 0) {
      selected = std::move(one);
    } else if (one.kind != selected.kind) {
      selected.reason += "; " + files[i]->info.path + ": " + std::string(to_string(one.kind));
    }
  }
  selected.source = one_source(std::move(by_file), files);
  return selected;
}

/// Of what one source alone reads. \throws Error invalid_argument: another one was asked for.
void require_direct(const LoaderOptions& options, const std::string& path,
                    const std::string& what) {
  const SourceKind kind = options.io.source;
  if (kind == SourceKind::automatic || kind == SourceKind::direct) return;
  throw Error(ErrorCode::invalid_argument,
              path + ": " + what + " are read by the direct source alone, not by " +
                  std::string(to_string(kind)) + "; leave out source",
              "source");
}

/// Sets what `opened` and `layout` say of a CSR matrix that leads.
void open_sparse(const Files& files, const sources::SourceRequest& request,
                 const LoaderOptions& options, const RowGroups& groups, const InFlight& in_flight,
                 RingLayout& layout, OpenedArrays& opened) {
  const std::string& path = files.front()->info.path;
  const bool resident = options.memory.resident != Resident::none;
  require_direct(options, path, "rows of a sparse matrix");
  sources::SparseExtents extents;
  std::unique_ptr<ChunkSource> source = select_together(
      files, request, opened, [&](const auto& file, auto bytes, std::int64_t /*first_row*/) {
        return std::make_unique<sources::SparseSource>(
            file, std::move(bytes), request.scratch, groups.group_samples(), layout.sparse->blocks,
            extents, options.io.verify != Verify::off);
      });
  const h5::SparseMatrix& matrix = *files.front()->sparse;
  layout.sparse->batch_bytes =
      base::SparseLayout::bytes(layout.rows, extents.rows.largest_sum(layout.rows),
                                matrix.values->stored.dtype, matrix.index_dtype());
  // What stays is read in whole groups.
  const InFlight most = resident ? InFlight{groups.num_samples(), groups.num_groups()} : in_flight;
  const std::int64_t reads = std::min(most.groups, most.rows);
  const bool whole_groups =
      (resident || options.order.mode != OrderMode::random) && !groups.is_selection();
  const std::int64_t block_bytes = sources::SparseSource::block_bytes(
      matrix,
      std::min(extents.groups.largest_sum(most.groups),
               sources::SparseSource::kMostRead * extents.rows.largest_sum(most.rows)),
      whole_groups ? reads : most.rows, reads,
      opened.direct_io || files.front()->bytes->block_bytes() > 1);
  layout.sparse->blocks->limit(block_bytes);
  if (resident) {
    require_room(block_bytes, groups,
                 "a sparse matrix in " + std::to_string(block_bytes) + " bytes", options);
    layout.sparse->blocks->stay();
    source = keep_if_wanted(std::move(source), static_cast<std::int64_t>(layout.leading.row_bytes),
                            groups, options);
  }
  opened.sparse_bytes = (options.memory.max_held + 1) * layout.sparse->batch_bytes + block_bytes;
  opened.source = SourceKind::direct;
  opened.reason = matrix.values->filters.empty() ? "rows of a sparse matrix"
                                                 : "filtered rows of a sparse matrix";
  opened.arrays.push_back({.source = std::move(source), .row_bytes = layout.leading.row_bytes});
}

/// Sets what `opened` says of encoded images that lead.
void open_encoded(const Files& files, const sources::SourceRequest& request,
                  const LoaderOptions& options, const RowGroups& groups, const RingLayout& layout,
                  OpenedArrays& opened) {
  const std::string& path = files.front()->info.path;
  require_images(files.front()->info);
  require_direct(options, path, "encoded images");
  const image::Decoding& decoding = *files.front()->encoded->decoding;
  if (options.memory.resident != Resident::none && files.front()->info.encoded->random_crops) {
    throw Error(ErrorCode::unsupported,
                path +
                    ": random crops are other ones each epoch, so they cannot be kept on the host; "
                    "leave out resident, or crop otherwise",
                "resident");
  }
  std::unique_ptr<ChunkSource> source = select_together(
      files, request, opened, [&](const auto& file, auto bytes, std::int64_t first_sample) {
        return std::make_unique<sources::EncodedSource>(
            file, std::move(bytes), request.scratch, groups.group_samples(), options.seed,
            first_sample, options.io.verify != Verify::off);
      });
  opened.source = SourceKind::direct;
  opened.reason = "encoded images";
  opened.arrays.push_back(
      {.source = keep_if_wanted(std::move(source), decoding.sample_bytes(), groups, options),
       .row_bytes = layout.leading.row_bytes});
}

}  // namespace

Verify resolved_verify(const Dataset& dataset, const RowGroups& groups,
                       const LoaderOptions& options) {
  if (options.io.verify != Verify::automatic) return options.io.verify;
  const Files files = h5::files_of(internal::Access::impl(dataset));
  // Comparing some rows of a chunk would take all of it.
  const bool whole_chunks = !groups.is_selection() && options.order.mode != OrderMode::random;
  const bool wanted = whole_chunks && std::all_of(files.begin(), files.end(), [](const auto& file) {
                        return io::as_remote_file(*file->bytes) != nullptr &&
                               sources::why_not_comparable(*file).empty() &&
                               !has_large_fields(*file);
                      });
  return wanted ? Verify::always : Verify::off;
}

OpenedArrays open_arrays(const Dataset& dataset, const RowGroups& groups,
                         const LoaderOptions& options, const InFlight& in_flight,
                         RingLayout& layout) {
  const Files files = h5::files_of(internal::Access::impl(dataset));
  const std::int64_t num_rows = dataset.size();
  const bool local = std::all_of(files.begin(), files.end(), [](const auto& file) {
    return io::on_local_file_system(*file->bytes);
  });
  sources::SourceRequest request{
      .kind = options.io.source,
      .group_samples = groups.group_samples(),
      .direct_io = options.io.direct_io,
      .read_ahead = std::make_shared<io::ReadAhead>(local),
      .blocks_ahead = make_blocks_ahead(*files.front()->bytes, options.memory.budget / kSpareShare),
      .spare_bytes = options.memory.budget / kSpareShare,
      .num_threads = options.io.num_threads};
  if (options.io.disk_limit)
    request.disk = std::make_shared<io::DiskLimiter>(*options.io.disk_limit);
  OpenedArrays opened;
  if (layout.sparse) {
    open_sparse(files, request, options, groups, in_flight, layout, opened);
  } else if (dataset.info().encoded) {
    open_encoded(files, request, options, groups, layout, opened);
  } else {
    Arrays leading;
    for (const auto& file : files) leading.push_back(file->leading);
    sources::SelectedSource selected = select_sources(files, leading, request, options.io.verify);
    opened = {.source = selected.kind,
              .reason = std::move(selected.reason),
              .direct_io = selected.direct_io,
              .reads_ahead = selected.reads_ahead,
              .trials = selected.trials};
    opened.arrays.push_back({.source = keep_if_wanted(std::move(selected.source),
                                                      leading.front()->row_bytes, groups, options),
                             .row_bytes = layout.leading.row_bytes});
  }

  const bool remote = io::as_remote_file(*files.front()->bytes) != nullptr;
  bool any_ahead = opened.direct_io || remote;
  // What suits the array that leads need not suit a field; only libhdf5 reads everything.
  if (request.kind != SourceKind::hdf5) request.kind = SourceKind::automatic;
  for (std::size_t i = layout.has_labels ? 1 : 0; i < layout.fields.size(); ++i) {
    const RingField& field = layout.fields[i];
    if (!is_large(field, num_rows, options.memory.budget)) continue;
    Arrays arrays;
    for (const auto& file : files) {
      arrays.push_back(h5::open_array(*file, field.info.name,
                                      field.info.row_shape.with_first_axis(file->info.num_samples),
                                      field.info.dtype));
    }
    sources::SelectedSource source = select_sources(files, arrays, request, Verify::off);
    any_ahead = any_ahead || source.direct_io;
    opened.arrays.push_back({.source = keep_if_wanted(std::move(source.source),
                                                      arrays.front()->row_bytes, groups, options),
                             .row_bytes = field.row_bytes,
                             .field = i});
  }
  if (any_ahead) opened.read_ahead_bytes = request.blocks_ahead->memory_bytes();
  if (remote) {
    opened.prefetch_bytes = remote_prefetch_bytes(dataset.info(), opened.read_ahead_bytes);
  }
  return opened;
}

}  // namespace chunkio::read
