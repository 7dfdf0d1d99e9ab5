#include "packer.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <mutex>
#include <optional>
#include <span>
#include <utility>

#include <opencv2/core/utility.hpp>
#include <tbb/blocked_range.h>
#include <tbb/enumerable_thread_specific.h>
#include <tbb/global_control.h>
#include <tbb/info.h>
#include <tbb/parallel_for.h>
#include <tbb/parallel_pipeline.h>
#include <tbb/parallel_reduce.h>
#include <tbb/task_arena.h>

#include <chunkio/chunk_layout.hpp>
#include <chunkio/error.hpp>

#include "chunk_assembler.hpp"
#include "chunk_record.hpp"
#include "chunk_write_thread.hpp"
#include "in_quotes.hpp"
#include "pack_order.hpp"
#include "picture_reader.hpp"
#include "picture_transform.hpp"
#include "pixel_statistics.hpp"
#include "progress.hpp"
#include "stop_signal.hpp"

namespace h5pack {

namespace {

using chunkio::Error;
using chunkio::ErrorCode;

/// Chunk buffers may take this much, unless the fewest that it takes need more.
constexpr std::int64_t kMaxBufferBytes = std::int64_t{1} << 30;
/// What may wait to be written: enough to go on decoding while the disk is waited for.
constexpr std::int64_t kQueueBytes = std::int64_t{32} << 20;
constexpr std::int64_t kMaxQueueChunks = 64;
constexpr std::int64_t kMaxCountedLabels = 65536;

/// The field with its rows in pack order.
chunkio::FieldData reordered(const chunkio::FieldData& field,
                             const std::vector<std::int64_t>& order) {
  const std::size_t row = chunkio::Dataset::row_bytes(field.info);
  chunkio::FieldData result{field.info, std::vector<std::byte>(order.size() * row)};
  for (std::size_t i = 0; i < order.size(); ++i) {
    std::memcpy(result.values.data() + i * row,
                field.values.data() + static_cast<std::size_t>(order[i]) * row, row);
  }
  return result;
}

/// All fields of the file, whose row i is source row order[i].
std::vector<chunkio::FieldData> fields_of(const Split& split,
                                          const std::vector<std::int64_t>& order) {
  std::vector<chunkio::FieldData> fields;
  for (const chunkio::FieldData& field : split.fields) fields.push_back(reordered(field, order));
  fields.push_back(make_field("source_index", order));
  return fields;
}

chunkio::DatasetSpec make_spec(const Listing& listing, const Split& split, const PackPlan& plan,
                               const std::vector<std::int64_t>& order, const PackOptions& options) {
  chunkio::DatasetSpec spec;
  spec.num_samples = plan.num_samples;
  spec.height = plan.size.height;
  spec.width = plan.size.width;
  spec.channels = plan.channels;
  spec.layout = options.picture.layout;
  spec.channel_order = options.picture.color == ColorMode::rgb ? "RGB" : "gray";
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
  return spec;
}

/// The pack as far as it has come, beside the pixels.
class Progression {
 public:
  explicit Progression(const PixelStatistics& no_pixels) : pixels_(no_pixels) {}

  /// Thread-safe.
  void add(const ChunkRecord& record, std::int64_t num_rows) {
    const std::lock_guard lock(mutex_);
    num_rows_ += num_rows;
    pixels_.merge(record.pixels);
    sizes_.merge(record.sizes);
    skipped_.insert(skipped_.end(), record.skipped.begin(), record.skipped.end());
  }

  [[nodiscard]] std::int64_t num_rows() const noexcept { return num_rows_; }
  [[nodiscard]] const PixelStatistics& pixels() const noexcept { return pixels_; }
  [[nodiscard]] const PictureSizes& sizes() const noexcept { return sizes_; }
  [[nodiscard]] std::vector<SkippedPicture> skipped_in_order() const {
    std::vector<SkippedPicture> skipped = skipped_;
    std::sort(skipped.begin(), skipped.end(),
              [](const auto& a, const auto& b) { return a.place < b.place; });
    return skipped;
  }

