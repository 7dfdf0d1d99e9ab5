#include "h5pack/pack/repacker.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <mutex>
#include <span>
#include <utility>

#include <tbb/global_control.h>
#include <tbb/info.h>
#include <tbb/parallel_for.h>
#include <tbb/parallel_pipeline.h>
#include <tbb/task_arena.h>

#include <chunkio/chunk_layout.hpp>
#include <chunkio/error.hpp>
#include <chunkio/loader.hpp>

#include "cli/option_flags.hpp"
#include "cli/progress.hpp"
#include "cli/quote.hpp"
#include "cli/resume_hint.hpp"
#include "cli/stop_signal.hpp"
#include "h5pack/dataset/copy_loader.hpp"
#include "h5pack/dataset/selected_field.hpp"
#include "h5pack/image/axis_order.hpp"
#include "h5pack/image/image.hpp"
#include "h5pack/pack/chunk_record.hpp"
#include "h5pack/pack/row_window.hpp"
#include "h5pack/sources/listing.hpp"

namespace h5pack {
namespace {

using chunkio::Error;
using chunkio::ErrorCode;
using Rows = std::vector<std::int64_t>;

/// Whether a field is to be carried along.
bool is_wanted(const chunkio::FieldInfo& field, const RepackOptions& options) {
  if (field.name == kSourceIndex) return false;  // always there, and made apart
  return !options.fields || std::find(options.fields->begin(), options.fields->end(), field.name) !=
                                options.fields->end();
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
                           : info.channels == 3        ? "RGB"
                                                       : "",
          .fields = carried_fields(dataset, rows, options),
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
            const RepackOptions& options, int threads)
      : dataset_(dataset),
        rows_(rows),
        writer_(writer),
        options_(options),
        threads_(threads),
        layout_(options.layout.value_or(dataset.info().layout)),
        size_{dataset.info().height, dataset.info().width},
        sample_bytes_(static_cast<std::size_t>(dataset.info().sample_bytes())),
        all_rows_(std::cmp_equal(rows.size(), dataset.size())),
        counted_(must_count()),
        pixels_(counted_ ? dataset.info().channels : 1, layout_) {
    take_up_resumed();
  }

  /// Samples that an earlier run wrote.
  [[nodiscard]] std::int64_t num_resumed() const noexcept { return num_resumed_; }

  void run() {
    if (chunks_.empty()) return;
    cli::Progress progress("repacking" + (options_.split.empty() ? "" : " " + options_.split),
                           "images", static_cast<std::int64_t>(rows_.size()) - num_resumed_,
                           options_.quiet);
    if (std::is_sorted(rows_.begin(), rows_.end())) {
      copy_in_file_order(progress);
    } else {
      copy_by_windows(progress);
    }
  }

  /// Of all rows, without class counts.
  [[nodiscard]] chunkio::DatasetStatistics statistics() const {
    const chunkio::DatasetInfo& info = dataset_.info();
    chunkio::DatasetStatistics result;
    if (counted_) {
      result.channels = pixels_.result();
      result.mean_picture_std = pixels_.mean_picture_std();
    }
    if (all_rows_ && info.statistics) result.channels = *info.statistics;
    if (all_rows_ && !info.mean_picture_std.empty()) {
      result.mean_picture_std = info.mean_picture_std;
    }
    result.source_sizes = carried_source_sizes(info, static_cast<std::int64_t>(rows_.size()));
    return result;
  }

 private:
  /// Whether something is to be found out about the pixels. Of other images than gray and RGB
  /// ones nothing is.
  [[nodiscard]] bool must_count() const {
    const chunkio::DatasetInfo& info = dataset_.info();
    const bool known = all_rows_ && info.statistics && !info.mean_picture_std.empty();
    return !known && (info.channels == 1 || info.channels == 3);
  }

