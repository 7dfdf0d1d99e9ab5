#include "h5pack/pack/packer.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <mutex>
#include <span>
#include <utility>

#include <tbb/blocked_range.h>
#include <tbb/enumerable_thread_specific.h>
#include <tbb/global_control.h>
#include <tbb/parallel_for.h>
#include <tbb/parallel_pipeline.h>
#include <tbb/task_arena.h>
#include <tbb/task_group.h>

#include <chunkio/error.hpp>

#include "cli/progress.hpp"
#include "cli/resume_hint.hpp"
#include "cli/stop_signal.hpp"
#include "h5pack/image/image_codecs.hpp"
#include "h5pack/pack/chunk_assembler.hpp"
#include "h5pack/pack/chunk_record.hpp"
#include "h5pack/pack/chunk_write_thread.hpp"
#include "h5pack/pack/image_reader.hpp"
#include "h5pack/pack/pack_order.hpp"
#include "h5pack/pack/parallel_statistics.hpp"

namespace h5pack {

namespace {

using chunkio::Error;
using chunkio::ErrorCode;

chunkio::DatasetSpec make_spec(const Listing& listing, const Split& split, const PackPlan& plan,
                               const std::vector<std::int64_t>& order, const PackOptions& options) {
  chunkio::DatasetSpec spec;
  spec.num_samples = plan.num_samples;
  spec.height = plan.size.height;
  spec.width = plan.size.width;
  spec.channels = plan.channels;
  spec.layout = options.image.layout;
  spec.channel_order = options.image.color == ColorMode::rgb ? "RGB" : "gray";
  spec.fields = fields_of(split, order);
  // A split without labels, beside others that have them, needs no class names.
  if (find_field(split.fields, "labels") != nullptr) {
    spec.class_names = listing.class_names;
    spec.attribute_names = listing.attribute_names;
  }
  spec.split = split.name;
  spec.order = options.shuffled ? "shuffled" : "source";
  spec.seed = options.shuffled ? options.seed : 0;
  spec.options_json = options.options_json;
  spec.shard = shard_info(plan, options);
  return spec;
}

/// The pack as far as it has come, beside the pixels.
class PackTotals {
 public:
  explicit PackTotals(const PixelStatistics& no_pixels) : all_{.pixels = no_pixels} {}

  /// Thread-safe.
  void add(const ChunkRecord& record, std::int64_t num_rows) {
    const std::lock_guard lock(mutex_);
    num_rows_ += num_rows;
    all_.add(record);
  }

  [[nodiscard]] std::int64_t num_rows() const noexcept { return num_rows_; }
  [[nodiscard]] const PixelStatistics& pixels() const noexcept { return all_.pixels; }
  [[nodiscard]] const ImageSizes& sizes() const noexcept { return all_.sizes; }
  [[nodiscard]] std::vector<SkippedImage> skipped_in_order() const {
    std::vector<SkippedImage> skipped = all_.skipped;
    std::sort(skipped.begin(), skipped.end(),
              [](const auto& a, const auto& b) { return a.place < b.place; });
    return skipped;
  }

