#include "repacker.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <numeric>
#include <span>
#include <utility>

#include <tbb/enumerable_thread_specific.h>
#include <tbb/global_control.h>
#include <tbb/info.h>
#include <tbb/parallel_for.h>
#include <tbb/parallel_pipeline.h>
#include <tbb/task_arena.h>

#include <chunkio/error.hpp>
#include <chunkio/loader.hpp>

#include "axis_order.hpp"
#include "copy_loader.hpp"
#include "in_quotes.hpp"
#include "packer.hpp"
#include "picture.hpp"
#include "pixel_statistics.hpp"
#include "progress.hpp"
#include "recorded_source.hpp"
#include "stop_signal.hpp"

namespace h5pack {
namespace {

using chunkio::Error;
using chunkio::ErrorCode;
using Rows = std::vector<std::int64_t>;

constexpr const char* kSourceIndex = "source_index";

/// The rows of a field, in their order.
chunkio::FieldData gathered(const chunkio::Dataset& dataset, const chunkio::FieldInfo& field,
                            const Rows& rows, std::string name) {
  const std::size_t row_bytes = chunkio::Dataset::row_bytes(field);
  std::vector<std::byte> all(static_cast<std::size_t>(dataset.size()) * row_bytes);
  dataset.read_field(field.name, 0, dataset.size(), all);
  chunkio::FieldData data{field, std::vector<std::byte>(rows.size() * row_bytes)};
  data.info.name = std::move(name);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    std::memcpy(data.values.data() + i * row_bytes,
                all.data() + static_cast<std::size_t>(rows[i]) * row_bytes, row_bytes);
  }
  return data;
}

/// Whether a field is to be carried along.
bool is_wanted(const chunkio::FieldInfo& field, const RepackOptions& options) {
  if (field.name == kSourceIndex) return false;  // always there, and made apart
  return !options.fields || std::find(options.fields->begin(), options.fields->end(), field.name) !=
                                options.fields->end();
}

std::vector<chunkio::FieldData> gather_fields(const chunkio::Dataset& dataset, const Rows& rows,
                                              const RepackOptions& options) {
  const chunkio::DatasetInfo& info = dataset.info();
  for (const std::string& name : options.fields.value_or(std::vector<std::string>())) {
    if (!dataset.find_field(name)) {
      throw Error(ErrorCode::not_found, "no field " + in_quotes(name) + " in " +
                                            in_quotes(info.path) + "; see h5pack info");
    }
  }
  std::vector<chunkio::FieldData> fields;
  if (info.labels) fields.push_back(gathered(dataset, *info.labels, rows, "labels"));
  const Rows sources = source_rows(dataset, {0, dataset.size()});
  Rows of_rows;
  for (const std::int64_t row : rows) {
    of_rows.push_back(sources.empty() ? row : sources[static_cast<std::size_t>(row)]);
  }
  fields.push_back(make_field(kSourceIndex, of_rows));
  for (const chunkio::FieldInfo& field : info.fields) {
    if (is_wanted(field, options)) fields.push_back(gathered(dataset, field, rows, field.name));
  }
  return fields;
}

chunkio::DatasetSpec make_spec(const chunkio::Dataset& dataset, const Rows& rows,
                               const RepackOptions& options) {
  const chunkio::DatasetInfo& info = dataset.info();
  return {.num_samples = static_cast<std::int64_t>(rows.size()),
          .height = info.height,
          .width = info.width,
          .channels = info.channels,
          .layout = options.layout.value_or(info.layout),
          .channel_order = !info.channel_order.empty() ? info.channel_order
                           : info.channels == 1        ? "gray"
                                                       : "RGB",
          .fields = gather_fields(dataset, rows, options),
          .class_names = info.class_names,
          .attribute_names = info.attribute_names,
          .split = options.split.empty() ? info.split : options.split,
          .order = options.order,
          .seed = options.seed,
          .options_json = options.options_json};
}

class Repacking {
 public:
  Repacking(const chunkio::Dataset& dataset, const Rows& rows, chunkio::DatasetWriter& writer,
            const RepackOptions& options, int threads, Progress& progress)
      : dataset_(dataset),
        rows_(rows),
        writer_(writer),
        options_(options),
        threads_(threads),
        progress_(progress),
        layout_(options.layout.value_or(dataset.info().layout)),
        size_{dataset.info().height, dataset.info().width},
        sample_bytes_(static_cast<std::size_t>(dataset.info().sample_bytes())),
        known_(dataset.info().statistics && std::cmp_equal(rows.size(), dataset.size())),
        counted_(!known_ && (dataset.info().channels == 1 || dataset.info().channels == 3)),
        pixels_([this] { return PixelStatistics(dataset_.info().channels, layout_); }) {}

