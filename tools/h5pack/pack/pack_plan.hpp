/// The options of packing a split, and the plan: sizes, chunks, threads and memory.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include <chunkio/dataset_writer.hpp>

#include "h5pack/image/image.hpp"
#include "h5pack/image/jpeg_limiter.hpp"
#include "h5pack/pack/shard.hpp"
#include "h5pack/sources/listing.hpp"
#include "h5pack/sources/skipped_image.hpp"

namespace h5pack {

/// How images are stored.
enum class Store : std::uint8_t {
  raw,      ///< As pixels, all of one size.
  encoded,  ///< As their files have them, each in its own size; decoded while reading.
};

struct PackOptions {
  // Behaviour: what the file will hold.

  Store store = Store::raw;
  SizeLimit limit = {};  ///< Of encoded images.
  ImageOptions image;
  /// Its statistics are computed here, and noted with each chunk.
  chunkio::WriterOptions writer = {.statistics = false};
  /// Shuffle the samples once (see shuffled_order()); otherwise they stay in source order.
  bool shuffled = true;
  std::uint64_t seed = 0;
  /// The part of the samples that the file holds; absent: all.
  std::optional<Shard> shard = {};
  /// Equal for all shards of one dataset (chunkio::ShardInfo).
  std::string shard_set = {};
  /// Called with what was skipped when all else is done; a failure leaves what can be resumed.
  std::function<void(const std::vector<SkippedImage>&)> before_publishing = {};
  /// Whether the size that all images are to have may come from another than the first one.
  OnError on_error = OnError::fail;
  /// Stored in the file as it is.
  std::string options_json = "{}";

  // Performance and talk: never change the file.

  /// Decoding threads; 0 (default): the CPUs this process may use.
  int threads = 0;
  /// No progress and no notes on stderr.
  bool quiet = false;
};

/// What packing a split will give and cost.
struct PackPlan {
  Store store = Store::raw;  ///< Of encoded images there are no sizes, chunks and buffers.
  std::int64_t num_samples = 0;
  std::int64_t first_place = 0;    ///< In pack order: of a shard.
  std::int64_t total_samples = 0;  ///< Of all shards.
  ImageSize size;
  std::int64_t size_row = -1;  ///< The source row that gives `size`; -1: the options do.
  std::int64_t channels = 0;
  std::int64_t chunk_samples = 0;
  std::int64_t num_chunks = 0;
  std::int64_t chunk_bytes = 0;
  /// Estimated: images and fields, without the few KiB of structure. Of encoded images with a size
  /// limit it is the most.
  std::int64_t file_bytes = 0;
  int threads = 0;
  std::int64_t chunks_in_flight = 0;  ///< That are decoded at a time.
  std::int64_t queued_chunks = 0;     ///< That may wait to be written.
  std::int64_t buffers = 0;           ///< Of a chunk each, at most.

  [[nodiscard]] std::int64_t sample_bytes() const noexcept { return size.pixels() * channels; }
  [[nodiscard]] std::int64_t memory_bytes() const noexcept { return buffers * chunk_bytes; }
};

/// Computes the plan. Of raw images it opens the first image, the first that can be opened if
/// others may be skipped, unless the options settle the size. Blocks on I/O. A shard's plan depends
/// on the source and the options alone, so all shards fit together. \throws Error invalid_argument
/// (options contradict each other, more shards than chunks), and as
///         ImageDecoder::open().
[[nodiscard]] PackPlan plan_pack(const Split& split, const PackOptions& options);

/// What the file says about the shard that it is; absent if it is none.
[[nodiscard]] std::optional<chunkio::ShardInfo> shard_info(const PackPlan& plan,
                                                           const PackOptions& options);

}  // namespace h5pack
