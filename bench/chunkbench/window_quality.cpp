#include "chunkbench/window_quality.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>

#include <chunkio/dataset.hpp>
#include <chunkio/epoch_order.hpp>

#include "chunkbench/ranking.hpp"
#include "cli/stop_signal.hpp"
#include "h5pack/dataset/shuffle_quality.hpp"
#include "plan/epoch_rows.hpp"

namespace bench {
namespace {

constexpr std::int64_t kMaxBatches = 400;

/// int64 [N]; empty if the file has none such.
std::vector<std::int64_t> read_labels(const chunkio::Dataset& dataset) {
  const std::optional<chunkio::FieldInfo>& field = dataset.info().labels;
  if (!field || field->dtype != chunkio::DType::int64 || field->row_shape.rank() != 0) return {};
  std::vector<std::int64_t> labels(static_cast<std::size_t>(dataset.size()));
  dataset.read_field(field->name, 0, dataset.size(), std::as_writable_bytes(std::span(labels)));
  return labels;
}

}  // namespace

ShufflePoint measure_window_quality(const ChunkFile& file, const ChunkSize& chunk,
                                    std::int64_t window_bytes, std::int64_t batch_size,
                                    std::uint64_t seed) {
  using chunkio::OrderMode;
  const chunkio::Dataset dataset = chunkio::Dataset::open(file.path);
  const chunkio::RowGroups groups(chunk.samples, dataset.size());
  const std::int64_t group_bytes = chunk.samples * dataset.info().sample_bytes();
  const chunkio::EpochOrder order(
      groups,
      {.mode = OrderMode::chunk_shuffled,
       .seed = seed,
       .batch_size = batch_size,
       .window_groups = std::max<std::int64_t>(window_bytes / group_bytes, 1)},
      0);
  const std::vector<std::int64_t> labels = read_labels(dataset);
  std::optional<chunkio::LabelSummary> summary;
  if (!labels.empty()) summary = h5pack::summarize_labels(dataset, groups);
  h5pack::ShuffleMeter meter(summary, groups);
  const chunkio::plan::EpochRows all(order);
  std::vector<std::int64_t> rows;
  std::vector<std::int64_t> batch_labels;
  for (std::int64_t step = 0; step < std::min(all.num_steps(), kMaxBatches); ++step) {
    cli::StopSignal::check();
    rows.clear();
    all.append_batch(step, rows);
    batch_labels.clear();
    for (const std::int64_t row : rows) {
      if (!labels.empty()) batch_labels.push_back(labels[static_cast<std::size_t>(row)]);
    }
    meter.add(rows, batch_labels);
  }
  const h5pack::ShuffleQuality quality = meter.quality();
  ShufflePoint point = {.order = std::string(to_string(OrderMode::chunk_shuffled)),
                        .chunk_bytes = chunk.bytes,
                        .window_bytes = window_bytes,
                        .label_entropy = quality.entropy_ratio()};
  if (quality.pair_rate && quality.global_pair_rate > 0) {
    point.same_chunk_pairs = *quality.pair_rate / quality.global_pair_rate;
  }
  return point;
}

void mark_chosen(const std::vector<Cell>& cells, std::vector<ShufflePoint>& points) {
  const Cell* const best = fastest(cells, [](const Cell& cell) {
    return cell.order == to_string(chunkio::OrderMode::chunk_shuffled) && cell.source != "h5dread";
  });
  for (ShufflePoint& point : points) {
    point.chosen = best != nullptr && point.chunk_bytes == best->chunk_bytes &&
                   point.window_bytes == best->cache_bytes;
  }
}

}  // namespace bench
