#include "h5pack/pack/row_window.hpp"

#include <algorithm>
#include <numeric>

#include <tbb/parallel_for.h>

#include <chunkio/loader.hpp>

#include "cli/stop_signal.hpp"
#include "h5pack/dataset/copy_loader.hpp"
#include "h5pack/image/axis_order.hpp"
#include "h5pack/image/image.hpp"

namespace h5pack {

void read_window(const chunkio::Dataset& dataset, const std::vector<std::int64_t>& rows,
                 chunkio::Layout layout, std::int64_t memory, std::span<std::byte> window,
                 cli::Progress& progress) {
  const chunkio::DatasetInfo& info = dataset.info();
  const ImageSize size{info.height, info.width};
  const std::int64_t sample_bytes = info.sample_bytes();
  const auto sample = [&](auto samples, std::size_t i) {
    const auto bytes = static_cast<std::size_t>(sample_bytes);
    return samples.subspan(i * bytes, bytes);
  };
  std::vector<std::size_t> places(rows.size());
  std::iota(places.begin(), places.end(), std::size_t{0});
  // They come in the order of the file.
  std::sort(places.begin(), places.end(),
            [&](std::size_t a, std::size_t b) { return rows[a] < rows[b]; });

  const std::int64_t batch_bytes = std::min(std::int64_t{4} << 20, memory / 16);
  chunkio::Loader loader = copy_loader(
      dataset,
      {.batch_rows = std::clamp<std::int64_t>(batch_bytes / sample_bytes, 1,
                                              static_cast<std::int64_t>(rows.size())),
       .rows = chunkio::RowSelection::of(rows),
       .memory_budget = memory,
       .memory_share = ", of which reading has half, and putting rows in order the other"});
  std::size_t next = 0;
  for (const chunkio::Batch& batch : loader.epoch(0)) {
    cli::StopSignal::check();
    const chunkio::Tensor images = batch.images();
    const std::span<const std::byte> stored(images.data(), images.size_bytes());
    tbb::parallel_for(std::size_t{0}, static_cast<std::size_t>(batch.size()), [&](std::size_t i) {
      reorder_axes(sample(stored, i), size, info.channels, info.layout, layout,
                   sample(window, places[next + i]));
    });
    next += static_cast<std::size_t>(batch.size());
    progress.add(batch.size());
  }
}

}  // namespace h5pack