  void run() {
    if (std::is_sorted(rows_.begin(), rows_.end())) {
      copy_in_file_order();
    } else {
      copy_by_windows();
    }
  }

  /// Of all rows written; empty for pictures of other than 1 or 3 channels.
  [[nodiscard]] chunkio::ChannelStatistics statistics() const {
    const chunkio::DatasetInfo& info = dataset_.info();
    if (known_) return *info.statistics;
    if (!counted_) return {};
    PixelStatistics total(info.channels, layout_);
    for (const PixelStatistics& part : pixels_) total.merge(part);
    return total.result();
  }

 private:
  /// Each batch is one chunk.
  void copy_in_file_order() {
    const bool all = std::cmp_equal(rows_.size(), dataset_.size());
    const std::int64_t in_flight = threads_ + 1;
    chunkio::Loader loader = copy_loader(
        dataset_, {.batch_rows = writer_.chunk_samples(),
                   .max_held = in_flight,
                   .rows = all ? std::nullopt : std::optional(chunkio::RowSelection::of(rows_)),
                   .memory_budget = options_.memory_budget});
    loader.start_epoch(0);
    tbb::parallel_pipeline(static_cast<std::size_t>(in_flight),
                           tbb::make_filter<void, chunkio::Batch>(
                               tbb::filter_mode::serial_in_order,
                               [&](tbb::flow_control& control) {
                                 StopSignal::check();
                                 std::optional<chunkio::Batch> batch = loader.next();
                                 if (!batch) control.stop();
                                 return batch.value_or(chunkio::Batch());
                               }) &
                               tbb::make_filter<chunkio::Batch, void>(
                                   tbb::filter_mode::parallel, [&](const chunkio::Batch& batch) {
                                     write_batch(batch.step(), batch.images(), batch.size());
                                   }));
  }

  void write_batch(std::int64_t chunk, const chunkio::TensorView& images, std::int64_t count) {
    const std::span<const std::byte> stored(images.data(), images.size_bytes());
    if (layout_ == dataset_.info().layout) {
      for (std::int64_t i = 0; i < count; ++i) add_pixels(sample(stored, i));
      writer_.write_chunk(chunk, stored);
    } else {
      std::vector<std::byte> reordered(stored.size());
      for (std::int64_t i = 0; i < count; ++i) {
        place(sample(stored, i), sample(std::span(reordered), i));
      }
      writer_.write_chunk(chunk, reordered);
    }
    progress_.add(count);
  }

  void copy_by_windows() {
    const std::int64_t chunks = std::clamp<std::int64_t>(
        options_.memory_budget / 2 / writer_.chunk_bytes(), 1, writer_.num_chunks());
    std::vector<std::byte> window(static_cast<std::size_t>(chunks * writer_.chunk_samples()) *
                                  sample_bytes_);
    for (std::int64_t chunk = 0; chunk < writer_.num_chunks(); chunk += chunks) {
      const std::int64_t end_chunk = std::min(chunk + chunks, writer_.num_chunks());
      const std::int64_t first = chunk * writer_.chunk_samples();
      const std::int64_t end =
          std::min(end_chunk * writer_.chunk_samples(), static_cast<std::int64_t>(rows_.size()));
      fill_window(first, end, window);
      tbb::parallel_for(chunk, end_chunk, [&](std::int64_t written) {
        StopSignal::check();
        const std::int64_t begin = written * writer_.chunk_samples() - first;
        const std::int64_t count = std::min(writer_.chunk_samples(), end - first - begin);
        writer_.write_chunk(written, std::span<const std::byte>(window).subspan(
                                         static_cast<std::size_t>(begin) * sample_bytes_,
                                         static_cast<std::size_t>(count) * sample_bytes_));
      });
    }
  }