  void take_up_resumed() {
    std::vector<bool> there(static_cast<std::size_t>(writer_.num_chunks()));
    for (const chunkio::ResumedChunk& resumed : writer_.resumed()) {
      there[static_cast<std::size_t>(resumed.chunk)] = true;
      num_resumed_ += resumed.num_rows;
      if (counted_) {
        pixels_.merge(record_of(resumed, dataset_.info().channels, layout_).pixels);
      }
    }
    for (std::int64_t chunk = 0; chunk < writer_.num_chunks(); ++chunk) {
      if (!there[static_cast<std::size_t>(chunk)]) chunks_.push_back(chunk);
    }
  }

  /// The rows that go to `chunks`, one chunk after the other: whole ones, but for the last of all.
  [[nodiscard]] Rows rows_of(std::span<const std::int64_t> chunks) const {
    Rows wanted;
    for (const std::int64_t chunk : chunks) {
      const auto begin = rows_.begin() + chunk * writer_.chunk_samples();
      wanted.insert(wanted.end(), begin,
                    begin + std::min(writer_.chunk_samples(), rows_.end() - begin));
    }
    return wanted;
  }

  /// Each batch is one chunk.
  void copy_in_file_order(cli::Progress& progress) {
    const bool everything = all_rows_ && num_resumed_ == 0;
    const std::int64_t in_flight = threads_ + 1;
    chunkio::Loader loader = copy_loader(
        dataset_, {.batch_rows = writer_.chunk_samples(),
                   .max_held = in_flight,
                   .rows = everything ? std::nullopt
                                      : std::optional(chunkio::RowSelection::of(rows_of(chunks_))),
                   .memory_budget = options_.memory_budget});
    loader.start_epoch(0);
    // By pointer: what TBB holds itself when an exception ends it is never destroyed.
    std::vector<chunkio::Batch> batches(chunks_.size());
    auto next = batches.begin();
    tbb::parallel_pipeline(static_cast<std::size_t>(in_flight),
                           tbb::make_filter<void, chunkio::Batch*>(
                               tbb::filter_mode::serial_in_order,
                               [&](tbb::flow_control& control) -> chunkio::Batch* {
                                 cli::StopSignal::check();
                                 if (std::optional<chunkio::Batch> batch = loader.next()) {
                                   *next = *std::move(batch);
                                   return &*next++;
                                 }
                                 control.stop();
                                 return nullptr;
                               }) &
                               tbb::make_filter<chunkio::Batch*, void>(
                                   tbb::filter_mode::parallel, [&](chunkio::Batch* batch) {
                                     write_batch(chunks_[static_cast<std::size_t>(batch->step())],
                                                 batch->images(), batch->size());
                                     progress.add(batch->size());
                                     *batch = {};  // The loader needs its place in the ring.
                                   }));
  }

  void write_batch(std::int64_t chunk, const chunkio::Tensor& images, std::int64_t count) {
    const std::span<const std::byte> stored(images.data(), images.size_bytes());
    if (layout_ == dataset_.info().layout) {
      write_chunk(chunk, stored);
      return;
    }
    std::vector<std::byte> reordered(stored.size());
    for (std::int64_t i = 0; i < count; ++i) {
      place(sample(stored, i), sample(std::span(reordered), i));
    }
    write_chunk(chunk, reordered);
  }

  void copy_by_windows(cli::Progress& progress) {
    const auto window_chunks = static_cast<std::size_t>(
        std::clamp<std::int64_t>(options_.memory_budget / 2 / writer_.chunk_bytes(), 1,
                                 static_cast<std::int64_t>(chunks_.size())));
    const std::size_t chunk_bytes =
        static_cast<std::size_t>(writer_.chunk_samples()) * sample_bytes_;
    std::vector<std::byte> window(window_chunks * chunk_bytes);
    for (std::size_t first = 0; first < chunks_.size(); first += window_chunks) {
      const auto chunks =
          std::span(chunks_).subspan(first, std::min(window_chunks, chunks_.size() - first));
      const Rows wanted = rows_of(chunks);
      const auto filled = std::span(window).first(wanted.size() * sample_bytes_);
      read_window(dataset_, wanted, layout_, options_.memory_budget / 2, filled, progress);
      tbb::parallel_for(std::size_t{0}, chunks.size(), [&](std::size_t i) {
        cli::StopSignal::check();
        const std::size_t begin = i * chunk_bytes;
        write_chunk(chunks[i], filled.subspan(begin, std::min(chunk_bytes, filled.size() - begin)));
      });
    }
  }

