/// Writes rows of one dataset to a new file.
///
/// Data flow: rows in file order -> Loader -> batches that are chunks of the new file -> axis order
/// -> DatasetWriter. Rows in another order: window by window, as many chunks of the new file as fit
/// half the memory budget; their rows are read in file order and put to their places. Fields are
/// streamed past. What grows with the number of rows is a few 8-byte numbers a row: which rows, in
/// which order.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <chunkio/dataset.hpp>
#include <chunkio/dataset_writer.hpp>

#include "h5pack/image/image_file.hpp"
#include "h5pack/image/jpeg_encoder.hpp"

namespace h5pack {

/// How raw images become encoded ones.
struct Encoding {
  ImageFormat format = ImageFormat::png;  ///< PNG, which loses nothing, or JPEG.
  int quality = kDefaultJpegQuality;      ///< Of JPEG.
};

struct RepackOptions {
  // Behaviour: what the file will hold.

  /// Images that are read as pixels are stored encoded; absent: as pixels.
  std::optional<Encoding> encoding = {};

  /// Its statistics are computed here, and noted with each chunk.
  chunkio::WriterOptions writer = {.statistics = false};
  std::optional<chunkio::Layout> layout = {};  ///< Absent: as it was.
  std::string split = {};                      ///< Empty: as it was.
  std::string order = "source";                ///< "shuffled" or "source".
  std::uint64_t seed = 0;
  std::string options_json = "{}";
  /// Fields to carry along beside labels and source rows; absent: all.
  std::optional<std::vector<std::string>> fields = {};

  // Performance and talk: never change the file.

  /// 0 (default): the CPUs this process may use.
  int threads = 0;
  /// Bytes for images on their way; before that, an eighth of it for fields.
  std::int64_t memory_budget = std::int64_t{1} << 30;
  bool quiet = false;
};

struct RepackResult {
  std::string path = {};
  std::int64_t num_samples = 0;
  bool encoded = false;  ///< There are no chunks then.
  std::int64_t chunk_samples = 0;
  std::int64_t num_chunks = 0;
  std::int64_t chunk_bytes = 0;
  std::int64_t file_bytes = 0;
  std::int64_t num_resumed = 0;   ///< Samples of these that an earlier run wrote.
  bool planned = false;           ///< Nothing was written: --dry-run.
  bool at_most = false;           ///< What is planned: file_bytes, which may be far fewer.
  bool complete_already = false;  ///< There was nothing left to do.
  chunkio::ChunkFilter filter = {};
  chunkio::DatasetStatistics statistics = {};
  double seconds = 0;
  double read_back_seconds = 0;  ///< Of these, those that were only spent on reading it back.
};

/// The name of a field in the new file: its own, or with its type behind it where that name means
/// something else there (labels that are no whole numbers, a field beside the images called
/// images or sample_digests).
[[nodiscard]] std::string carried_name(const chunkio::DatasetInfo& info,
                                       const chunkio::FieldInfo& field);

/// What the new file will not have as the old one has it, one line each.
/// \throws chunkio::Error unsupported: what is called labels is none, and cannot be carried along
///         as a field; unless it is said what to carry.
[[nodiscard]] std::vector<std::string> notes_on_fields(const chunkio::DatasetInfo& info,
                                                       const RepackOptions& options);

/// Labels, source rows and fields of the rows, as streams from the dataset. Both must outlive them.
/// \throws chunkio::Error not_found: no such field.
[[nodiscard]] std::vector<chunkio::FieldData> carried_fields(const chunkio::Dataset& dataset,
                                                             const std::vector<std::int64_t>& rows,
                                                             const RepackOptions& options);

/// What is known of the sizes of all images, of so many of them: nothing, unless all had the same.
[[nodiscard]] std::optional<chunkio::SourceSizes> carried_source_sizes(
    const chunkio::DatasetInfo& info, std::int64_t num_samples);

/// The file that repack() would write, as far as that is known before: its shape, and the bytes of
/// images and fields, which a filter makes fewer. Reads no pixels and writes nothing.
/// \throws chunkio::Error as repack(), for options that contradict the dataset.
[[nodiscard]] RepackResult plan_repack(const chunkio::Dataset& dataset,
                                       const std::vector<std::int64_t>& rows,
                                       const std::string& path, const RepackOptions& options);

/// Writes the rows `rows` of `dataset`, in that order, to a new file. Blocks until it is published;
/// polls StopSignal.
///
/// Labels, class names, attribute names and fields are carried along. `source_index` is that of the
/// rows, if the file has it, else their number. Stored statistics are carried along if all rows are
/// there, else (images of 1 or 3 channels) computed again; source sizes are left out then, unless
/// there was only one.
///
/// \pre rows are distinct, inside the dataset, at least one.
/// \throws chunkio::Error cancelled; not_found (no such field), digest_mismatch and the like of
///         reading; and as DatasetWriter, which also says what is left behind. The message says so
///         if another run can resume.
RepackResult repack(const chunkio::Dataset& dataset, const std::vector<std::int64_t>& rows,
                    const std::string& path, const RepackOptions& options);

}  // namespace h5pack
