/// The results of the reporting commands, and their text and JSON.
///
/// Text is for people: file and class names come out escaped. JSON is one object a line, names as
/// in the text; bytes that are no UTF-8 become U+FFFD.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <chunkio/dataset.hpp>
#include <chunkio/loader.hpp>
#include <chunkio/tuning.hpp>
#include <chunkio/verify.hpp>

#include "h5pack/dataset/shuffle_quality.hpp"
#include "h5pack/pack/repacker.hpp"
#include "h5pack/pack/source_comparison.hpp"
#include "h5pack/tune/doctor_run.hpp"

namespace h5pack {

/// What stays the same over the epochs of one `h5pack stream`.
struct StreamSetup {
  chunkio::DatasetInfo dataset = {};
  chunkio::LoaderOptions options = {};  ///< As the loader has resolved them.
  chunkio::SourceKind source = chunkio::SourceKind::automatic;
  std::string source_reason = {};
  std::int64_t num_samples = 0;  ///< Chosen by rows and labels; of all ranks.
  std::int64_t num_groups = 0;   ///< Row groups an epoch visits: the chunks of a file packed here.
  std::int64_t group_samples = 0;  ///< Samples of a full one.
  std::int64_t window_groups = 0;
  std::int64_t memory_bytes = 0;
  std::int64_t num_epochs = 1;  ///< That this run goes through.
};

/// What was delivered of one field, in whatever order; see EpochReport::pixel_digest.
struct FieldDigest {
  std::string name = {};
  std::uint64_t digest = 0;
};

/// One epoch of `h5pack stream`, or what is left of it.
struct EpochReport {
  std::int64_t epoch = 0;
  /// Wall time from asking for the epoch until its last batch was released.
  double seconds = 0;
  chunkio::LoaderStats stats = {};
  /// Rows skipped, in this epoch and those before.
  std::vector<chunkio::SkippedRows> skipped = {};
  /// XXH3-64 of the delivered sample ids, as little-endian int64 in delivery order.
  std::uint64_t order_digest = 0;
  /// Sum mod 2^64 of XXH3-64(pixels of a sample, seed = its source id): tells whether the same
  /// images were delivered, in whatever order and to whichever rank. Taken in a pass of its own,
  /// outside `seconds`.
  std::optional<std::uint64_t> pixel_digest = {};
  /// The same of the labels, if there are any, and of the fields that were asked for.
  std::vector<FieldDigest> field_digests = {};
  /// Taken in a pass of its own, too.
  std::optional<ShuffleQuality> shuffle = {};

  [[nodiscard]] double images_per_second() const {
    return seconds > 0 ? static_cast<double>(stats.images) / seconds : 0;
  }
  [[nodiscard]] double bytes_per_second() const {
    return seconds > 0 ? static_cast<double>(stats.bytes_delivered) / seconds : 0;
  }
  /// Share of the time the consumer waited for a batch.
  [[nodiscard]] double stall_fraction() const {
    return seconds > 0 ? stats.stall_seconds / seconds : 0;
  }
  /// How often a row group was loaded, on average.
  [[nodiscard]] double loads_per_group(const StreamSetup& setup) const {
    const std::int64_t visits = setup.num_groups * epochs;
    return visits > 0 ? static_cast<double>(stats.chunk_loads) / static_cast<double>(visits) : 0;
  }
  /// That the figures are of.
  std::int64_t epochs = 1;
};

/// A chunk that `h5pack verify` found damaged, and what was in it.
struct DamageReport {
  chunkio::DamagedChunk chunk = {};
  std::vector<std::int64_t> source_rows = {};  ///< Of its damaged rows; empty if not known.
  std::vector<std::string> files = {};         ///< The same by name; empty if that is unknown.
  std::vector<std::string> classes = {};       ///< Of its damaged rows; empty without class names.
};

/// `h5pack verify`.
struct VerifyReport {
  chunkio::DatasetInfo dataset = {};
  std::string not_compared = {};  ///< Why no pixels were compared, as a clause; empty if they were.
  std::int64_t num_chunks = 0;    ///< Compared.
  std::int64_t bytes_read = 0;    ///< Stored bytes of images.
  double seconds = 0;             ///< Comparing them.
  std::vector<std::string> problems = {};       ///< Of the structure; one line each.
  std::vector<DamageReport> damaged = {};       ///< Ascending by chunk.
  std::optional<SourceComparison> source = {};  ///< With --against.
  std::string files_unknown = {};  ///< Why damaged chunks come without files; empty if they do not.

  [[nodiscard]] bool intact() const noexcept {
    return problems.empty() && damaged.empty() && (!source || source->different.empty());
  }
};

/// `h5pack export`.
struct ExportReport {
  std::string output = {};
  std::int64_t images = 0;
  std::vector<std::string> folders = {};  ///< Of classes.
  std::vector<std::string> left_out =
      {};  ///< Fields that are not in the table of samples, or of rows.
  std::vector<std::string> notes = {};  ///< What a person should know; one line each.
  double seconds = 0;
  // Of a sparse matrix.
  std::string matrix = {};  ///< Its file in the folder; empty: there were images.
  std::int64_t rows = 0, columns = 0, entries = 0;
};

/// `h5pack repack`.
struct RepackReport {
  std::string input = {};
  std::vector<std::string> notes = {};  ///< What is carried under another name, or left behind.
  std::vector<RepackResult> outputs = {};
};

/// "images", or "samples" of a file where other numbers lead.
std::string samples_label(const chunkio::DatasetInfo& info);
/// One of them.
std::string sample_noun(const chunkio::DatasetInfo& info);
/// "9,000 images of [32,32,3]", "9,000 samples of x, float32 [784]".
std::string samples_text(const chunkio::DatasetInfo& info);

std::string info_text(const chunkio::Inspection& report, bool colour);
std::string verify_text(const VerifyReport& report);
std::string verify_json(const VerifyReport& report);
std::string export_text(const ExportReport& report);
std::string export_json(const ExportReport& report);
std::string repack_text(const RepackReport& report);
std::string repack_json(const RepackReport& report);
/// Its text, like that of the stream below, has at most 80 columns.
std::string doctor_text(const DoctorReport& report, bool colour);
std::string doctor_json(const DoctorReport& report);

/// What is streamed, and how; before the first epoch.
std::string stream_head_text(const StreamSetup& setup, bool colour);
/// One epoch.
std::string epoch_text(const StreamSetup& setup, const EpochReport& report, bool colour);
std::string epoch_json(const StreamSetup& setup, const EpochReport& report);
/// After the last epoch: all of them together if they were several, the source if more is known of
/// it now, what would help, and what was skipped.
/// \param reason_at_first  for the source, before the first epoch.
std::string stream_end_text(const StreamSetup& setup, const EpochReport& total,
                            const std::string& reason_at_first, bool colour);

}  // namespace h5pack
