#include "pipeline/open_arrays.hpp"

#include <memory>
#include <optional>
#include <utility>

#include "base/checked_math.hpp"
#include "h5/dataset_impl.hpp"
#include "h5/stored_array.hpp"
#include "io/mapped_source.hpp"
#include "io/read_ahead.hpp"
#include "io/resident_source.hpp"
#include "io/source_select.hpp"
#include "io/verifying_source.hpp"

namespace chunkio::pipeline {
namespace {

constexpr std::int64_t kKeptShare = 8;

bool is_large(const RingField& field, std::int64_t num_rows, std::int64_t memory_budget) {
  const auto bytes = base::checked_multiply(num_rows, static_cast<std::int64_t>(field.row_bytes));
  return !bytes || *bytes > memory_budget / kKeptShare;
}

std::unique_ptr<ChunkSource> keep_if_wanted(std::unique_ptr<ChunkSource> source,
                                            std::int64_t row_bytes, const RowGroups& groups,
                                            const LoaderOptions& options) {
  if (options.resident == Resident::none) return source;
  // Asked before the memory is reserved, so that the error is that of the budget.
  const auto bytes = io::ResidentSource::kept_bytes(groups, row_bytes);
  if (!bytes || *bytes > options.memory_budget) {
    throw Error(ErrorCode::out_of_resources,
                "resident = host (--resident) keeps " + std::to_string(groups.num_samples()) +
                    " rows of " + std::to_string(row_bytes) + " bytes, more than memory_budget " +
                    std::to_string(options.memory_budget) +
                    "; raise it, or leave them in the file");
  }
  return std::make_unique<io::ResidentSource>(groups, row_bytes, std::move(source));
}

}  // namespace

OpenedArrays open_arrays(const Dataset& dataset, const RowGroups& groups,
                         const LoaderOptions& options, const RingLayout& layout) {
  const std::shared_ptr<const Dataset::Impl>& file = dataset.impl();
  const std::int64_t num_rows = dataset.size();
  io::SourceRequest request{
      .kind = options.source,
      .group_samples = groups.group_samples(),
      .direct_io = options.direct_io,
      .read_ahead = std::make_shared<io::ReadAhead>(io::on_local_file_system(*file))};
  io::SelectedSource pictures = io::select_source(file, file->images, request);
  if (options.verify != Verify::off) {
    pictures.source = std::make_unique<io::VerifyingSource>(
        file, options.verify, std::move(pictures.source), pictures.direct_io);
  }
  OpenedArrays opened{.source = pictures.kind, .reason = std::move(pictures.reason)};
  opened.arrays.push_back({.source = keep_if_wanted(std::move(pictures.source),
                                                    file->images->row_bytes, groups, options),
                           .row_bytes = layout.sample_bytes});

  // What suits the pictures need not suit a field; only libhdf5 reads everything.
  if (request.kind != SourceKind::hdf5) request.kind = SourceKind::automatic;
  for (std::size_t i = layout.has_labels ? 1 : 0; i < layout.fields.size(); ++i) {
    const RingField& field = layout.fields[i];
    if (!is_large(field, num_rows, options.memory_budget)) continue;
    auto array = h5::open_array(*file, field.info.name,
                                field.info.row_shape.with_first_axis(num_rows), field.info.dtype);
    io::SelectedSource selected = io::select_source(file, array, request);
    opened.arrays.push_back(
        {.source = keep_if_wanted(std::move(selected.source), array->row_bytes, groups, options),
         .row_bytes = field.row_bytes,
         .field = i});
  }
  return opened;
}

}  // namespace chunkio::pipeline