 private:
  std::mutex mutex_;  // Guards what follows, while chunks are added.
  std::int64_t num_rows_ = 0;
  ChunkRecord all_;
};

/// What is left to do beside the chunks of an earlier run, whose records go to `totals`.
std::vector<PendingRange> remaining(const chunkio::DatasetWriter& writer, const PackPlan& plan,
                                    const PackOptions& options, ErrorBudget& budget,
                                    PackTotals& totals) {
  std::vector<PendingRange> ranges;
  PendingRange next;
  for (const chunkio::ResumedChunk& resumed : writer.resumed()) {
    const ChunkRecord record = record_of(resumed, plan.channels, options.image.layout);
    for (const SkippedImage& skipped : record.skipped) budget.spend(skipped);
    totals.add(record, resumed.num_rows);
    next.end_chunk = resumed.chunk;
    next.end_place = record.first_place;
    if (next.first_chunk < resumed.chunk) {
      ranges.push_back(next);
    } else if (next.first_place != next.end_place) {
      throw Error(ErrorCode::corrupt_data,
                  "the journal of an earlier run leaves out images between chunks " +
                      std::to_string(resumed.chunk - 1) + " and " + std::to_string(resumed.chunk) +
                      "; start again with --force");
    }
    next = {.first_chunk = resumed.chunk + 1, .first_place = record.end_place};
  }
  next.end_place = plan.num_samples;
  ranges.push_back(next);
  return ranges;
}

/// Packs all that is left: `plan.threads` threads decode, those of a ChunkWriteThread write.
class ChunkPipeline {
 public:
  ChunkPipeline(const Images& images, const PackPlan& plan, const std::vector<std::int64_t>& order,
                const PackOptions& options, chunkio::DatasetWriter& writer, ErrorBudget& budget,
                PackTotals& totals, std::optional<MisnamedImages>& misnamed,
                cli::Progress& progress)
      : images_(images),
        plan_(plan),
        order_(order),
        no_pixels_(plan.channels, options.image.layout),
        budget_(budget),
        totals_(totals),
        misnamed_(misnamed),
        progress_(progress),
        readers_([this, &options] { return ImageReader(images_, options.image); }),
        buffers_(plan.chunk_bytes),
        assembler_(plan.chunk_samples, plan.sample_bytes(), no_pixels_, buffers_),
        writing_(writer, plan.sample_bytes(), plan.queued_chunks, buffers_) {}

  void run(const std::vector<PendingRange>& ranges) {
    std::vector<Item> items;
    for (const PendingRange& range : ranges) {
      for (std::int64_t first = range.first_place; first < range.end_place;
           first += plan_.chunk_samples) {
        items.push_back({.block = {.range = &range, .first_place = first},
                         .count = std::min(plan_.chunk_samples, range.end_place - first)});
      }
    }
    auto next = items.begin();
    // Without this, TBB starts no more threads than there are CPUs, whatever the arena asks for.
    const tbb::global_control parallelism(tbb::global_control::max_allowed_parallelism,
                                          static_cast<std::size_t>(plan_.threads));
    tbb::task_arena arena(plan_.threads);
    arena.execute([&] {
      tbb::parallel_pipeline(
          static_cast<std::size_t>(plan_.chunks_in_flight),
          tbb::make_filter<void, Item*>(tbb::filter_mode::serial_in_order,
                                        [&](tbb::flow_control& control) -> Item* {
                                          if (next != items.end()) return &*next++;
                                          control.stop();
                                          return nullptr;
                                        }) &
              tbb::make_filter<Item*, Item*>(tbb::filter_mode::parallel,
                                             [&](Item* item) {
                                               decode(item->block, item->count);
                                               return item;
                                             }) &
              tbb::make_filter<Item*, Item*>(tbb::filter_mode::serial_in_order,
                                             [&](Item* item) {
                                               item->chunk = assembled(std::move(item->block));
                                               return item;
                                             }) &
              tbb::make_filter<Item*, void>(tbb::filter_mode::parallel, [&](Item* item) {
                if (item->chunk) write(std::move(*item->chunk));
                item->chunk.reset();
              }));
      // Skipped images behind the last good one belong to no chunk, and still count.
      write(assembler_.finish(plan_.num_samples));
    });
    writing_.finish();
  }

 private:
  /// A block of at most one chunk, and the chunk that it made full. The pipeline gets a pointer:
  /// what TBB holds itself when an exception ends it is never destroyed.
  struct Item {
    DecodedBlock block = {};
    std::int64_t count = 0;
    std::unique_ptr<PackedChunk> chunk = {};
  };

