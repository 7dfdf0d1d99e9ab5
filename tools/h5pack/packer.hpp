/// Packs one split into one file.
///
/// Data flow: Split -> pack order -> blocks claimed in order -> pictures of a block decoded in
/// parallel, straight into its buffer -> ChunkAssembler, which closes gaps -> ChunkWriteThread ->
/// DatasetWriter. Memory is bounded by the chunks in flight.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <chunkio/dataset_writer.hpp>

#include "misnamed_pictures.hpp"
#include "picture.hpp"
#include "shard.hpp"
#include "skipped_picture.hpp"
#include "sources/listing.hpp"

namespace h5pack {

struct PackOptions {
  // Behaviour: what the file will hold.

  PictureOptions picture;
  chunkio::WriterOptions writer;
  /// Shuffle the samples once (see shuffled_order()); otherwise they stay in source order.
  bool shuffled = true;
  std::uint64_t seed = 0;
  /// The part of the samples that the file holds; absent: all.
  std::optional<Shard> shard = {};
  /// Equal for all shards of one dataset (chunkio::ShardInfo).
  std::string shard_set = {};
  /// Whether the size that all pictures are to have may come from another than the first one.
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
  std::int64_t num_samples = 0;
  std::int64_t first_place = 0;    ///< In pack order: of a shard.
  std::int64_t total_samples = 0;  ///< Of all shards.
  PictureSize size;
  std::int64_t size_row = -1;  ///< The source row that gives `size`; -1: the options do.
  std::int64_t channels = 0;
  std::int64_t chunk_samples = 0;
  std::int64_t num_chunks = 0;
  std::int64_t chunk_bytes = 0;
  /// Estimated: pictures and fields, without the few KiB of structure.
  std::int64_t file_bytes = 0;
  int threads = 0;
  std::int64_t chunks_in_flight = 0;  ///< That are decoded at a time.
  std::int64_t queued_chunks = 0;     ///< That may wait to be written.
  std::int64_t buffers = 0;           ///< Of a chunk each, at most.

  [[nodiscard]] std::int64_t sample_bytes() const noexcept { return size.pixels() * channels; }
  [[nodiscard]] std::int64_t memory_bytes() const noexcept { return buffers * chunk_bytes; }
};

/// Computes the plan. Opens the first picture, the first that can be opened if others may be
/// skipped, unless the options settle the size. Blocks on I/O.
/// A shard's plan depends on the source and the options alone, so all shards fit together.
/// \throws Error invalid_argument (options contradict each other, more shards than chunks), and as
///         PictureDecoder::open().
[[nodiscard]] PackPlan plan_pack(const Split& split, const PackOptions& options);

struct PackResult {
  std::string path;
  std::int64_t file_bytes = 0;
  std::int64_t num_samples = 0;  ///< That the file holds.
  std::int64_t num_chunks = 0;
  std::int64_t num_resumed = 0;              ///< Samples of these that an earlier run packed.
  std::vector<SkippedPicture> skipped = {};  ///< In pack order. Found = packed + skipped.
  std::optional<MisnamedPictures::Summary> misnamed = {};  ///< Of those packed now.
  chunkio::DatasetStatistics statistics;
  double seconds = 0;
  double read_back_seconds = 0;  ///< Of these, those that were only spent on reading it back.
};

/// Samples of each class: `labels` counted if they are one int64 a sample; else empty. Labels
/// without class names are counted from 0 to the largest, if none is negative and there are at most
/// 65,536 of them.
[[nodiscard]] std::vector<std::int64_t> count_classes(std::span<const chunkio::FieldData> fields,
                                                      const std::vector<std::string>& class_names);

/// Packs. Blocks until the file is published; polls StopSignal for each picture.
///
/// Besides the split's fields the file gets `source_index` int64 [N]: row i of everything is source
/// row source_index[i]. The result does not depend on `threads`, nor on how often it was resumed.
///
/// \param budget  decides about pictures that cannot be packed. Those that are borne with are left
///                out of everything.
/// \throws Error as ErrorBudget::spend() for the first such picture in pack order that is one too
///         many: corrupt_data, not_found, io_failed, refused_by_policy, unsupported (also pictures
///         of different sizes: two are named); corrupt_data if nothing is left; cancelled; and as
///         DatasetWriter, which also says what is left behind. The message says so if another run
///         can resume.
PackResult pack(const Listing& listing, const Split& split, const PackPlan& plan,
                const std::string& path, const PackOptions& options, ErrorBudget& budget);

}  // namespace h5pack
