/// Packs one split into one file.
///
/// Data flow: Split -> pack order -> chunks claimed in order -> rows of a chunk decoded in
/// parallel, straight into the chunk's buffer -> DatasetWriter::write_chunk. Memory is bounded by
/// the chunks in flight.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <chunkio/dataset_writer.hpp>

#include "picture.hpp"
#include "sources/listing.hpp"

namespace h5pack {

struct PackOptions {
  // Behaviour: what the file will hold.

  PictureOptions picture;
  chunkio::WriterOptions writer;
  /// Shuffle the samples once (see shuffled_order()); otherwise they stay in source order.
  bool shuffled = true;
  std::uint64_t seed = 0;
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
  PictureSize size;
  std::int64_t channels = 0;
  std::int64_t chunk_samples = 0;
  std::int64_t num_chunks = 0;
  std::int64_t chunk_bytes = 0;
  /// Estimated: pictures and fields, without the few KiB of structure.
  std::int64_t file_bytes = 0;
  int threads = 0;
  std::int64_t chunks_in_flight = 0;

  [[nodiscard]] std::int64_t memory_bytes() const noexcept {
    return chunks_in_flight * chunk_bytes;
  }
};

/// Computes the plan. Opens the first picture unless the options settle the size. Blocks on I/O.
/// \throws Error invalid_argument (options contradict each other), and as PictureDecoder::open().
[[nodiscard]] PackPlan plan_pack(const Split& split, const PackOptions& options);

struct PackResult {
  std::string path;
  std::int64_t file_bytes = 0;
  chunkio::DatasetStatistics statistics;
  double seconds = 0;
};

/// Samples of each class: `labels` counted if they are one int64 a sample; else empty. Labels
/// without class names are counted from 0 to the largest, if none is negative and there are at most
/// 65,536 of them.
[[nodiscard]] std::vector<std::int64_t> count_classes(const Split& split,
                                                      const std::vector<std::string>& class_names);

/// Packs. Blocks until the file is published; polls StopSignal for each picture.
///
/// Besides the split's fields the file gets `source_index` int64 [N]: row i of everything is source
/// row source_index[i]. The result does not depend on `threads`.
///
/// \throws Error of the first picture that fails (with its name): corrupt_data, not_found,
///         unsupported (also pictures of different sizes: two are named); cancelled; and as
///         DatasetWriter. Nothing is left behind.
PackResult pack(const Listing& listing, const Split& split, const PackPlan& plan,
                const std::string& path, const PackOptions& options);

}  // namespace h5pack