  /// Brings rows_[first, end) to their places in the window.
  void fill_window(std::int64_t first, std::int64_t end, std::span<std::byte> window) {
    const auto row_at = [&](std::int64_t place) {
      return rows_[static_cast<std::size_t>(first + place)];
    };
    Rows places(static_cast<std::size_t>(end - first));
    std::iota(places.begin(), places.end(), std::int64_t{0});
    // They come in the order of the file.
    std::sort(places.begin(), places.end(),
              [&](std::int64_t a, std::int64_t b) { return row_at(a) < row_at(b); });

    const std::int64_t memory = options_.memory_budget / 2;
    const std::int64_t batch_bytes = std::min(std::int64_t{4} << 20, memory / 16);
    const std::span wanted = std::span(rows_).subspan(static_cast<std::size_t>(first),
                                                      static_cast<std::size_t>(end - first));
    chunkio::Loader loader = copy_loader(
        dataset_,
        {.batch_rows = std::clamp<std::int64_t>(
             batch_bytes / static_cast<std::int64_t>(sample_bytes_), 1, end - first),
         .rows = chunkio::RowSelection::of(wanted),
         .memory_budget = memory,
         .memory_name = "half of --memory-budget; the other half is for putting rows in order"});
    std::size_t next = 0;
    for (const chunkio::Batch& batch : loader.epoch(0)) {
      StopSignal::check();
      const chunkio::TensorView images = batch.images();
      const std::span<const std::byte> stored(images.data(), images.size_bytes());
      tbb::parallel_for(std::int64_t{0}, batch.size(), [&](std::int64_t i) {
        place(sample(stored, i), sample(window, places[next + static_cast<std::size_t>(i)]));
      });
      next += static_cast<std::size_t>(batch.size());
      progress_.add(batch.size());
    }
  }

  template <class Byte>
  [[nodiscard]] std::span<Byte> sample(std::span<Byte> samples, std::int64_t i) const {
    return samples.subspan(static_cast<std::size_t>(i) * sample_bytes_, sample_bytes_);
  }

  void place(std::span<const std::byte> stored, std::span<std::byte> target) {
    const chunkio::DatasetInfo& info = dataset_.info();
    reorder_axes(stored, size_, info.channels, info.layout, layout_, target);
    add_pixels(target);
  }

  /// \param picture  in the new axis order.
  void add_pixels(std::span<const std::byte> picture) {
    if (!counted_) return;
    pixels_.local().add({reinterpret_cast<const std::uint8_t*>(picture.data()), picture.size()});
  }

  const chunkio::Dataset& dataset_;
  const Rows& rows_;
  chunkio::DatasetWriter& writer_;
  const RepackOptions& options_;
  int threads_;
  Progress& progress_;
  chunkio::Layout layout_;
  PictureSize size_;
  std::size_t sample_bytes_;
  bool known_;    ///< Mean and std are those of the old file: the same pictures.
  bool counted_;  ///< They are computed here.
  tbb::enumerable_thread_specific<PixelStatistics> pixels_;
};

}  // namespace

RepackResult repack(const chunkio::Dataset& dataset, const Rows& rows, const std::string& path,
                    const RepackOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  const int threads = options.threads > 0 ? options.threads : tbb::info::default_concurrency();
  const chunkio::DatasetSpec spec = make_spec(dataset, rows, options);
  chunkio::DatasetWriter writer(path, spec, options.writer);
  RepackResult result{.path = path,
                      .num_samples = spec.num_samples,
                      .chunk_samples = writer.chunk_samples(),
                      .num_chunks = writer.num_chunks(),
                      .chunk_bytes = writer.chunk_bytes()};
  {
    Progress progress("repacking" + (options.split.empty() ? "" : " " + options.split), "images",
                      spec.num_samples, options.quiet);
    const tbb::global_control parallelism(tbb::global_control::max_allowed_parallelism,
                                          static_cast<std::size_t>(threads));
    tbb::task_arena arena(threads);
    Repacking repacking(dataset, rows, writer, options, threads, progress);
    arena.execute([&] { repacking.run(); });
    result.statistics = {repacking.statistics(), count_classes(spec.fields, spec.class_names)};
  }
  StopSignal::check();
  writer.set_statistics(result.statistics);
  writer.close();
  result.file_bytes = static_cast<std::int64_t>(std::filesystem::file_size(path));
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return result;
}

}  // namespace h5pack