 private:
  std::mutex mutex_;  // Guards what follows, while chunks are added.
  std::int64_t num_rows_ = 0;
  PixelStatistics pixels_;
  PictureSizes sizes_;
  std::vector<SkippedPicture> skipped_;
};

/// What is left to do beside the chunks of an earlier run, whose records go to `progression`.
std::vector<Stretch> remaining(const chunkio::DatasetWriter& writer, const PackPlan& plan,
                               const PackOptions& options, ErrorBudget& budget,
                               Progression& progression) {
  std::vector<Stretch> stretches;
  Stretch next;
  for (const chunkio::ResumedChunk& resumed : writer.resumed()) {
    const ChunkRecord record = from_note(resumed.note, plan.channels, options.picture.layout);
    for (const SkippedPicture& skipped : record.skipped) budget.spend(skipped);
    progression.add(record, resumed.num_rows);
    next.end_chunk = resumed.chunk;
    next.end_place = record.first_place;
    if (next.first_chunk < resumed.chunk) stretches.push_back(next);
    next = {.first_chunk = resumed.chunk + 1, .first_place = record.end_place};
  }
  next.end_place = plan.num_samples;
  stretches.push_back(next);
  return stretches;
}

/// Hands out blocks of at most one chunk, in pack order.
class BlockCursor {
 public:
  BlockCursor(const std::vector<Stretch>& stretches, std::int64_t block_samples)
      : stretch_(stretches.begin()), end_(stretches.end()), block_samples_(block_samples) {
    if (stretch_ != end_) place_ = stretch_->first_place;
  }

  /// The next block without its pictures, and how many they are; none at the end.
  std::optional<std::pair<DecodedBlock, std::int64_t>> next() {
    while (stretch_ != end_ && place_ >= stretch_->end_place) {
      if (++stretch_ != end_) place_ = stretch_->first_place;
    }
    if (stretch_ == end_) return std::nullopt;
    const std::int64_t count = std::min(block_samples_, stretch_->end_place - place_);
    DecodedBlock block{.stretch = &*stretch_, .first_place = place_};
    place_ += count;
    return std::pair(std::move(block), count);
  }

 private:
  std::vector<Stretch>::const_iterator stretch_;
  std::vector<Stretch>::const_iterator end_;
  std::int64_t block_samples_;
  std::int64_t place_ = 0;
};

/// Packs all that is left, with `plan.threads` threads that decode and one that writes.
class ChunkPipeline {
 public:
  ChunkPipeline(const Split& split, const PackPlan& plan, const std::vector<std::int64_t>& order,
                const PackOptions& options, chunkio::DatasetWriter& writer, ErrorBudget& budget,
                Progression& progression, Progress& progress)
      : plan_(plan),
        order_(order),
        no_pixels_(plan.channels, options.picture.layout),
        budget_(budget),
        progression_(progression),
        progress_(progress),
        readers_([&split, &options] { return PictureReader(split, options.picture); }),
        buffers_(plan.chunk_bytes),
        assembler_(plan.chunk_samples, plan.sample_bytes(), no_pixels_, buffers_),
        writing_(writer, plan.sample_bytes(), plan.queued_chunks, buffers_) {}

  void run(const std::vector<Stretch>& stretches) {
    BlockCursor cursor(stretches, plan_.chunk_samples);
    using Block = std::pair<DecodedBlock, std::int64_t>;
    // Without this, TBB starts no more threads than there are CPUs, whatever the arena asks for.
    const tbb::global_control parallelism(tbb::global_control::max_allowed_parallelism,
                                          static_cast<std::size_t>(plan_.threads));
    tbb::task_arena arena(plan_.threads);
    arena.execute([&] {
      tbb::parallel_pipeline(
          static_cast<std::size_t>(plan_.chunks_in_flight),
          tbb::make_filter<void, Block>(tbb::filter_mode::serial_in_order,
                                        [&](tbb::flow_control& control) {
                                          auto block = cursor.next();
                                          if (!block) control.stop();
                                          return block ? std::move(*block) : Block();
                                        }) &
              tbb::make_filter<Block, DecodedBlock>(
                  tbb::filter_mode::parallel,
                  [&](Block block) { return decoded(std::move(block.first), block.second); }) &
              tbb::make_filter<DecodedBlock, std::optional<PackedChunk>>(
                  tbb::filter_mode::serial_in_order,
                  [&](DecodedBlock block) { return assembled(std::move(block)); }) &
              tbb::make_filter<std::optional<PackedChunk>, void>(
                  tbb::filter_mode::parallel, [&](std::optional<PackedChunk> chunk) {
                    if (chunk) write(std::move(*chunk));
                  }));
      // Skipped pictures behind the last good one belong to no chunk, and still count.
      write(assembler_.finish(plan_.num_samples));
    });
    writing_.finish();
  }