  void decode(DecodedBlock& block, std::int64_t count) {
    block.pixels = buffers_.take();
    block.outcomes.resize(static_cast<std::size_t>(count));
    const auto sample_bytes = static_cast<std::size_t>(plan_.sample_bytes());
    copy_stored(block, count);
    // Rows in parallel, too: the last chunks, and files of a few large ones, keep all threads busy.
    tbb::parallel_for(
        tbb::blocked_range<std::size_t>(0, block.outcomes.size()), [&](const auto& range) {
          ImageReader& reader = readers_.local();
          for (std::size_t i = range.begin(); i != range.end(); ++i) {
            cli::StopSignal::check();
            const std::int64_t place = block.first_place + static_cast<std::int64_t>(i);
            const std::int64_t row = order_[static_cast<std::size_t>(place)];
            if (!images_.is_stored(row)) {
              auto& outcome = block.outcomes[i];
              outcome = reader.read(row, place, {plan_.size, plan_.size_row},
                                    {block.pixels.get() + i * sample_bytes, sample_bytes});
              const auto held = reader.misnamed();
              if (held && std::holds_alternative<ImageSize>(outcome)) add_misnamed(row, *held);
            }
            progress_.add(1);
          }
        });
    // While the pipeline is being cancelled, that ends early and does not tell; the block would
    // look as if all of its images were there.
    if (tbb::is_current_task_group_canceling()) {
      throw Error(ErrorCode::cancelled, "the pack was cancelled");
    }
  }

  void add_misnamed(std::int64_t row, ImageFormat format) {
    const std::lock_guard lock(misnamed_mutex_);
    count_misnamed(misnamed_, row, format);
  }

  /// Copies the stored rows of the block, as many at a time as follow each other.
  void copy_stored(DecodedBlock& block, std::int64_t count) const {
    const auto row_at = [&](std::int64_t i) {
      return order_[static_cast<std::size_t>(block.first_place + i)];
    };
    const auto sample_bytes = static_cast<std::size_t>(plan_.sample_bytes());
    for (std::int64_t i = 0; i < count;) {
      cli::StopSignal::check();
      const std::int64_t begin = i++;
      if (!images_.is_stored(row_at(begin))) continue;
      while (i < count && row_at(i) == row_at(i - 1) + 1 && images_.is_stored(row_at(i))) ++i;
      const std::span pixels(block.pixels.get() + static_cast<std::size_t>(begin) * sample_bytes,
                             static_cast<std::size_t>(i - begin) * sample_bytes);
      images_.read_stored(row_at(begin), i - begin, std::as_writable_bytes(pixels));
    }
  }

  /// In pack order, so that what ends the pack does not depend on the threads.
  std::unique_ptr<PackedChunk> assembled(DecodedBlock block) {
    for (const auto& outcome : block.outcomes) {
      const auto* const skipped = std::get_if<SkippedImage>(&outcome);
      if (skipped == nullptr) continue;
      budget_.spend(*skipped);
      progress_.add_skipped(1);
    }
    auto full = assembler_.add(std::move(block));
    return full ? std::make_unique<PackedChunk>(*std::move(full)) : nullptr;
  }

  void write(PackedChunk chunk) {
    const auto sample_bytes = static_cast<std::size_t>(plan_.sample_bytes());
    chunk.record.pixels =
        statistics_of({chunk.pixels.get(), static_cast<std::size_t>(chunk.num_rows) * sample_bytes},
                      sample_bytes, no_pixels_);
    totals_.add(chunk.record, chunk.num_rows);
    if (chunk.num_rows > 0) writing_.push(std::move(chunk));
  }

