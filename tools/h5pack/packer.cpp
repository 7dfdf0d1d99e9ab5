#include "packer.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <memory>
#include <mutex>
#include <span>
#include <utility>

#include <opencv2/core/utility.hpp>
#include <tbb/blocked_range.h>
#include <tbb/enumerable_thread_specific.h>
#include <tbb/global_control.h>
#include <tbb/info.h>
#include <tbb/parallel_for.h>
#include <tbb/parallel_pipeline.h>
#include <tbb/task_arena.h>

#include <chunkio/chunk_layout.hpp>
#include <chunkio/error.hpp>

#include "decode.hpp"
#include "in_quotes.hpp"
#include "pack_order.hpp"
#include "picture_transform.hpp"
#include "pixel_statistics.hpp"
#include "progress.hpp"
#include "stop_signal.hpp"

namespace h5pack {

namespace {

using chunkio::Error;
using chunkio::ErrorCode;

/// Chunk buffers may take this much, unless two chunks alone need more.
constexpr std::int64_t kMaxBufferBytes = std::int64_t{1} << 30;
constexpr std::int64_t kMaxCountedLabels = 65536;

/// Everything one thread needs to turn a source row into pixels.
class PictureReader {
 public:
  PictureReader(const Split& split, const PackOptions& options)
      : split_(&split),
        options_(&options),
        decoder_(options.picture.color, options.picture.orientation),
        transform_(options.picture),
        statistics_(options.picture.channels(), options.picture.layout) {}

  /// The size source row `index` will have in the file. Blocks on I/O.
  [[nodiscard]] PictureSize output_size(std::int64_t index) {
    return transform_.output_size(open(index), name(index));
  }

  /// Writes source row `index` to `target`, which holds one sample of `expected` size.
  void read(std::int64_t index, PictureSize expected, std::span<std::uint8_t> target) {
    const PictureSize size = open(index);
    const PictureSize output = transform_.output_size(size, name(index));
    if (output != expected) {
      throw Error(
          ErrorCode::unsupported,
          in_quotes(name(0)) + " gives " + to_string(expected) + " pixels, but " +
              in_quotes(name(index)) + " gives " + to_string(output) +
              " (height x width): bring all to one size with --resize HxW, or --resize S with "
              "--center-crop HxW or --pad HxW");
    }
    if (transform_.is_identity(size)) {
      decode(index, target.data());
    } else {
      decoded_.resize(static_cast<std::size_t>(size.pixels() * options_->picture.channels()));
      decode(index, decoded_.data());
      transform_.apply(decoded_.data(), size, target.data());
    }
    statistics_.add(target);
  }

  [[nodiscard]] const PixelStatistics& statistics() const noexcept { return statistics_; }

 private:
  [[nodiscard]] std::string name(std::int64_t index) const {
    return picture_name(split_->pictures, index);
  }

  PictureSize open(std::int64_t index) {
    if (const auto* paths = std::get_if<std::vector<std::string>>(&split_->pictures)) {
      return decoder_.open((*paths)[static_cast<std::size_t>(index)]);
    }
    return std::get<PlanarPictures>(split_->pictures).size;
  }

  void decode(std::int64_t index, std::uint8_t* target) {
    const auto* planar = std::get_if<PlanarPictures>(&split_->pictures);
    if (planar == nullptr) {
      decoder_.decode(target);
      return;
    }
    const std::int64_t plane = planar->size.pixels();
    const std::uint8_t* red = planar->pixels.data() + index * 3 * plane;
    const std::uint8_t* green = red + plane;
    const std::uint8_t* blue = green + plane;
    for (std::int64_t i = 0; i < plane; ++i) {
      if (options_->picture.color == ColorMode::gray) {
        target[i] = luma(red[i], green[i], blue[i]);
      } else {
        target[3 * i] = red[i];
        target[3 * i + 1] = green[i];
        target[3 * i + 2] = blue[i];
      }
    }
  }

  const Split* split_;
  const PackOptions* options_;
  PictureDecoder decoder_;
  PictureTransform transform_;
  PixelStatistics statistics_;
  std::vector<std::uint8_t> decoded_;  // Pixels that still need a transform.
};

/// As many equal buffers as chunks are in flight, made when first needed.
class BufferPool {
 public:
  explicit BufferPool(std::int64_t bytes) : bytes_(static_cast<std::size_t>(bytes)) {}

  std::unique_ptr<std::uint8_t[]> take() {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) return std::make_unique_for_overwrite<std::uint8_t[]>(bytes_);
    auto buffer = std::move(free_.back());
    free_.pop_back();
    return buffer;
  }
  void give_back(std::unique_ptr<std::uint8_t[]> buffer) {
    const std::lock_guard lock(mutex_);
    free_.push_back(std::move(buffer));
  }

