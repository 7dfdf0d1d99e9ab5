#include "io/source_select.hpp"

#include <utility>

#include "h5/dataset_impl.hpp"
#include "h5/hdf5_source.hpp"
#include "io/direct_source.hpp"
#include "io/mapped_source.hpp"
#include "io/page_cache.hpp"
#include "io/row_extents.hpp"
#include "io/scatter_source.hpp"

namespace chunkio::io {
namespace {

/// Why mapped and scatter cannot read the array, as a clause; empty if they can.
std::string why_no_extents(const h5::StoredArray& array) {
  if (!array.needs_libhdf5.empty()) return array.needs_libhdf5;
  if (!array.filters.empty()) return array.filters.back().name + " filter";
  if (!array.whole_rows()) return "chunks cut samples";
  return {};
}

}  // namespace

SourceChoice choose_source(const Dataset::Impl& file, const h5::StoredArray& array, bool direct_io,
                           std::int64_t cacheable, std::int64_t other_bytes) {
  if (const auto reason = DirectSource::reason_against(array)) {
    return {SourceKind::hdf5, *reason + (direct_io ? "; direct_io has no effect" : "")};
  }
  // What is larger than the page cache is gone from it before the next epoch: then it only costs.
  const bool beyond_memory = array.stored_bytes > cacheable - other_bytes;
  const std::string filtered_or_cut = why_no_extents(array);
  if (!filtered_or_cut.empty()) {
    return {SourceKind::direct, filtered_or_cut, direct_io || beyond_memory};
  }
  const std::string rows =
      array.linear_offset ? "unfiltered rows in one run of a" : "unfiltered chunks of a";
  if (direct_io) return {SourceKind::direct, "direct_io", true};
  if (!on_local_file_system(file)) {
    return {SourceKind::scatter, rows + " file that is not on a file system known to be local"};
  }
  if (beyond_memory) {
    return {SourceKind::direct, rows + " file larger than the memory for it", true};
  }
  if (array.stored_bytes > cacheable / 2 - other_bytes) {
    return {SourceKind::scatter, rows + " file larger than half of the memory for it"};
  }
  return {SourceKind::mapped, rows + " local file that fits the page cache"};
}

SelectedSource select_source(std::shared_ptr<const Dataset::Impl> file,
                             std::shared_ptr<const h5::StoredArray> array,
                             const SourceRequest& request) {
  SelectedSource selected{.source = nullptr, .kind = request.kind, .reason = "asked for"};
  bool direct_io = request.direct_io;
  if (request.kind == SourceKind::automatic) {
    SourceChoice choice =
        choose_source(*file, *array, request.direct_io, cacheable_bytes(), request.other_bytes);
    selected.kind = choice.kind;
    selected.reason = std::move(choice.reason);
    direct_io = choice.direct_io;
  } else if (direct_io &&
             (request.kind == SourceKind::mapped || request.kind == SourceKind::hdf5)) {
    throw Error(ErrorCode::invalid_argument,
                "the " + std::string(to_string(request.kind)) +
                    " source cannot go round the page cache, as direct_io asks; use the "
                    "direct or scatter source, or let it be chosen",
                "direct_io", "source");
  }
  const std::string not_direct = DirectSource::reason_against(*array).value_or("");
  const std::string why_not = selected.kind == SourceKind::hdf5     ? ""
                              : selected.kind == SourceKind::direct ? not_direct
                                                                    : why_no_extents(*array);
  if (!why_not.empty()) {
    throw Error(ErrorCode::unsupported,
                file->info.path + ": the " + std::string(to_string(request.kind)) +
                    " source cannot read " + array->name + " (" + why_not + "); use the " +
                    (not_direct.empty() ? "direct" : "hdf5") + " source, or let it be chosen");
  }
  switch (selected.kind) {
    case SourceKind::automatic:
      break;  // settled above
    case SourceKind::mapped:
      selected.source =
          std::make_unique<MappedSource>(std::move(file), std::move(array), request.read_ahead);
      break;
    case SourceKind::scatter: {
      auto source = std::make_unique<ScatterSource>(std::move(file), std::move(array), direct_io,
                                                    request.read_ahead, request.scratch);
      selected.direct_io = source->direct_io();
      selected.source = std::move(source);
      break;
    }
    case SourceKind::direct: {
      auto source = std::make_unique<DirectSource>(std::move(file), std::move(array), direct_io,
                                                   request.read_ahead, request.scratch);
      selected.direct_io = source->direct_io();
      selected.source = std::move(source);
      break;
    }
    case SourceKind::hdf5:
      selected.source = std::make_unique<h5::Hdf5Source>(std::move(file), std::move(array),
                                                         request.group_samples, request.scratch);
      break;
  }
  if (selected.direct_io) {
    selected.reason += "; read with O_DIRECT";
  } else if (direct_io && selected.kind != SourceKind::hdf5) {
    selected.reason += "; the file system refuses O_DIRECT";
  }
  return selected;
}

}  // namespace chunkio::io
