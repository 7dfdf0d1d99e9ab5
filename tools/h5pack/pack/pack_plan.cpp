#include "h5pack/pack/pack_plan.hpp"

#include <algorithm>

#include <tbb/info.h>

#include <chunkio/chunk_layout.hpp>
#include <chunkio/error.hpp>

#include "cli/stop_signal.hpp"
#include "h5pack/image/transform.hpp"
#include "h5pack/pack/chunk_write_thread.hpp"
#include "h5pack/pack/image_reader.hpp"

namespace h5pack {

namespace {

using chunkio::Error;
using chunkio::ErrorCode;

/// Chunk buffers may take this much, unless the fewest that it takes need more.
constexpr std::int64_t kMaxBufferBytes = std::int64_t{1} << 30;
/// What may wait to be written: enough to go on decoding while the disk is waited for.
constexpr std::int64_t kQueueBytes = std::int64_t{32} << 20;
constexpr std::int64_t kMaxQueueChunks = 64;

/// The size of all samples: as stored rows or the options say, else that of the first image; if
/// others may be skipped, of the first that can be opened. \throws Error as
/// plan_pack(); cancelled.
SampleSize find_sample_size(const Split& split, const PackOptions& options) {
  const auto fixed = ImageTransform(options.image).fixed_size();
  const Images& images = *split.images;
  if (const auto stored = images.stored_size(fixed)) return {*stored, 0};
  if (fixed) return {*fixed};
  ImageReader reader(images, options.image);
  for (std::int64_t row = 0;; ++row) {
    cli::StopSignal::check();
    try {
      return {reader.output_size(row), row};
    } catch (const Error& error) {
      const bool another = options.on_error == OnError::skip && is_of_one_image(error.code());
      if (!another || row + 1 == images.count()) throw;
    }
  }
}

/// Which of all encoded images go to the file. A shard has whole row groups of a loader, as far as
/// that is known from the mean size of the source files, so that all together are delivered in the
/// order of one file; of fewer groups than shards, any images.
/// \throws Error invalid_argument if there are more shards than images.
chunkio::RowRange encoded_places(const PackOptions& options, std::int64_t num_images,
                                 std::int64_t mean_bytes) {
  if (!options.shard) return {0, num_images};
  if (options.shard->count > num_images) {
    throw Error(ErrorCode::invalid_argument,
                std::to_string(num_images) + " images are too few for " +
                    std::to_string(options.shard->count) + " shards; use at most " +
                    std::to_string(num_images) + " shards");
  }
  const std::int64_t group =
      std::clamp<std::int64_t>(chunkio::kDefaultChunkBytes / mean_bytes, 1, num_images);
  const std::int64_t num_groups = (num_images + group - 1) / group;
  return shard_places(*options.shard, num_images, options.shard->count <= num_groups ? group : 1);
}

/// \throws Error invalid_argument: an option that only raw images have.
PackPlan plan_encoded(const Split& split, const PackOptions& options) {
  const ImageOptions& image = options.image;
  const auto refuse = [](bool given, const std::string& option, const std::string& why) {
    if (given) {
      throw Error(ErrorCode::invalid_argument,
                  option + " is for raw images: " + why + "; leave it out with --store encoded");
    }
  };
  const std::string whole = "encoded ones are kept whole, and cut when they are read";
  refuse(image.resize.has_value(), "--resize", whole);
  refuse(image.center_crop.has_value(), "--center-crop", whole);
  refuse(image.pad.has_value(), "--pad", whole);
  refuse(image.color == ColorMode::gray, "--channels gray", "encoded ones are kept as they are");
  refuse(image.layout == chunkio::Layout::nchw, "--out-layout nchw",
         "encoded ones are decoded to nhwc");
  const std::string one_run = "encoded ones lie in one run";
  refuse(options.writer.chunk_samples > 0, "--chunk", one_run);
  refuse(options.writer.chunk_bytes != chunkio::kDefaultChunkBytes, "--chunk-bytes", one_run);
  refuse(image.interpolation != Interpolation::area, "--interpolation",
         "--max-side averages pixels");
  PackPlan plan;
  plan.store = Store::encoded;
  plan.total_samples = split.images->count();
  plan.channels = 3;
  std::int64_t bytes = split.images->stored_bytes();
  for (const cli::FileStamp& stamp : split.images->files().stamps) {
    bytes += std::max<std::int64_t>(stamp.size, 0);
  }
  const std::int64_t mean = std::max<std::int64_t>(bytes / plan.total_samples, 1);
  const chunkio::RowRange places = encoded_places(options, plan.total_samples, mean);
  plan.first_place = places.begin;
  plan.num_samples = places.end - places.begin;
  plan.file_bytes = options.shard ? mean * plan.num_samples : bytes;
  plan.threads = options.threads > 0 ? options.threads : tbb::info::default_concurrency();
  return plan;
}

}  // namespace

PackPlan plan_pack(const Split& split, const PackOptions& options) {
  if (options.store == Store::encoded) return plan_encoded(split, options);
  if (options.limit.max_side > 0) {
    throw Error(ErrorCode::invalid_argument,
                "--max-side is for encoded images; add --store encoded, or use --resize");
  }
  PackPlan plan;
  plan.total_samples = split.images->count();
  const SampleSize sample = find_sample_size(split, options);
  plan.size = sample.size;
  plan.size_row = sample.row;
  plan.channels = options.image.channels();
  const std::int64_t sample_bytes = plan.sample_bytes();
  const std::int64_t wanted = options.writer.chunk_samples;
  plan.chunk_samples = wanted > 0 ? std::min(wanted, plan.total_samples)
                                  : chunkio::choose_chunk_samples(sample_bytes, plan.total_samples,
                                                                  options.writer.chunk_bytes);
  const chunkio::RowRange places =
      shard_places(options.shard.value_or(Shard()), plan.total_samples, plan.chunk_samples);
  plan.first_place = places.begin;
  plan.num_samples = places.end - places.begin;
  // Where the last shard is one short chunk, HDF5 has no chunks longer than the file.
  plan.chunk_samples = std::min(plan.chunk_samples, plan.num_samples);
  // HDF5 cannot store chunks of 4 GiB; also keeps the product below in range.
  if (plan.chunk_samples > ((std::int64_t{1} << 32) - 1) / sample_bytes) {
    throw Error(ErrorCode::invalid_argument,
                "a chunk of " + std::to_string(plan.chunk_samples) + " images of " +
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
    throw Error(ErrorCode::out_of_resources, "the images would take more than 2^62 bytes");
  }
  plan.file_bytes = plan.num_chunks * plan.chunk_bytes + plan.num_samples * row_bytes;
  plan.threads = options.threads > 0 ? options.threads : tbb::info::default_concurrency();
  plan.queued_chunks = std::clamp<std::int64_t>(kQueueBytes / plan.chunk_bytes, 1, kMaxQueueChunks);
  // Those that wait, one that is being filled up, and those being written.
  const std::int64_t others = plan.queued_chunks + 1 + ChunkWriteThread::kThreads;
  // One chunk a thread, so that none waits for another's last row, and one more; fewer if large.
  plan.chunks_in_flight = std::min<std::int64_t>(
      plan.num_chunks,
      std::clamp<std::int64_t>(kMaxBufferBytes / plan.chunk_bytes - others, 1, plan.threads + 1));
  plan.buffers = std::min(plan.num_chunks, plan.chunks_in_flight + others);
  return plan;
}

std::optional<chunkio::ShardInfo> shard_info(const PackPlan& plan, const PackOptions& options) {
  if (!options.shard) return std::nullopt;
  return chunkio::ShardInfo{.index = options.shard->index,
                            .count = options.shard->count,
                            .first_row = plan.first_place,
                            .total_rows = plan.total_samples,
                            .set = options.shard_set};
}

}  // namespace h5pack
