#include "sources/source_select.hpp"

#include <utility>
#include <vector>

#include "h5/dataset_impl.hpp"
#include "io/direct_file.hpp"
#include "io/local_file.hpp"
#include "io/page_cache.hpp"
#include "io/remote_file.hpp"
#include "io/simulated_disk.hpp"
#include "sources/direct_source.hpp"
#include "sources/hdf5_source.hpp"
#include "sources/mapped_source.hpp"
#include "sources/row_extents.hpp"
#include "sources/scatter_source.hpp"
#include "sources/stored_ranges.hpp"

namespace chunkio::sources {
namespace {

/// Sets what `selected` says of the bytes of `file`.
void choose_bytes(const Dataset::Impl& file, bool direct_io, const SourceRequest& request,
                  SelectedSource& selected) {
  selected.bytes = direct_io ? io::open_direct(file.bytes) : nullptr;
  selected.direct_io = selected.bytes != nullptr;
  selected.reads_ahead = true;
  const bool remote = io::as_remote_file(*file.bytes) != nullptr;
  if (remote) selected.bytes = file.bytes;
  if (selected.direct_io || remote) {
    selected.reads_ahead = request.blocks_ahead->memory_bytes() > 0;
    // Without memory, too: RemoteFile::prefetch() would request what lies between rows.
    selected.bytes =
        std::make_shared<io::ReadAheadSource>(std::move(selected.bytes), request.blocks_ahead);
  } else if (const auto local = io::as_local_file(file.bytes)) {
    selected.bytes = std::make_shared<io::CachedFile>(local, request.read_ahead);
  } else {
    selected.bytes = file.bytes;
  }
  if (request.disk) {
    selected.bytes = std::make_shared<io::SimulatedDisk>(std::move(selected.bytes), request.disk,
                                                         request.disk_offset, selected.reads_ahead);
  }
}

/// \pre `kind` can read the array, through `bytes`.
std::unique_ptr<ChunkSource> make_source(SourceKind kind,
                                         const std::shared_ptr<const Dataset::Impl>& file,
                                         const std::shared_ptr<const h5::StoredArray>& array,
                                         const std::shared_ptr<const ByteSource>& bytes,
                                         const SourceRequest& request) {
  switch (kind) {
    case SourceKind::automatic:
      break;  // was settled before
    case SourceKind::mapped:
      return std::make_unique<MappedSource>(file, array, request.read_ahead);
    case SourceKind::scatter:
      return std::make_unique<ScatterSource>(file, array, bytes, request.scratch);
    case SourceKind::direct:
      return std::make_unique<DirectSource>(file, array, bytes, request.scratch);
    case SourceKind::hdf5:
      return std::make_unique<Hdf5Source>(file, array, bytes, request.group_samples,
                                          request.scratch);
  }
  return nullptr;
}

/// Whether rows are known to be in the page cache, or on their way there. Of what is no local file:
/// no; nor of one that does not show its pages, since asking could make the kernel read.
bool are_cached(const ByteSource& bytes, const h5::StoredArray& array, const RowRange& rows) {
  const io::LocalFile* const local = io::as_local_file(bytes);
  bool all = local != nullptr && local->shows_pages();
  for_each_stored_range(array, rows, [&](std::int64_t offset, std::int64_t size) {
    all = all && io::has_pages(local->fd(), offset, offset + size);
  });
  return all;
}

/// Sets the source of `selected` to one that finds out how an unfiltered array of whole rows is
/// read fastest. If a source was asked for, that one is used, and its stores are tried; `direct`
/// would read as `scatter` does.
void try_sources(const std::shared_ptr<const Dataset::Impl>& file,
                 const std::shared_ptr<const h5::StoredArray>& array, const SourceRequest& request,
                 SelectedSource& selected) {
  std::vector<SourceKind> kinds;
  std::vector<std::unique_ptr<ChunkSource>> sources;
  const auto add = [&](SourceKind kind) {
    sources.push_back(make_source(kind, file, array, selected.bytes, request));
    kinds.push_back(kind);
  };
  if (request.kind == SourceKind::automatic && selected.kind == SourceKind::mapped) {
    try {
      add(SourceKind::mapped);
    } catch (const Error& error) {
      selected.reason += std::string("; but ") + error.what();
    }
    add(SourceKind::scatter);
    const auto memory = [&](const auto& source) {
      return source->memory_bytes(request.num_threads);
    };
    if (sources.size() > 1 &&
        memory(sources.back()) - memory(sources.front()) > request.spare_bytes) {
      sources.pop_back();
      kinds.pop_back();
    }
  } else {
    add(selected.kind);
  }
  selected.kind = kinds.front();
  selected.trials = request.trials;
  if (!selected.trials || selected.trials->kinds() != kinds) {
    selected.trials = std::make_shared<SourceTrials>(std::move(kinds), TrialLimits{});
  }
  selected.source = std::make_unique<TrialSource>(
      std::move(sources), selected.trials, array->row_bytes,
      [file, array](const RowRange& rows) { return are_cached(*file->bytes, *array, rows); });
}

}  // namespace

SourceChoice choose_source(const Dataset::Impl& file, const h5::StoredArray& array, bool direct_io,
                           std::int64_t cacheable, std::int64_t other_bytes, bool simulated) {
  if (const auto reason = DirectSource::reason_against(array)) {
    return {SourceKind::hdf5, *reason + (direct_io ? "; direct_io has no effect" : "")};
  }
  // What is larger than the page cache is gone from it before the next epoch: then it only costs.
  const bool beyond_memory =
      io::as_local_file(*file.bytes) != nullptr && array.stored_bytes > cacheable - other_bytes;
  const std::string filtered_or_cut = why_no_row_extents(array);
  if (!filtered_or_cut.empty()) {
    return {SourceKind::direct, filtered_or_cut, direct_io || beyond_memory};
  }
  const std::string rows =
      array.linear_offset ? "unfiltered rows in one run of a" : "unfiltered chunks of a";
  if (direct_io) return {SourceKind::direct, "direct_io", true};
  if (!io::on_local_file_system(*file.bytes)) {
    return {SourceKind::scatter, rows + " file that is not on a file system known to be local"};
  }
  if (beyond_memory) {
    return {SourceKind::direct, rows + " file larger than the memory for it", true};
  }
  if (array.stored_bytes > cacheable / 2 - other_bytes) {
    return {SourceKind::scatter, rows + " file larger than half of the memory for it"};
  }
  if (simulated) return {SourceKind::scatter, rows + " file on a simulated disk"};
  return {SourceKind::mapped, rows + " local file that fits the page cache"};
}

SelectedSource select_bytes(const Dataset::Impl& file, const SourceRequest& request) {
  SelectedSource selected;
  const bool beyond_memory = file.info.stored_bytes > io::cacheable_bytes() - request.other_bytes;
  choose_bytes(file, request.direct_io || beyond_memory, request, selected);
  return selected;
}

SelectedSource select_source(std::shared_ptr<const Dataset::Impl> file,
                             std::shared_ptr<const h5::StoredArray> array,
                             const SourceRequest& request) {
  SelectedSource selected{.source = nullptr, .kind = request.kind, .reason = "asked for"};
  bool direct_io = request.direct_io;
  if (request.kind == SourceKind::automatic) {
    SourceChoice choice = choose_source(*file, *array, request.direct_io, io::cacheable_bytes(),
                                        request.other_bytes, request.disk != nullptr);
    selected.kind = choice.kind;
    selected.reason = std::move(choice.reason);
    direct_io = choice.direct_io;
  } else if (direct_io &&
             (request.kind == SourceKind::mapped || request.kind == SourceKind::hdf5)) {
    throw Error(ErrorCode::invalid_argument,
                "the " + std::string(to_string(request.kind)) +
                    " source cannot bypass the page cache, as direct_io asks; use the "
                    "direct or scatter source, or let it be chosen",
                "direct_io", "source");
  }
  if (request.kind == SourceKind::mapped &&
      (request.disk != nullptr || !io::as_local_file(file->bytes))) {
    throw Error(ErrorCode::invalid_argument,
                request.disk != nullptr
                    ? "the mapped source reads memory, which no disk_limit slows down; use the "
                      "scatter source, or let it be chosen"
                    : file->info.path +
                          ": the mapped source reads local files only; use the scatter source, or "
                          "let it be chosen",
                "source");
  }
  const std::string not_direct = DirectSource::reason_against(*array).value_or("");
  const std::string why_not = selected.kind == SourceKind::hdf5     ? ""
                              : selected.kind == SourceKind::direct ? not_direct
                                                                    : why_no_row_extents(*array);
  if (!why_not.empty()) {
    throw Error(ErrorCode::unsupported,
                file->info.path + ": the " + std::string(to_string(request.kind)) +
                    " source cannot read " + array->name + " (" + why_not + "); use the " +
                    (not_direct.empty() ? "direct" : "hdf5") + " source, or let it be chosen");
  }
  choose_bytes(*file, direct_io && selected.kind != SourceKind::hdf5, request, selected);
  if (direct_io || (selected.kind != SourceKind::mapped && selected.kind != SourceKind::scatter)) {
    selected.source = make_source(selected.kind, file, array, selected.bytes, request);
    // libhdf5 reads when it is asked.
    if (selected.kind == SourceKind::hdf5) selected.reads_ahead = false;
  } else {
    try_sources(file, array, request, selected);
  }
  if (selected.direct_io) {
    selected.reason += "; read with O_DIRECT";
  } else if (direct_io && selected.kind != SourceKind::hdf5) {
    selected.reason += "; the file system refuses O_DIRECT";
  }
  return selected;
}

}  // namespace chunkio::sources