  template <class Byte>
  [[nodiscard]] std::span<Byte> sample(std::span<Byte> samples, std::int64_t i) const {
    return samples.subspan(static_cast<std::size_t>(i) * sample_bytes_, sample_bytes_);
  }

  void place(std::span<const std::byte> stored, std::span<std::byte> target) const {
    const chunkio::DatasetInfo& info = dataset_.info();
    reorder_axes(stored, size_, info.channels, info.layout, layout_, target);
  }

  /// \param samples  in the new axis order.
  void write_chunk(std::int64_t chunk, std::span<const std::byte> samples) {
    if (!counted_) {
      writer_.write_chunk(chunk, samples);
      return;
    }
    const auto count = static_cast<std::int64_t>(samples.size() / sample_bytes_);
    const std::int64_t first = chunk * writer_.chunk_samples();
    ChunkRecord record{.first_place = first,
                       .end_place = first + count,
                       .pixels = PixelStatistics(dataset_.info().channels, layout_)};
    for (std::int64_t i = 0; i < count; ++i) {
      const std::span<const std::byte> image = sample(samples, i);
      record.pixels.add({reinterpret_cast<const std::uint8_t*>(image.data()), image.size()});
    }
    writer_.write_chunk(chunk, samples, to_note(record));
    const std::lock_guard lock(mutex_);
    pixels_.merge(record.pixels);
  }

  const chunkio::Dataset& dataset_;
  const Rows& rows_;
  chunkio::DatasetWriter& writer_;
  const RepackOptions& options_;
  int threads_;
  chunkio::Layout layout_;
  ImageSize size_;
  std::size_t sample_bytes_;
  bool all_rows_;
  bool counted_;  ///< Statistics of pixels are computed here.
  Rows chunks_;   ///< That are still to be written, ascending.
  std::int64_t num_resumed_ = 0;
  std::mutex mutex_;  ///< Guards pixels_ while chunks are written.
  PixelStatistics pixels_;
};

/// Whether a dataset that DatasetInfo::left_out describes is called labels.
bool is_called_labels(const std::string& description) {
  return description.starts_with("labels ") || description.starts_with("label ");
}

}  // namespace

std::string carried_name(const chunkio::DatasetInfo& info, const chunkio::FieldInfo& field) {
  const bool taken = field.name == "labels" || field.name == "images" ||
                     field.name == "sample_digests" || (field.name == "label" && !info.labels);
  return taken ? field.name + "_" + std::string(to_string(field.dtype)) : field.name;
}

std::vector<chunkio::FieldData> carried_fields(const chunkio::Dataset& dataset, const Rows& rows,
                                               const RepackOptions& options) {
  const chunkio::DatasetInfo& info = dataset.info();
  for (const std::string& name : options.fields.value_or(std::vector<std::string>())) {
    if (!dataset.find_field(name)) {
      throw Error(ErrorCode::not_found, "no field " + cli::quote(name) + " in " +
                                            cli::quote(info.path) + "; see h5pack info");
    }
  }
  const std::int64_t memory = options.memory_budget / 8;
  std::vector<chunkio::FieldData> fields;
  if (info.labels) {
    fields.push_back(selected_field(dataset, *info.labels, rows, memory, "labels"));
  }
  fields.push_back(selected_source_index(dataset, rows, memory));
  for (const chunkio::FieldInfo& field : info.fields) {
    if (!is_wanted(field, options)) continue;
    fields.push_back(selected_field(dataset, field, rows, memory, carried_name(info, field)));
  }
  return fields;
}

