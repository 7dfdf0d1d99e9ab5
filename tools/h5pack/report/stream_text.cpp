#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "cli/byte_size.hpp"
#include "cli/disk_options.hpp"
#include "cli/escape.hpp"
#include "cli/option_flags.hpp"
#include "cli/progress_text.hpp"
#include "cli/text_layout.hpp"
#include "h5pack/report/report.hpp"

namespace h5pack {
namespace {

constexpr std::size_t kColumns = 80;
constexpr std::size_t kTextColumns = kColumns - cli::kLabelColumns;
constexpr std::size_t kStageColumns = 10;
constexpr std::size_t kSkippedShown = 10;

std::string rate_text(const chunkio::DatasetInfo& info, const EpochReport& report) {
  const chunkio::LoaderStats& stats = report.stats;
  return cli::counted(stats.images, sample_noun(info)) + " in " + cli::decimals(report.seconds, 3) +
         " s: " + cli::format_count(std::llround(report.images_per_second())) + " " +
         samples_label(info) + "/s, " + cli::decimals(report.bytes_per_second() / 1e9, 3) + " GB/s";
}

std::string loads_text(const StreamSetup& setup, const EpochReport& report) {
  const chunkio::LoaderStats& stats = report.stats;
  return cli::format_count(stats.chunk_loads) + " (" +
         cli::decimals(report.loads_per_group(setup), 3) + " of each), hit rate " +
         cli::percent(stats.hit_rate(), 2) + ", read amplification " +
         cli::decimals(stats.read_amplification(), 3);
}

/// Two lines: seconds, and the share of all the workers' time.
std::string stages_text(const chunkio::LoaderStats& stats) {
  struct Stage {
    const char* name;
    double seconds;
  };
  const std::array stages{Stage{"plan", stats.plan_seconds},
                          Stage{"read", stats.read_seconds},
                          Stage{"decode", stats.decode_seconds},
                          Stage{"copy", stats.copy_seconds},
                          Stage{"input wait", stats.input_wait_seconds},
                          Stage{"output wait", stats.output_wait_seconds}};
  double all = 0;
  for (const Stage& stage : stages) all += stage.seconds;
  std::string names;
  std::string seconds;
  std::string shares;
  for (const Stage& stage : stages) {
    const std::size_t columns = std::max(kStageColumns, std::string(stage.name).size() + 2);
    names += cli::right_aligned(stage.name, columns);
    seconds += cli::right_aligned(cli::decimals(stage.seconds, 3), columns);
    shares += cli::right_aligned(all > 0 ? cli::percent(stage.seconds / all, 1) : "-", columns);
  }
  return names + "\n" + seconds + "\n" + shares;
}

std::string quality_text(const ShuffleQuality& quality) {
  std::string text;
  if (quality.label_entropy && quality.global_label_entropy) {
    text += "labels of a batch: " + cli::decimals(*quality.label_entropy, 3) +
            " bits; of a global shuffle: " + cli::decimals(*quality.global_label_entropy, 3);
    if (const std::optional<double> ratio = quality.entropy_ratio()) {
      text += " (" + cli::decimals(*ratio, 3) + " of it)";
    }
  } else {
    text += "no labels that stand for classes, so no label entropy";
  }
  text = cli::wrap(text, kTextColumns) + "\n";
  text +=
      quality.pair_rate
          ? cli::wrap("pairs of a batch from one chunk: " + cli::percent(*quality.pair_rate, 3) +
                          "; of a global shuffle: " + cli::percent(quality.global_pair_rate, 3),
                      kTextColumns)
          : std::string("no batch has a pair of samples");
  if (quality.sorted_by_class) {
    text += "\n" + cli::wrap(
                       "warning: the file is sorted by class, so batches see the classes of few "
                       "chunks at a time: pack it with --order shuffled, or raise --window-bytes",
                       kTextColumns);
  }
  return text;
}

std::string source_text(const StreamSetup& setup) {
  return std::string(to_string(setup.source)) + " (" + cli::escape(setup.source_reason) + ")";
}

/// Nothing of a run that was too short to judge, as the advice says.
std::string bottleneck_text(const chunkio::LoaderStats& stats) {
  const chunkio::BottleneckReport found = stats.bottleneck();
  return found.too_short ? "" : "; bottleneck: " + std::string(to_string(found.bottleneck));
}

std::string block(const std::string& label, const StreamSetup& setup, const EpochReport& report,
                  bool colour) {
  const chunkio::LoaderStats& stats = report.stats;
  const bool several = setup.options.ranks.world_size > 1;
  std::string text =
      cli::labelled(label,
                    (several ? "rank " + std::to_string(setup.options.ranks.rank) + ": " : "") +
                        rate_text(setup.dataset, report),
                    colour);
  text += cli::labelled("  stall",
                        cli::decimals(stats.stall_seconds, 3) + " s, " +
                            cli::percent(report.stall_fraction(), 1) + " of the time" +
                            bottleneck_text(stats),
                        false);
  text += cli::labelled("  chunk loads", loads_text(setup, report), false);
  text += cli::labelled("  workers", stages_text(stats), false);
  if (stats.skipped_images > 0) {
    text += cli::labelled("  skipped",
                          cli::counted(stats.skipped_images, sample_noun(setup.dataset)), false);
  }
  if (report.shuffle) text += cli::labelled("  shuffle", quality_text(*report.shuffle), false);
  if (report.pixel_digest) {
    std::string digests =
        "order " + cli::hex(report.order_digest) + ", pixels " + cli::hex(*report.pixel_digest);
    for (const FieldDigest& field : report.field_digests) {
      digests += ", " + cli::escape(field.name) + " " + cli::hex(field.digest);
    }
    text += cli::labelled("  digests", cli::wrap(digests, kTextColumns), false);
  }
  return text;
}

std::string skipped_text(const std::vector<chunkio::SkippedRows>& skipped) {
  std::string text;
  for (std::size_t i = 0; i < std::min(skipped.size(), kSkippedShown); ++i) {
    const chunkio::SkippedRows& rows = skipped[i];
    const std::string range = rows.num_rows == 1
                                  ? "row " + std::to_string(rows.first_row)
                                  : "rows " + std::to_string(rows.first_row) + " to " +
                                        std::to_string(rows.first_row + rows.num_rows - 1);
    text += (i == 0 ? "" : "\n") + cli::wrap(range + ": " + cli::escape(rows.reason), kTextColumns);
  }
  if (skipped.size() > kSkippedShown) {
    text += "\nand " +
            cli::format_count(static_cast<std::int64_t>(skipped.size() - kSkippedShown)) +
            " more places (--json lists all)";
  }
  return text;
}

}  // namespace

std::string stream_head_text(const StreamSetup& setup, bool colour) {
  const chunkio::DatasetInfo& info = setup.dataset;
  const chunkio::LoaderOptions& options = setup.options;
  std::string samples = cli::escape(info.path) + ": " + samples_text(info);
  if (setup.num_samples != info.num_samples) {
    samples += ", " + cli::format_count(setup.num_samples) + " of them chosen,";
  }
  samples += " in " + cli::counted(setup.num_groups, "row group") + " of " +
             cli::format_count(setup.group_samples);
  std::string how =
      "source " + source_text(setup) + ", order " + std::string(to_string(options.order.mode));
  if (options.order.mode == chunkio::OrderMode::chunk_shuffled) {
    how += " in windows of " + cli::format_count(setup.window_groups);
  }
  how += ", batches of " + cli::format_count(options.batch_size) + ", " +
         cli::counted(options.io.num_threads, "thread") + ", " +
         cli::format_bytes(setup.memory_bytes) + " of memory";
  if (options.io.verify != chunkio::Verify::off) {
    how += ", verify " + std::string(to_string(options.io.verify));
  }
  if (options.memory.resident != chunkio::Resident::none) {
    how += ", resident " + std::string(to_string(options.memory.resident));
  }
  if (options.io.disk_limit) how += ", limited to " + cli::disk_text(*options.io.disk_limit);
  if (options.ranks.world_size > 1 || options.order.lanes > 1) {
    how += ", rank " + std::to_string(options.ranks.rank) + " of " +
           std::to_string(options.ranks.world_size) + ", " +
           cli::counted(options.order.lanes, "lane") + ", uneven " +
           std::string(to_string(options.order.uneven));
  }
  std::string text = cli::labelled(samples_label(info), cli::wrap(samples, kTextColumns), colour);
  if (!info.why_no_labels.empty()) {
    text += cli::labelled("labels", cli::wrap(cli::no_labels_text(info), kTextColumns), colour);
  }
  return text + cli::labelled("reading", cli::wrap(how, kTextColumns), colour) + "\n";
}

std::string epoch_text(const StreamSetup& setup, const EpochReport& report, bool colour) {
  return block("epoch " + std::to_string(report.epoch), setup, report, colour);
}

std::string stream_end_text(const StreamSetup& setup, const EpochReport& total,
                            const std::string& reason_at_first, bool colour) {
  std::string text;
  if (setup.num_epochs > 1) {
    text += block("all epochs", setup, total, colour);
    text +=
        cli::labelled("",
                      cli::wrap("An epoch begins with what was prefetched during the one before: "
                                "\"all epochs\" is the rate to quote.",
                                kTextColumns),
                      false);
  }
  if (setup.source_reason != reason_at_first) {
    text += cli::labelled("source", cli::wrap(source_text(setup), kTextColumns), colour);
  }
  const chunkio::BottleneckReport found = total.stats.bottleneck();
  if (!found.evidence.empty()) {
    const std::string advice = cli::with_flag(
        found.summary(), found.suggestions.empty() ? "" : found.suggestions.front().option);
    text += cli::labelled("advice", cli::wrap(advice, kTextColumns), colour);
  }
  if (!total.skipped.empty()) {
    text += cli::labelled("skipped", skipped_text(total.skipped), colour);
  }
  return text;
}

}  // namespace h5pack