 private:
  DecodedBlock decoded(DecodedBlock block, std::int64_t count) {
    block.pixels = buffers_.take();
    block.outcomes.resize(static_cast<std::size_t>(count));
    const auto sample_bytes = static_cast<std::size_t>(plan_.sample_bytes());
    // Rows in parallel, too: the last chunks, and files of a few large ones, keep all threads busy.
    tbb::parallel_for(
        tbb::blocked_range<std::size_t>(0, block.outcomes.size()), [&](const auto& range) {
          PictureReader& reader = readers_.local();
          for (std::size_t i = range.begin(); i != range.end(); ++i) {
            StopSignal::check();
            const std::int64_t place = block.first_place + static_cast<std::int64_t>(i);
            const std::int64_t row = order_[static_cast<std::size_t>(place)];
            block.outcomes[i] =
                reader.read(row, place, {plan_.size, plan_.size_row},
                            std::span(block.pixels.get() + i * sample_bytes, sample_bytes));
            progress_.add(1);
          }
        });
    return block;
  }

  /// In pack order, so that what ends the pack does not depend on the threads.
  std::optional<PackedChunk> assembled(DecodedBlock block) {
    for (const auto& outcome : block.outcomes) {
      if (const auto* skipped = std::get_if<SkippedPicture>(&outcome)) budget_.spend(*skipped);
    }
    return assembler_.add(std::move(block));
  }

  void write(PackedChunk chunk) {
    chunk.record.pixels = statistics_of(chunk);
    progression_.add(chunk.record, chunk.num_rows);
    if (chunk.num_rows > 0) writing_.push(std::move(chunk));
  }

  [[nodiscard]] PixelStatistics statistics_of(const PackedChunk& chunk) const {
    constexpr std::int64_t kRowsOfATask = 64;
    const auto sample_bytes = static_cast<std::size_t>(plan_.sample_bytes());
    return tbb::parallel_reduce(
        tbb::blocked_range<std::int64_t>(0, chunk.num_rows, kRowsOfATask), no_pixels_,
        [&](const auto& range, PixelStatistics sums) {
          for (std::int64_t row = range.begin(); row != range.end(); ++row) {
            sums.add(std::span(chunk.pixels.get() + static_cast<std::size_t>(row) * sample_bytes,
                               sample_bytes));
          }
          return sums;
        },
        [](PixelStatistics a, const PixelStatistics& b) {
          a.merge(b);
          return a;
        });
  }

