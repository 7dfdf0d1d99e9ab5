#include "h5pack/pack/source_comparison.hpp"

#include <algorithm>
#include <cstddef>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <variant>

#include <tbb/enumerable_thread_specific.h>
#include <tbb/parallel_for.h>

#include <chunkio/error.hpp>
#include <chunkio/loader.hpp>

#include "cli/progress.hpp"
#include "cli/quote.hpp"
#include "cli/stop_signal.hpp"
#include "h5pack/dataset/copy_loader.hpp"
#include "h5pack/pack/image_reader.hpp"
#include "h5pack/pack/row_order.hpp"

namespace h5pack {
namespace {

using chunkio::Error;
using chunkio::ErrorCode;

class Comparison {
 public:
  Comparison(const chunkio::DatasetInfo& info, const SourceProvenance& source)
      : info_(info), source_(source), options_(recorded_image_options(info)), readers_([this] {
          return Reader{ImageReader(*source_.split().images, options_),
                        std::vector<std::uint8_t>(static_cast<std::size_t>(info_.sample_bytes()))};
        }) {
    if (options_.channels() == info.channels) return;
    throw Error(ErrorCode::unsupported,
                cli::quote(info.path) + " has " + std::to_string(info.channels) +
                    " channels, and its options give " + std::to_string(options_.channels()));
  }

  /// \param stored  the pixels of `row`. Thread-safe.
  void compare(std::int64_t row, std::int64_t source_row, std::span<const std::byte> stored) {
    SourceDifference difference{.row = row, .source_row = source_row};
    if (source_row < 0 || source_row >= source_.num_images()) {
      difference.reason = "the source has only " + std::to_string(source_.num_images()) +
                          " images, and none with this number";
    } else {
      difference.file = source_.name(source_row).value_or("");
      difference.reason = why_different(source_row, stored);
    }
    if (difference.reason.empty()) return;
    const std::lock_guard lock(mutex_);
    different_.push_back(std::move(difference));
  }

  std::vector<SourceDifference> take() {
    std::sort(different_.begin(), different_.end(),
              [](const auto& a, const auto& b) { return a.row < b.row; });
    return std::move(different_);
  }

 private:
  struct Reader {
    ImageReader reader;
    std::vector<std::uint8_t> pixels;
  };

  std::string why_different(std::int64_t source_row, std::span<const std::byte> stored) {
    auto& [reader, pixels] = readers_.local();
    const SampleSize expected{.size = {.height = info_.height, .width = info_.width}};
    const auto outcome = reader.read(source_row, 0, expected, pixels);
    if (const auto* skipped = std::get_if<SkippedImage>(&outcome)) return skipped->reason;
    const std::span<const std::byte> decoded = std::as_bytes(std::span(pixels));
    std::size_t different = 0;
    for (std::size_t i = 0; i < stored.size(); ++i) different += stored[i] != decoded[i] ? 1U : 0U;
    return different == 0 ? ""
                          : std::to_string(different) + " of " + std::to_string(stored.size()) +
                                " bytes differ";
  }

  const chunkio::DatasetInfo& info_;
  const SourceProvenance& source_;
  ImageOptions options_;
  tbb::enumerable_thread_specific<Reader> readers_;
  std::mutex mutex_;  ///< Guards different_.
  std::vector<SourceDifference> different_;
};

/// Absent: all.
std::optional<chunkio::RowSelection> choose(std::int64_t num_samples,
                                            const ComparisonOptions& options) {
  if (options.sample < 0 || options.sample >= num_samples) return std::nullopt;
  std::vector<std::int64_t> rows = shuffled_order(num_samples, options.seed);
  rows.resize(static_cast<std::size_t>(options.sample));
  return chunkio::RowSelection::of(rows);
}

}  // namespace

SourceComparison compare_with_source(const chunkio::Dataset& dataset,
                                     const SourceProvenance& source,
                                     const ComparisonOptions& options, bool quiet) {
  const chunkio::DatasetInfo& info = dataset.info();
  if (source.is_appended()) {
    throw Error(ErrorCode::unsupported,
                cli::quote(info.path) +
                    " was made of several sources (h5pack append); leave out --against");
  }
  const std::vector<std::int64_t> sources = source_rows(dataset, {0, dataset.size()});
  if (sources.empty()) {
    throw Error(ErrorCode::unsupported,
                cli::quote(info.path) + " has no source_index; leave out --against");
  }
  Comparison comparison(info, source);
  constexpr std::int64_t kBatchBytes = std::int64_t{16} << 20;
  const auto sample_bytes = static_cast<std::size_t>(info.sample_bytes());
  chunkio::Loader loader =
      copy_loader(dataset, {.batch_rows = std::clamp<std::int64_t>(
                                kBatchBytes / info.sample_bytes(), 1, info.num_samples),
                            .rows = choose(info.num_samples, options),
                            .check_digests = false});
  SourceComparison result{.compared = loader.samples_per_epoch()};
  cli::Progress progress("comparing with the source", "images", result.compared, quiet);
  for (const chunkio::Batch& batch : loader.epoch(0)) {
    const std::span<const std::int64_t> rows = batch.sample_ids();
    const std::byte* const pixels = batch.images().data();
    tbb::parallel_for(std::size_t{0}, rows.size(), [&](std::size_t i) {
      cli::StopSignal::check();
      comparison.compare(rows[i], sources[static_cast<std::size_t>(rows[i])],
                         {pixels + i * sample_bytes, sample_bytes});
      progress.add(1);
    });
  }
  result.different = comparison.take();
  return result;
}

}  // namespace h5pack
