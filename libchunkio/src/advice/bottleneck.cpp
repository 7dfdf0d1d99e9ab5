#include "advice/bottleneck.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <utility>

#include "advice/prediction.hpp"
#include "advice/quantities.hpp"
#include "advice/suggestions.hpp"

namespace chunkio::advice {
namespace {

// With more of the workers' time than this spent on waiting for buffers, there is room to work
// ahead, and waiting comes from an uneven consumer.
constexpr double kMostlyWaiting = 0.5;
// What ends sooner says more of how it began than of what limits: buffers are touched for the first
// time, threads wake up.
constexpr double kLeastSeconds = 0.5;

std::string stall_evidence(const LoaderStats& stats) {
  return "The consumer waited " + percent(stats.stall_seconds / stats.seconds) + " of the time (" +
         number("%.3g", stats.stall_seconds) + " of " + number("%.3g", stats.seconds) + " s).";
}

std::string worker_evidence(const LoaderStats& stats) {
  const WorkerTime time(stats);
  return "Of the time of its " + std::to_string(stats.num_threads) +
         (stats.num_threads == 1 ? " worker, " : " workers, ") +
         percent(time.share(stats.read_seconds)) + " went into waiting for storage, " +
         percent(time.share(stats.decode_seconds)) + " into " +
         (stats.facts.filtered ? "decoding, " : "checking digests, ") +
         percent(time.share(stats.copy_seconds)) + " into copying, " +
         percent(time.share(stats.plan_seconds)) + " into the order, " +
         percent(time.share(stats.output_wait_seconds)) + " into waiting for a free buffer.";
}

std::string bottleneck_evidence(Bottleneck bottleneck, const LoaderStats& stats,
                                const Prediction& prediction) {
  const double delivered = static_cast<double>(stats.bytes_delivered) / stats.seconds;
  switch (bottleneck) {
    case Bottleneck::disk: {
      const double read = static_cast<double>(stats.bytes_read) / stats.seconds;
      std::string text = stats.facts.source == SourceKind::hdf5
                             ? "Reading through libhdf5 limits: it delivered "
                             : "Storage limits: it delivered ";
      text += byte_rate(read);
      if (std::isfinite(prediction.rates().wanted)) {
        text += ", and the consumer would take " +
                byte_rate(read * prediction.rates().wanted / prediction.rates().now);
      }
      return text + ".";
    }
    case Bottleneck::decode:
      return (stats.facts.filtered ? "Decoding limits: each worker gains "
                                   : "Checking digests limits: each worker checks ") +
             byte_rate(prediction.observed().rates.decode_bytes_per_second) + " of pixels.";
    case Bottleneck::copy:
      if (stats.facts.source == SourceKind::hdf5) {
        return "Copying limits, behind libhdf5, which works on one thread at a time.";
      }
      return "Copying limits: memory took " + byte_rate(delivered) + ".";
    case Bottleneck::plan:
      return stats.facts.order == OrderMode::random
                 ? "Computing the order limits, which costs most if it is random."
                 : "Computing the order limits, as it can with images of a few bytes: no option "
                   "makes it faster.";
    default:
      return "Batches are asked for in bursts: workers waited " +
             percent(WorkerTime(stats).share(stats.output_wait_seconds)) +
             " of their time for a free buffer, and the consumer for batches all the same.";
  }
}

/// \pre Batches were delivered, and it took time.
BottleneckReport report_on_run(const LoaderStats& stats,
                               const std::optional<MachineRates>& measured) {
  BottleneckReport found{.bottleneck = Bottleneck::consumer,
                         .stall = stats.stall_seconds / stats.seconds};
  if (found.stall < kSmallStall) {
    found.evidence = {"The loader is fast enough (its consumer waited " + percent(found.stall) +
                      " of the time): nothing to gain here."};
    return found;
  }

  using Stage = std::pair<Bottleneck, double>;
  const std::array stages{
      Stage{Bottleneck::disk, stats.read_seconds}, Stage{Bottleneck::decode, stats.decode_seconds},
      Stage{Bottleneck::copy, stats.copy_seconds}, Stage{Bottleneck::plan, stats.plan_seconds}};
  found.bottleneck = std::ranges::max_element(stages, {}, &Stage::second)->first;
  if (stats.output_wait_seconds > kMostlyWaiting * WorkerTime(stats).all) {
    found.bottleneck = Bottleneck::buffers;
  }
  if (stats.images == 0) {
    // All of it was skipped as damaged.
    found.evidence = {stall_evidence(stats), worker_evidence(stats)};
    return found;
  }
  const Prediction prediction(stats, measured);
  found.evidence = {bottleneck_evidence(found.bottleneck, stats, prediction), stall_evidence(stats),
                    worker_evidence(stats)};
  found.suggestions = find_suggestions(found.bottleneck, stats, prediction);
  return found;
}

}  // namespace

BottleneckReport find_bottleneck(const LoaderStats& stats,
                                 const std::optional<MachineRates>& measured) {
  if (stats.batches == 0 || !(stats.seconds > 0)) return {};
  BottleneckReport found = report_on_run(stats, measured);
  say_if_too_short(found, stats.seconds);
  return found;
}

void say_if_too_short(BottleneckReport& report, double seconds) {
  report.too_short = seconds < kLeastSeconds;
  if (!report.too_short) return;
  report.evidence.insert(
      report.evidence.begin(),
      "This took " + number("%.2g", seconds) +
          " s, too short to judge what limits: run more epochs, or look at more data.");
}

}  // namespace chunkio::advice

namespace chunkio {

BottleneckReport LoaderStats::bottleneck() const { return advice::find_bottleneck(*this); }

std::string BottleneckReport::summary() const {
  if (evidence.empty()) return {};
  if (suggestions.empty() || too_short) return evidence.front();
  return evidence.front() + " " + suggestions.front().text;
}

}  // namespace chunkio