  const Images& images_;
  const PackPlan& plan_;
  const std::vector<std::int64_t>& order_;
  PixelStatistics no_pixels_;
  ErrorBudget& budget_;
  PackTotals& totals_;
  std::mutex misnamed_mutex_;  ///< Guards the next.
  std::optional<MisnamedImages>& misnamed_;
  cli::Progress& progress_;
  tbb::enumerable_thread_specific<ImageReader> readers_;
  BufferPool buffers_;
  ChunkAssembler assembler_;
  ChunkWriteThread writing_;
};

void pack_remaining(const Split& split, const PackPlan& plan,
                    const std::vector<std::int64_t>& order, const PackOptions& options,
                    const std::vector<PendingRange>& ranges, chunkio::DatasetWriter& writer,
                    ErrorBudget& budget, PackTotals& totals,
                    std::optional<MisnamedImages>& misnamed) {
  std::int64_t places = 0;
  for (const PendingRange& range : ranges) places += range.end_place - range.first_place;
  if (places == 0) return;
  const bool copies = std::any_of(ranges.begin(), ranges.end(), [&](const PendingRange& range) {
    return std::any_of(order.begin() + range.first_place, order.begin() + range.end_place,
                       [&](std::int64_t row) { return split.images->is_stored(row); });
  });
  if (copies) split.images->check_stored(options.writer.stop, options.quiet);
  cli::Progress progress(split.name.empty() ? "packing" : "packing " + split.name, "images", places,
                         options.quiet);
  ChunkPipeline pipeline(*split.images, plan, order, options, writer, budget, totals, misnamed,
                         progress);
  pipeline.run(ranges);
}

/// Shortens the file by what was skipped, adds the statistics and publishes it.
void finish(const Listing& listing, const Split& split, const PackPlan& plan,
            const std::vector<std::int64_t>& order, const PackTotals& totals,
            const PackOptions& options, chunkio::DatasetWriter& writer, PackResult& result) {
  result.skipped = totals.skipped_in_order();
  result.num_samples = totals.num_rows();
  if (result.num_samples == 0) {
    throw Error(ErrorCode::corrupt_data,
                "none of the " + std::to_string(plan.num_samples) +
                    " images can be packed; the first: " + result.skipped.front().reason);
  }
  std::vector<chunkio::FieldData> kept;
  if (!result.skipped.empty()) {
    kept = fields_of(split, without(order, result.skipped));
    writer.set_rows(result.num_samples, kept);
  }
  result.num_chunks = (result.num_samples + plan.chunk_samples - 1) / plan.chunk_samples;
  if (kept.empty() && plan.num_samples < plan.total_samples) kept = fields_of(split, order);
  const auto counts =
      chunkio::count_classes(kept.empty() ? split.fields : kept, listing.class_names);
  ImageSizes sizes = totals.sizes();
  const bool known = split.images->add_stored_sizes(sizes);
  result.statistics = {totals.pixels().result(), counts, totals.pixels().mean_picture_std(),
                       known ? std::optional(sizes.summary()) : std::nullopt};
  writer.set_statistics(result.statistics);
  if (options.before_publishing) options.before_publishing(result.skipped);
  writer.close();
}

}  // namespace

void count_misnamed(std::optional<MisnamedImages>& misnamed, std::int64_t row, ImageFormat format) {
  if (!misnamed || row < misnamed->first_row) {
    misnamed = {misnamed ? misnamed->count : 0, row, format};
  }
  ++misnamed->count;
}

PackResult pack(const Listing& listing, const Split& split, const PackPlan& plan,
                const std::string& path, const PackOptions& options, ErrorBudget& budget) {
  const auto start = std::chrono::steady_clock::now();
  // Images are decoded in parallel; threads inside one would only get in the way.
  use_one_thread_an_image();
  const std::vector<std::int64_t> order = pack_order(plan, options);
  chunkio::DatasetWriter writer(path, make_spec(listing, split, plan, order, options),
                                options.writer);
  PackResult result;
  cli::run_with_resume_hint(cli::resumable(writer), path, [&] {
    PackTotals totals(PixelStatistics(plan.channels, options.image.layout));
    const std::vector<PendingRange> ranges = remaining(writer, plan, options, budget, totals);
    result.num_resumed = totals.num_rows();
    pack_remaining(split, plan, order, options, ranges, writer, budget, totals, result.misnamed);
    cli::StopSignal::check();
    split.images->check_unchanged();
    finish(listing, split, plan, order, totals, options, writer, result);
  });
  result.path = path;
  result.read_back_seconds = writer.read_back_seconds();
  result.file_bytes = static_cast<std::int64_t>(std::filesystem::file_size(path));
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return result;
}

}  // namespace h5pack
