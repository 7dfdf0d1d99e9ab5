/// Packs one split into one file.
///
/// Data flow: Split -> pack order -> blocks claimed in order -> images of a block decoded in
/// parallel, straight into its buffer -> ChunkAssembler, which closes gaps -> ChunkWriteThread ->
/// DatasetWriter. Memory is bounded by the chunks in flight.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <chunkio/dataset_writer.hpp>

#include "h5pack/image/image_file.hpp"
#include "h5pack/pack/pack_plan.hpp"
#include "h5pack/sources/listing.hpp"
#include "h5pack/sources/skipped_image.hpp"

namespace h5pack {

/// Images whose contents are not what the file extension says.
struct MisnamedImages {
  std::int64_t count = 0;
  std::int64_t first_row = 0;  ///< The least source row of them.
  ImageFormat first_format = ImageFormat::jpeg;
};

/// Counts one more. \param row  in source order.
void count_misnamed(std::optional<MisnamedImages>& misnamed, std::int64_t row, ImageFormat format);

struct PackResult {
  std::string path;
  std::int64_t file_bytes = 0;
  std::int64_t num_samples = 0;  ///< That the file holds.
  std::int64_t num_chunks = 0;
  std::int64_t num_resumed = 0;                 ///< Samples of these that an earlier run packed.
  std::int64_t num_limited = 0;                 ///< Of these, made smaller by --max-side.
  std::vector<SkippedImage> skipped = {};       ///< In pack order. Found = packed + skipped.
  std::optional<MisnamedImages> misnamed = {};  ///< Of those packed now.
  chunkio::DatasetStatistics statistics;
  double seconds = 0;
  double read_back_seconds = 0;  ///< Of these, those that were only spent on reading it back.
};

/// Packs. Blocks until the file is published; polls StopSignal for each image.
///
/// Besides the split's fields the file gets `source_index` int64 [N]: row i of everything is source
/// row source_index[i]. The result does not depend on `threads`, nor on how often it was resumed.
///
/// \param budget  decides about images that cannot be packed. Those that it allows are skipped
///                everywhere.
/// \throws Error as ErrorBudget::spend() for the first such image in pack order that is one too
///         many: corrupt_data, not_found, io_failed, refused_by_policy, unsupported (also images
///         of different sizes: two are named); corrupt_data if nothing is left; cancelled; and as
///         DatasetWriter, which also says what is left behind. The message says so if another run
///         can resume.
PackResult pack(const Listing& listing, const Split& split, const PackPlan& plan,
                const std::string& path, const PackOptions& options, ErrorBudget& budget);

}  // namespace h5pack