  const PackPlan& plan_;
  const std::vector<std::int64_t>& order_;
  PixelStatistics no_pixels_;
  ErrorBudget& budget_;
  Progression& progression_;
  Progress& progress_;
  tbb::enumerable_thread_specific<PictureReader> readers_;
  BufferPool buffers_;
  ChunkAssembler assembler_;
  ChunkWriteThread writing_;
};

/// The places of the pictures that were packed, as source rows.
std::vector<std::int64_t> without(const std::vector<std::int64_t>& order,
                                  const std::vector<SkippedPicture>& skipped) {
  std::vector<std::int64_t> kept;
  kept.reserve(order.size() - skipped.size());
  auto next = skipped.begin();
  for (std::size_t place = 0; place < order.size(); ++place) {
    if (next != skipped.end() && std::cmp_equal(next->place, place)) {
      ++next;
    } else {
      kept.push_back(order[place]);
    }
  }
  return kept;
}

void pack_remaining(const Split& split, const PackPlan& plan,
                    const std::vector<std::int64_t>& order, const PackOptions& options,
                    const std::vector<Stretch>& stretches, chunkio::DatasetWriter& writer,
                    ErrorBudget& budget, Progression& progression) {
  std::int64_t places = 0;
  for (const Stretch& stretch : stretches) places += stretch.end_place - stretch.first_place;
  if (places == 0) return;
  Progress progress(split.name.empty() ? "packing" : "packing " + split.name, "images", places,
                    options.quiet);
  ChunkPipeline pipeline(split, plan, order, options, writer, budget, progression, progress);
  pipeline.run(stretches);
}

/// Shortens the file by what was skipped, adds the statistics and publishes it.
void finish(const Listing& listing, const Split& split, const PackPlan& plan,
            const std::vector<std::int64_t>& order, const Progression& progression,
            chunkio::DatasetWriter& writer, PackResult& result) {
  result.skipped = progression.skipped_in_order();
  result.num_samples = progression.num_rows();
  if (result.num_samples == 0) {
    throw Error(ErrorCode::corrupt_data,
                "none of the " + std::to_string(plan.num_samples) +
                    " pictures can be packed; the first: " + result.skipped.front().reason);
  }
  std::vector<chunkio::FieldData> kept;
  if (!result.skipped.empty()) {
    kept = fields_of(split, without(order, result.skipped));
    writer.set_rows(result.num_samples, kept);
  }
  result.num_chunks = (result.num_samples + plan.chunk_samples - 1) / plan.chunk_samples;
  const auto counts = count_classes(kept.empty() ? split.fields : kept, listing.class_names);
  result.statistics = {progression.pixels().result(), counts,
                       progression.pixels().mean_picture_std(), progression.sizes().summary()};
  writer.set_statistics(result.statistics);
  writer.close();
}

/// What to do about a pack that ended early, as the end of a sentence.
std::string way_on(const chunkio::DatasetWriter& writer, const std::string& path, bool cancelled) {
  if (writer.committed()) {
    return "; " + in_quotes(path + ".partial") +
           " keeps what was packed: the same command with --resume goes on from there";
  }
  return cancelled ? "; nothing was packed yet, and nothing is left behind" : "";
}

/// \throws Error if a reader would find the size that all samples are to have in no picture.
SampleSize find_sample_size(const Split& split, const PackOptions& options) {
  if (const auto fixed = PictureTransform(options.picture).fixed_size()) return {*fixed};
  PictureReader reader(split, options.picture);
  const std::int64_t count = num_pictures(split.pictures);
  for (std::int64_t row = 0;; ++row) {
    StopSignal::check();
    try {
      return {reader.output_size(row), row};
    } catch (const Error& error) {
      const bool another = options.on_error == OnError::skip && is_of_one_picture(error.code());
      if (!another || row + 1 == count) throw;
    }
  }
}

}  // namespace

PackPlan plan_pack(const Split& split, const PackOptions& options) {
  PackPlan plan;
  plan.num_samples = num_pictures(split.pictures);
  const SampleSize sample = find_sample_size(split, options);
  plan.size = sample.size;
  plan.size_row = sample.row;
  plan.channels = options.picture.channels();
  const std::int64_t sample_bytes = plan.sample_bytes();
  const std::int64_t wanted = options.writer.chunk_samples;
  plan.chunk_samples = wanted > 0 ? std::min(wanted, plan.num_samples)
                                  : chunkio::choose_chunk_samples(sample_bytes, plan.num_samples,
                                                                  options.writer.chunk_bytes);
  // HDF5 cannot store chunks of 4 GiB; also keeps the product below in range.
  if (plan.chunk_samples > ((std::int64_t{1} << 32) - 1) / sample_bytes) {
    throw Error(ErrorCode::invalid_argument,
                "a chunk of " + std::to_string(plan.chunk_samples) + " pictures of " +
                    std::to_string(sample_bytes) +
                    " bytes would reach 4 GiB; choose a smaller --chunk");
  }
  plan.chunk_bytes = plan.chunk_samples * sample_bytes;
  plan.num_chunks = (plan.num_samples + plan.chunk_samples - 1) / plan.chunk_samples;
  std::int64_t row_bytes = static_cast<std::int64_t>(sizeof(std::int64_t));  // source_index
  for (const chunkio::FieldData& field : split.fields) {
    row_bytes += static_cast<std::int64_t>(chunkio::Dataset::row_bytes(field.info));
  }
  if (plan.num_chunks > (INT64_MAX / 2) / plan.chunk_bytes) {
    throw Error(ErrorCode::out_of_resources, "the pictures would take more than 2^62 bytes");
  }
  plan.file_bytes = plan.num_chunks * plan.chunk_bytes + plan.num_samples * row_bytes;
  plan.threads = options.threads > 0 ? options.threads : tbb::info::default_concurrency();
  // One chunk a thread, so that none waits for another's last row, and one more; fewer if large.
  plan.queued_chunks = std::clamp<std::int64_t>(kQueueBytes / plan.chunk_bytes, 1, kMaxQueueChunks);
  const std::int64_t others = plan.queued_chunks + 2;  // One is being filled up, one written.
  plan.chunks_in_flight = std::min<std::int64_t>(
      plan.num_chunks,
      std::clamp<std::int64_t>(kMaxBufferBytes / plan.chunk_bytes - others, 1, plan.threads + 1));
  plan.buffers = std::min(plan.num_chunks, plan.chunks_in_flight + others);
  return plan;
}

std::vector<std::int64_t> count_classes(std::span<const chunkio::FieldData> fields,
                                        const std::vector<std::string>& class_names) {
  const chunkio::FieldData* field = find_field(fields, "labels");
  if (field == nullptr || field->info.dtype != chunkio::DType::int64 ||
      field->info.row_shape.rank() != 0) {
    return {};
  }
  std::vector<std::int64_t> labels(field->values.size() / sizeof(std::int64_t));
  std::memcpy(labels.data(), field->values.data(), field->values.size());
  auto num_classes = static_cast<std::int64_t>(class_names.size());
  if (class_names.empty()) {
    const auto [smallest, largest] = std::minmax_element(labels.begin(), labels.end());
    if (labels.empty() || *smallest < 0 || *largest >= kMaxCountedLabels) return {};
    num_classes = *largest + 1;
  }
  std::vector<std::int64_t> counts(static_cast<std::size_t>(num_classes), 0);
  for (const std::int64_t label : labels) ++counts[static_cast<std::size_t>(label)];
  return counts;
}

PackResult pack(const Listing& listing, const Split& split, const PackPlan& plan,
                const std::string& path, const PackOptions& options, ErrorBudget& budget) {
  const auto start = std::chrono::steady_clock::now();
  // Pictures are decoded in parallel; threads inside one would only get in the way.
  cv::setNumThreads(1);
  const std::vector<std::int64_t> order = options.shuffled
                                              ? shuffled_order(plan.num_samples, options.seed)
                                              : source_order(plan.num_samples);
  chunkio::DatasetWriter writer(path, make_spec(listing, split, plan, order, options),
                                options.writer);
  PackResult result;
  try {
    Progression progression(PixelStatistics(plan.channels, options.picture.layout));
    const std::vector<Stretch> stretches = remaining(writer, plan, options, budget, progression);
    result.num_resumed = progression.num_rows();
    pack_remaining(split, plan, order, options, stretches, writer, budget, progression);
    StopSignal::check();
    finish(listing, split, plan, order, progression, writer, result);
  } catch (const Error& error) {
    const bool cancelled = error.code() == ErrorCode::cancelled;
    if (cancelled) writer.commit();
    throw Error(error.code(), error.what() + way_on(writer, path, cancelled));
  }
  result.path = path;
  result.file_bytes = static_cast<std::int64_t>(std::filesystem::file_size(path));
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return result;
}

}  // namespace h5pack