std::optional<chunkio::SourceSizes> carried_source_sizes(const chunkio::DatasetInfo& info,
                                                         std::int64_t num_samples) {
  std::optional<chunkio::SourceSizes> sizes = info.source_sizes;
  if (!sizes || num_samples == info.num_samples) return sizes;
  if (sizes->min_height != sizes->max_height || sizes->min_width != sizes->max_width) {
    return std::nullopt;
  }
  sizes->most_frequent.front().images = num_samples;
  return sizes;
}

std::vector<std::string> notes_on_fields(const chunkio::DatasetInfo& info,
                                         const RepackOptions& options) {
  std::vector<std::string> notes;
  for (const chunkio::FieldInfo& field : info.fields) {
    const std::string name = carried_name(info, field);
    if (!is_wanted(field, options) || name == field.name) continue;
    notes.push_back(field.name +
                    " cannot be called that in the new file, and is carried along as " +
                    "the field " + name);
  }
  if (options.fields) return notes;
  for (const std::string& description : info.left_out) {
    if (!info.labels && is_called_labels(description)) {
      throw Error(ErrorCode::unsupported,
                  cli::quote(info.path) + ": " + cli::why_no_labels(info) +
                      "; name others with --label-field, or leave them behind by saying what to "
                      "carry along (--fields NAMES, or --fields none)");
    }
    notes.push_back("left behind: " + description);
  }
  return notes;
}

RepackResult plan_repack(const chunkio::Dataset& dataset, const Rows& rows, const std::string& path,
                         const RepackOptions& options) {
  const chunkio::DatasetSpec spec = make_spec(dataset, rows, options);
  const std::int64_t sample_bytes = dataset.info().sample_bytes();
  const std::int64_t wanted = options.writer.chunk_samples;
  const std::int64_t chunk_samples = chunkio::choose_chunk_samples(
      sample_bytes, spec.num_samples,
      wanted > 0 ? std::min(wanted, spec.num_samples) * sample_bytes : options.writer.chunk_bytes);
  const std::int64_t num_chunks = (spec.num_samples + chunk_samples - 1) / chunk_samples;
  auto row_bytes = static_cast<std::int64_t>(sizeof(std::uint64_t));  // the digest
  for (const chunkio::FieldData& field : spec.fields) {
    row_bytes += static_cast<std::int64_t>(chunkio::Dataset::row_bytes(field.info));
  }
  RepackResult result{
      .path = path,
      .num_samples = spec.num_samples,
      .chunk_samples = chunk_samples,
      .num_chunks = num_chunks,
      .chunk_bytes = chunk_samples * sample_bytes,
      .file_bytes = num_chunks * chunk_samples * sample_bytes + spec.num_samples * row_bytes,
      .planned = true,
      .filter = options.writer.filter};
  result.statistics.class_counts = chunkio::count_classes(spec.fields, spec.class_names);
  return result;
}

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
                      .chunk_bytes = writer.chunk_bytes(),
                      .filter = options.writer.filter};
  const auto work = [&] {
    Repacking repacking(dataset, rows, writer, options, threads);
    result.num_resumed = repacking.num_resumed();
    const tbb::global_control parallelism(tbb::global_control::max_allowed_parallelism,
                                          static_cast<std::size_t>(threads));
    tbb::task_arena arena(threads);
    arena.execute([&] { repacking.run(); });
    result.statistics = repacking.statistics();
    result.statistics.class_counts = chunkio::count_classes(spec.fields, spec.class_names);
    cli::StopSignal::check();
    writer.set_statistics(result.statistics);
    writer.close();
    result.read_back_seconds = writer.read_back_seconds();
  };
  cli::run_with_resume_hint(
      cli::resumable(writer), path, work,
      options.writer.filter.deflate_level > 0
          ? "nothing of the file is kept, since one with a filter cannot be resumed"
          : "nothing of the file is kept");
  result.file_bytes = static_cast<std::int64_t>(std::filesystem::file_size(path));
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return result;
}

}  // namespace h5pack
