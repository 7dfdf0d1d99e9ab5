#include "io/source_select.hpp"

#include <optional>
#include <tuple>
#include <utility>

#include "h5/dataset_impl.hpp"
#include "h5/hdf5_source.hpp"
#include "io/direct_source.hpp"
#include "io/mapped_source.hpp"
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

/// The fastest source that is correct, and why.
std::pair<SourceKind, std::string> choose(const Dataset::Impl& file, const h5::StoredArray& array,
                                          bool direct_io) {
  if (const auto reason = DirectSource::reason_against(array)) return {SourceKind::hdf5, *reason};
  const std::string filtered_or_cut = why_no_extents(array);
  if (!filtered_or_cut.empty()) return {SourceKind::direct, filtered_or_cut};
  if (direct_io) return {SourceKind::direct, "direct_io"};
  const std::string rows =
      array.linear_offset ? "unfiltered rows in one run of a" : "unfiltered chunks of a";
  if (const auto reason = reason_not_to_map(file, array)) {
    return {SourceKind::scatter, rows + " file " + *reason};
  }
  return {SourceKind::mapped, rows + " local file that fits the page cache"};
}

}  // namespace

SelectedSource select_source(std::shared_ptr<const Dataset::Impl> file,
                             std::shared_ptr<const h5::StoredArray> array,
                             const SourceRequest& request) {
  SelectedSource selected{.source = nullptr, .kind = request.kind, .reason = "asked for"};
  if (request.kind == SourceKind::automatic) {
    std::tie(selected.kind, selected.reason) = choose(*file, *array, request.direct_io);
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
      selected.source = std::make_unique<MappedSource>(std::move(file), std::move(array));
      break;
    case SourceKind::scatter:
      selected.source =
          std::make_unique<ScatterSource>(std::move(file), std::move(array), request.direct_io);
      break;
    case SourceKind::direct:
      selected.source =
          std::make_unique<DirectSource>(std::move(file), std::move(array), request.direct_io);
      break;
    case SourceKind::hdf5:
      selected.source = std::make_unique<h5::Hdf5Source>(std::move(file), std::move(array),
                                                         request.group_samples);
      break;
  }
  return selected;
}

}  // namespace chunkio::io
