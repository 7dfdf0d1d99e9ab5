#include "advice/prediction.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace chunkio::advice {
namespace {

// A step that takes less trains nothing.
constexpr double kLeastStepSeconds = 1e-4;
// A share of the workers' time below this says nothing of the stage's rate.
constexpr double kLeastShare = 0.005;

/// What the consumer would take if it never had to wait; infinite if it does nothing but wait, as a
/// loop does that only counts batches.
double wanted_per_second(const LoaderStats& stats) {
  const double used = stats.seconds - stats.stall_seconds;
  if (used < kLeastStepSeconds * static_cast<double>(stats.batches)) {
    return std::numeric_limits<double>::infinity();
  }
  return static_cast<double>(stats.images) / used;
}

}  // namespace

std::int64_t read_ahead_bytes(const LoaderFacts& facts) {
  if (!facts.reads_ahead || facts.source == SourceKind::hdf5 || facts.order == OrderMode::random) {
    return 0;
  }
  return facts.direct_io ? ReadingPlan::kDirectReadAheadBytes : ReadingPlan{}.read_ahead_bytes;
}

Observed observe(const LoaderStats& stats) {
  const auto images = static_cast<double>(stats.images);
  const auto threads = static_cast<double>(std::max<std::int64_t>(stats.num_threads, 1));
  const double pixels = static_cast<double>(stats.bytes_delivered);
  const double all = WorkerTime(stats).all;
  const std::int64_t group_reads =
      stats.chunk_loads > 0
          ? stats.chunk_loads
          : std::max<std::int64_t>(
                stats.images / std::max<std::int64_t>(stats.facts.group_samples, 1), 1);
  const auto counts = [&](double seconds) { return seconds > kLeastShare * all; };
  const auto rounded = [](double value) { return std::max<std::int64_t>(std::llround(value), 1); };

  Observed observed;
  ReadingPlan& plan = observed.plan;
  plan.sample_bytes = rounded(pixels / images);
  plan.samples_per_group = rounded(images / static_cast<double>(group_reads));
  plan.request_bytes =
      rounded(static_cast<double>(stats.bytes_read) / static_cast<double>(group_reads));
  const bool one_at_a_time = stats.facts.source == SourceKind::hdf5;
  plan.read_ahead_bytes = read_ahead_bytes(stats.facts);
  plan.num_threads = one_at_a_time ? 1 : std::max<std::int64_t>(stats.num_threads, 1);
  plan.batch_size = rounded(images / static_cast<double>(stats.batches));
  plan.step_seconds = std::max(stats.seconds - stats.stall_seconds, 0.0) /
                      static_cast<double>(std::max<std::int64_t>(stats.batches, 1));

  MachineRates& rates = observed.rates;
  rates.num_cpus = std::max<std::int64_t>(stats.facts.num_cpus, 1);
  rates.memory_bytes_per_second = 0;
  rates.row_seconds = 0;
  rates.group_seconds = stats.plan_seconds / static_cast<double>(group_reads);
  rates.copy_bytes_per_second = counts(stats.copy_seconds) ? pixels / stats.copy_seconds : kNoLimit;
  if (counts(stats.decode_seconds)) {
    // A chunk of which a row is wanted is decoded as a whole.
    plan.decoded_bytes =
        plan.sample_bytes * (stats.facts.filtered
                                 ? std::max(stats.facts.group_samples, plan.samples_per_group)
                                 : plan.samples_per_group);
    // Workers that wait for libhdf5 count as decoding, too.
    rates.decode_bytes_per_second = static_cast<double>(plan.decoded_bytes) *
                                    static_cast<double>(group_reads) *
                                    (one_at_a_time ? threads : 1) / stats.decode_seconds;
  }
  if (counts(stats.read_seconds) && stats.bytes_read > 0) {
    if (plan.read_ahead_bytes > 0 || one_at_a_time) {
      // All workers read at the same time.
      rates.disk.bytes_per_second =
          static_cast<double>(stats.bytes_read) * threads / stats.read_seconds;
    } else {
      rates.disk.request_seconds = std::min(stats.read_seconds / static_cast<double>(group_reads),
                                            DiskLimit::kMaxRequestSeconds);
    }
  }
  return observed;
}

Suggestion Rates::suggestion(std::string option, std::string text, double rate) const {
  const double used = std::min(rate, wanted);
  return {.option = std::move(option),
          .text = std::move(text),
          .images_per_second = used,
          .stall = std::isfinite(wanted) ? std::max(0.0, 1 - used / wanted) : 1.0};
}

Prediction::Prediction(const LoaderStats& stats, const std::optional<MachineRates>& measured)
    : observed_(observe(stats)),
      measured_(measured.has_value()),
      rates_{.now = static_cast<double>(stats.images) / stats.seconds,
             .wanted = wanted_per_second(stats)},
      num_cpus_(observed_.rates.num_cpus) {
  if (measured) observed_.rates = *measured;
  const double bound = loader(observed_);
  efficiency_ = std::isfinite(bound) ? std::clamp(rates_.now / bound, 0.05, 1.0) : 1.0;
}

Suggestion Prediction::suggestion(std::string option, std::string text, const Observed& changed,
                                  double echo) const {
  // A loader that delivers already is never predicted to become slower.
  return rates_.suggestion(std::move(option), std::move(text),
                           std::max(efficiency_ * loader(changed), rates_.now) * echo);
}

double Prediction::loader(const Observed& observed) {
  return predict_throughput(observed.rates, observed.plan).loader_images_per_second;
}

}  // namespace chunkio::advice
