#include "io/source_select.hpp"

#include <utility>

#include "h5/dataset_impl.hpp"
#include "h5/hdf5_source.hpp"
#include "io/scatter_source.hpp"

namespace chunkio {

std::string_view to_string(SourceKind kind) noexcept {
  switch (kind) {
    case SourceKind::automatic:
      return "auto";
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
  if (wanted == SourceKind::scatter && !linear) {
    throw Error(ErrorCode::unsupported,
                dataset->info.path + ": the scatter source cannot read it (" +
                    dataset->nonlinear_reason + "); use the hdf5 source, or let it be chosen");
  }
  SelectedSource selected;
  if (wanted == SourceKind::hdf5 || !linear) {
    selected.kind = SourceKind::hdf5;
    selected.reason = wanted == SourceKind::hdf5 ? "asked for" : dataset->nonlinear_reason;
    selected.source = std::make_unique<h5::Hdf5Source>(std::move(dataset), group_samples);
  } else {
    selected.kind = SourceKind::scatter;
    selected.reason =
        wanted == SourceKind::scatter ? "asked for" : "unfiltered rows in one run of the file";
    selected.source = std::make_unique<ScatterSource>(std::move(dataset));
  }
  return selected;
}

}  // namespace io
}  // namespace chunkio
