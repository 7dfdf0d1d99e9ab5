#include "io/source_select.hpp"

#include <utility>

#include "h5/dataset_impl.hpp"
#include "h5/hdf5_source.hpp"
#include "io/mapped_source.hpp"
#include "io/scatter_source.hpp"

namespace chunkio {

std::string_view to_string(SourceKind kind) noexcept {
  switch (kind) {
    case SourceKind::automatic:
      return "auto";
    case SourceKind::mapped:
      return "mapped";
    case SourceKind::scatter:
      return "scatter";
    case SourceKind::hdf5:
      return "hdf5";
  }
  return "unknown";
}

namespace io {

SelectedSource select_source(std::shared_ptr<const Dataset::Impl> dataset, SourceKind wanted,
                             std::int64_t group_samples) {
  const bool linear = dataset->linear_offset.has_value();
  SelectedSource selected{.source = nullptr, .kind = wanted, .reason = "asked for"};
  if (wanted == SourceKind::automatic) {
    if (!linear) {
      selected.kind = SourceKind::hdf5;
      selected.reason = dataset->nonlinear_reason;
    } else if (const auto reason = reason_not_to_map(*dataset)) {
      selected.kind = SourceKind::scatter;
      selected.reason = "unfiltered rows in one run of a file " + *reason;
    } else {
      selected.kind = SourceKind::mapped;
      selected.reason = "unfiltered rows in one run of a local file that fits the page cache";
    }
  }
  if (selected.kind != SourceKind::hdf5 && !linear) {
    throw Error(ErrorCode::unsupported, dataset->info.path + ": the " +
                                            std::string(to_string(wanted)) +
                                            " source cannot read it (" + dataset->nonlinear_reason +
                                            "); use the hdf5 source, or let it be chosen");
  }
  switch (selected.kind) {
    case SourceKind::automatic:
      break;  // settled above
    case SourceKind::mapped:
      selected.source = std::make_unique<MappedSource>(std::move(dataset));
      break;
    case SourceKind::scatter:
      selected.source = std::make_unique<ScatterSource>(std::move(dataset));
      break;
    case SourceKind::hdf5:
      selected.source = std::make_unique<h5::Hdf5Source>(std::move(dataset), group_samples);
      break;
  }
  return selected;
}

}  // namespace io
}  // namespace chunkio