 private:
  std::size_t bytes_;
  std::mutex mutex_;  // Guards free_.
  std::vector<std::unique_ptr<std::uint8_t[]>> free_;
};

/// The field with its rows in pack order.
chunkio::FieldData reordered(const chunkio::FieldData& field,
                             const std::vector<std::int64_t>& order) {
  const std::size_t row = chunkio::Dataset::row_bytes(field.info);
  chunkio::FieldData result{field.info, std::vector<std::byte>(field.values.size())};
  for (std::size_t i = 0; i < order.size(); ++i) {
    std::memcpy(result.values.data() + i * row,
                field.values.data() + static_cast<std::size_t>(order[i]) * row, row);
  }
  return result;
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
  for (const chunkio::FieldData& field : split.fields)
    spec.fields.push_back(reordered(field, order));
  spec.fields.push_back(make_field("source_index", order));
  // A split without labels, beside others that have them, needs no class names.
  if (find_field(split, "labels") != nullptr) {
    spec.class_names = listing.class_names;
    spec.attribute_names = listing.attribute_names;
  }
  spec.split = split.name;
  spec.order = options.shuffled ? "shuffled" : "source";
  spec.seed = options.shuffled ? options.seed : 0;
  spec.options_json = options.options_json;
  return spec;
}

/// Decodes and writes all chunks with `plan.threads` threads, then merges their sums.
PixelStatistics pack_chunks(const Split& split, const PackPlan& plan,
                            const std::vector<std::int64_t>& order, const PackOptions& options,
                            chunkio::DatasetWriter& writer, Progress& progress) {
  const std::size_t sample_bytes = static_cast<std::size_t>(plan.size.pixels() * plan.channels);
  tbb::enumerable_thread_specific<PictureReader> readers(
      [&] { return PictureReader(split, options); });
  BufferPool buffers(plan.chunk_bytes);

  const auto pack_chunk = [&](std::int64_t chunk) {
    const std::int64_t first = chunk * plan.chunk_samples;
    const std::int64_t rows = std::min(plan.chunk_samples, plan.num_samples - first);
    auto buffer = buffers.take();
    // Rows in parallel, too: the last chunks, and files of a few large ones, keep all threads busy.
    tbb::parallel_for(tbb::blocked_range<std::int64_t>(0, rows), [&](const auto& range) {
      PictureReader& reader = readers.local();
      for (std::int64_t row = range.begin(); row != range.end(); ++row) {
        StopSignal::check();
        const std::span target(buffer.get() + static_cast<std::size_t>(row) * sample_bytes,
                               sample_bytes);
        reader.read(order[static_cast<std::size_t>(first + row)], plan.size, target);
        progress.add(1);
      }
    });
    writer.write_chunk(chunk, std::as_bytes(std::span(
                                  buffer.get(), static_cast<std::size_t>(rows) * sample_bytes)));
    buffers.give_back(std::move(buffer));
  };

  // Without this, TBB starts no more threads than there are CPUs, whatever the arena asks for.
  const tbb::global_control parallelism(tbb::global_control::max_allowed_parallelism,
                                        static_cast<std::size_t>(plan.threads));
  tbb::task_arena arena(plan.threads);
  arena.execute([&] {
    std::int64_t next = 0;
    tbb::parallel_pipeline(
        static_cast<std::size_t>(plan.chunks_in_flight),
        tbb::make_filter<void, std::int64_t>(tbb::filter_mode::serial_in_order,
                                             [&](tbb::flow_control& control) -> std::int64_t {
                                               if (next == plan.num_chunks) control.stop();
                                               return next++;
                                             }) &
            tbb::make_filter<std::int64_t, void>(tbb::filter_mode::parallel, pack_chunk));
  });

  PixelStatistics total(plan.channels, options.picture.layout);
  for (const PictureReader& reader : readers) total.merge(reader.statistics());
  return total;
}

}  // namespace

PackPlan plan_pack(const Split& split, const PackOptions& options) {
  PackPlan plan;
  plan.num_samples = num_pictures(split.pictures);
  const auto fixed = PictureTransform(options.picture).fixed_size();
  plan.size = fixed ? *fixed : PictureReader(split, options).output_size(0);
  plan.channels = options.picture.channels();
  const std::int64_t sample_bytes = plan.size.pixels() * plan.channels;
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
  // One chunk a thread, so that none waits for another's last row, and one being written; fewer if
  // large.
  plan.chunks_in_flight = std::min<std::int64_t>(
      plan.num_chunks,
      std::clamp<std::int64_t>(kMaxBufferBytes / plan.chunk_bytes, 2, plan.threads + 1));
  return plan;
}

std::vector<std::int64_t> count_classes(const Split& split,
                                        const std::vector<std::string>& class_names) {
  const chunkio::FieldData* field = find_field(split, "labels");
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
                const std::string& path, const PackOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  // Pictures are decoded in parallel; threads inside one would only get in the way.
  cv::setNumThreads(1);
  const std::vector<std::int64_t> order = options.shuffled
                                              ? shuffled_order(plan.num_samples, options.seed)
                                              : source_order(plan.num_samples);
  chunkio::DatasetWriter writer(path, make_spec(listing, split, plan, order, options),
                                options.writer);
  PackResult result;
  {
    Progress progress(split.name.empty() ? "packing" : "packing " + split.name, "images",
                      plan.num_samples, options.quiet);
    const PixelStatistics pixels = pack_chunks(split, plan, order, options, writer, progress);
    result.statistics = {pixels.result(), count_classes(split, listing.class_names)};
  }
  StopSignal::check();
  writer.set_statistics(result.statistics);
  writer.close();
  result.path = path;
  result.file_bytes = static_cast<std::int64_t>(std::filesystem::file_size(path));
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return result;
}

}  // namespace h5pack
