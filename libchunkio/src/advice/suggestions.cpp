#include "advice/suggestions.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include <chunkio/chunk_layout.hpp>

#include "advice/quantities.hpp"

namespace chunkio::advice {
namespace {

// A suggestion that brings less is lost among what two runs differ by.
constexpr double kLeastGain = 0.01;
// Twice the threads, or chunks twice as large, that bring less than this are not worth it.
constexpr double kWorthwhile = 1.03;

// ---- one function each; they add nothing where they do not apply ----

using Suggestions = std::vector<Suggestion>;

/// All workers at the same time, which libhdf5 does not let them.
Observed without_libhdf5(const LoaderStats& stats, const Prediction& prediction) {
  Observed changed = prediction.observed();
  if (stats.facts.source != SourceKind::hdf5) return changed;
  changed.plan.num_threads = stats.num_threads;
  // What was waited for is libhdf5; what the disk would do is not known.
  if (!prediction.measured()) changed.rates.disk = {};
  if (stats.facts.order != OrderMode::random) {
    changed.plan.read_ahead_bytes = ReadingPlan{}.read_ahead_bytes;
  }
  return changed;
}

void add_resident(Suggestions& suggestions, const LoaderStats& stats,
                  const Prediction& prediction) {
  const LoaderFacts& facts = stats.facts;
  if (facts.resident == Resident::host || facts.random_crops ||
      facts.image_bytes > facts.spare_bytes) {
    return;
  }
  Observed changed = prediction.observed();
  changed.rates.disk = {};
  changed.plan.decoded_bytes = 0;
  suggestions.push_back(prediction.suggestion(
      "resident = host",
      "Keep the images in memory after the first epoch (resident = host): the budget holds them.",
      changed));
}

void add_threads(Suggestions& suggestions, const LoaderStats& stats, const Prediction& prediction) {
  if (stats.facts.source == SourceKind::hdf5) return;
  const auto with = [&](std::int64_t threads, const std::string& text) {
    Observed changed = prediction.observed();
    changed.plan.num_threads = threads;
    return prediction.suggestion("num_threads = " + std::to_string(threads), text, changed);
  };
  const std::string now = " (now " + std::to_string(stats.num_threads) + ")";
  const std::int64_t cpus = std::max(prediction.num_cpus(), stats.num_threads);
  Suggestion best =
      with(cpus, "Raise num_threads to the " + std::to_string(cpus) + " CPUs" + now + ".");
  std::int64_t threads = cpus;
  // Workers that each wait for a request of their own may be more than there are CPUs.
  while (prediction.waits_for_requests() && threads < kMaxWaitingThreads) {
    threads = std::min(2 * threads, kMaxWaitingThreads);
    Suggestion more =
        with(threads, "Raise num_threads to " + std::to_string(threads) + now +
                          ": each of them waits for a request of its own to the disk.");
    if (more.images_per_second < kWorthwhile * best.images_per_second) break;
    best = std::move(more);
  }
  if (best.option != "num_threads = " + std::to_string(stats.num_threads)) {
    suggestions.push_back(std::move(best));
  }
}

void add_no_verification(Suggestions& suggestions, const LoaderStats& stats,
                         const Prediction& prediction) {
  if (stats.facts.verify == Verify::off || stats.facts.filtered) return;
  Observed changed = prediction.observed();
  changed.plan.decoded_bytes = 0;
  const bool always = stats.facts.verify == Verify::always;
  suggestions.push_back(prediction.suggestion(
      always ? "verify = first_epoch" : "verify = off",
      always
          ? "Compare digests in the first epoch only (verify = first_epoch)."
          : "The first epoch compares digests; later ones do not. Set verify = off, and check the "
            "file with h5pack verify now and then.",
      changed));
}

void add_no_filter(Suggestions& suggestions, const LoaderStats& stats,
                   const Prediction& prediction) {
  if (!stats.facts.filtered) return;
  Observed changed = without_libhdf5(stats, prediction);
  changed.plan.decoded_bytes = 0;
  // What has to be read then is what is decoded now.
  changed.plan.request_bytes =
      std::max(changed.plan.request_bytes,
               changed.plan.sample_bytes *
                   std::max(stats.facts.group_samples, changed.plan.samples_per_group));
  std::string text =
      "Pack the file again without a filter with h5pack repack, which stores none by default.";
  if (stats.facts.encoded) {
    text =
        "Store pixels of one size instead of encoded images (h5pack repack can make them), which "
        "takes more space and no decoding.";
    if (stats.facts.random_crops) {
      text += " Random parts are then cut out when images are normalised (random_resized_crop).";
    }
  }
  suggestions.push_back(prediction.suggestion("", text, changed));
}

void add_packing(Suggestions& suggestions, const LoaderStats& stats, const Prediction& prediction) {
  if (stats.facts.source != SourceKind::hdf5 || stats.facts.filtered) return;
  const Observed changed = without_libhdf5(stats, prediction);
  suggestions.push_back(
      prediction.suggestion("",
                            "Pack the images with h5pack, so that they are read without "
                            "libhdf5, which works on one thread at a time.",
                            changed));
}

void add_chunk_order(Suggestions& suggestions, const LoaderStats& stats,
                     const Prediction& prediction) {
  if (stats.facts.order != OrderMode::random || stats.facts.group_samples < 2) return;
  Observed changed = prediction.observed();
  // Whole row groups instead of a row or a few of each.
  const std::int64_t rows = stats.facts.group_samples;
  changed.plan.samples_per_group = rows;
  LoaderFacts facts = stats.facts;
  facts.order = OrderMode::chunk_shuffled;
  changed.plan.read_ahead_bytes = read_ahead_bytes(facts);
  if (!stats.facts.filtered) changed.plan.request_bytes = rows * changed.plan.sample_bytes;
  if (changed.plan.decoded_bytes > 0) {
    changed.plan.decoded_bytes = rows * changed.plan.sample_bytes;
  }
  suggestions.push_back(prediction.suggestion(
      "order = chunk_shuffled",
      "Visit the file chunk by chunk (order = chunk_shuffled): each chunk is then read once an "
      "epoch.",
      changed));
}

/// Fewer requests for the same bytes, where the time of a request is mostly latency. That it is
/// has to be known: counters alone do not tell latency from bandwidth.
void add_larger_chunks(Suggestions& suggestions, const LoaderStats& stats,
                       const Prediction& prediction) {
  if (!prediction.measured() || stats.facts.source == SourceKind::hdf5 ||
      stats.facts.order == OrderMode::random) {
    return;
  }
  const Observed& observed = prediction.observed();
  if (observed.rates.disk.request_seconds <= 0) return;
  const std::int64_t now = observed.plan.samples_per_group * observed.plan.sample_bytes;
  std::optional<Suggestion> best;
  for (std::int64_t bytes = std::int64_t{64} << 10; bytes <= kDefaultChunkBytes; bytes *= 2) {
    if (bytes < 2 * now) continue;
    const double factor = static_cast<double>(bytes) / static_cast<double>(now);
    const auto scaled = [&](std::int64_t count) {
      return std::llround(factor * static_cast<double>(count));
    };
    Observed changed = observed;
    changed.plan.samples_per_group = scaled(observed.plan.samples_per_group);
    changed.plan.request_bytes = scaled(observed.plan.request_bytes);
    changed.plan.decoded_bytes = scaled(observed.plan.decoded_bytes);
    Suggestion suggestion = prediction.suggestion(
        "",
        "Pack the images again with h5pack repack, in chunks of " + kibibytes(bytes) + " (now " +
            kibibytes(now) + "): a request then brings more for the same latency.",
        changed);
    if (best && suggestion.images_per_second < kWorthwhile * best->images_per_second) break;
    best = std::move(suggestion);
  }
  if (best) suggestions.push_back(std::move(*best));
}

void add_faster_disk(Suggestions& suggestions, const Prediction& prediction) {
  const Observed& observed = prediction.observed();
  if (observed.rates.disk.bytes_per_second <= 0 && observed.rates.disk.request_seconds <= 0) return;
  Observed changed = observed;
  // As fast as the consumer, or twice as fast as it is if the consumer takes whatever comes.
  const double factor =
      std::isfinite(prediction.rates().wanted)
          ? std::clamp(1.1 * prediction.rates().wanted / prediction.rates().now, 1.1, 1000.0)
          : 2.0;
  changed.rates.disk.bytes_per_second =
      std::min(factor * changed.rates.disk.bytes_per_second, kNoLimit);
  changed.rates.disk.request_seconds /= factor;
  const double rate = changed.rates.disk.bytes_per_second;
  const double latency = changed.rates.disk.request_seconds;
  const double transfer = rate > 0 ? static_cast<double>(changed.plan.request_bytes) / rate : 0;
  const std::string requests = "requests of " + kibibytes(changed.plan.request_bytes);
  const bool waits = prediction.waits_for_requests() || changed.rates.disk.queue_depth > 0;
  suggestions.push_back(prediction.suggestion(
      "",
      waits && latency > transfer
          ? "Put the file on a disk that answers " + requests + " in " +
                milliseconds(latency + transfer) + " each."
          : "Put the file on a disk that delivers " + byte_rate(rate) + " in " + requests + ".",
      changed));
}

void add_echo(Suggestions& suggestions, const Prediction& prediction) {
  if (!std::isfinite(prediction.rates().wanted) || prediction.rates().now <= 0) return;
  const double uses = std::ceil(prediction.rates().wanted / prediction.rates().now - kLeastGain);
  if (!may_echo(uses, prediction.observed().plan.step_seconds)) return;
  const std::string echo = number("%.0f", uses);
  suggestions.push_back(prediction.suggestion(
      "echo = " + echo,
      "Use each batch " + echo + " times, cropped and flipped anew (batch echoing: echo = " + echo +
          " of a DeviceLoader, echo_pass of a Normalizer).",
      prediction.observed(), uses));
}

void add_smaller_images(Suggestions& suggestions, const Prediction& prediction) {
  Observed changed = prediction.observed();
  if (changed.plan.sample_bytes < 2) return;
  changed.plan.sample_bytes /= 2;
  changed.plan.request_bytes = std::max<std::int64_t>(changed.plan.request_bytes / 2, 1);
  changed.plan.decoded_bytes /= 2;
  suggestions.push_back(prediction.suggestion(
      "", "Pack smaller images with h5pack: half the bytes, half the work.", changed));
}

void add_depth(Suggestions& suggestions, const LoaderStats& stats, const Prediction& prediction) {
  // With buffers for the longest burst the average rate counts: that of workers who never wait.
  const double idle = WorkerTime(stats).share(stats.output_wait_seconds);
  const std::string depth =
      "prefetch_depth = " +
      std::to_string(4 * std::max<std::int64_t>(stats.facts.prefetch_depth, 1));
  suggestions.push_back(prediction.rates().suggestion(
      depth,
      "Keep more batches ready (" + depth + ", now " + std::to_string(stats.facts.prefetch_depth) +
          "; memory_budget must hold them), or release batches sooner.",
      prediction.rates().now / std::max(1 - idle, 0.01)));
}

}  // namespace

bool may_echo(double uses, double step_seconds) {
  return uses >= 2 && uses <= 8 && step_seconds >= 1e-3;
}

void sort_suggestions(std::vector<Suggestion>& suggestions, double images_per_second_now) {
  std::erase_if(suggestions, [&](const Suggestion& suggestion) {
    return suggestion.images_per_second < (1 + kLeastGain) * images_per_second_now;
  });
  // Equal is what differs by less than the least gain; the order they came in decides then.
  const auto steps = [&](const Suggestion& suggestion) {
    return std::lround(std::log(suggestion.images_per_second) / std::log1p(kLeastGain));
  };
  std::stable_sort(suggestions.begin(), suggestions.end(),
                   [&](const Suggestion& a, const Suggestion& b) { return steps(a) > steps(b); });
}

Suggestions find_suggestions(Bottleneck bottleneck, const LoaderStats& stats,
                             const Prediction& prediction) {
  Suggestions suggestions;
  switch (bottleneck) {
    case Bottleneck::disk:
      add_chunk_order(suggestions, stats, prediction);
      add_resident(suggestions, stats, prediction);
      add_threads(suggestions, stats, prediction);
      add_packing(suggestions, stats, prediction);
      add_larger_chunks(suggestions, stats, prediction);
      add_faster_disk(suggestions, prediction);
      add_echo(suggestions, prediction);
      add_smaller_images(suggestions, prediction);
      break;
    case Bottleneck::decode:
      add_no_verification(suggestions, stats, prediction);
      add_threads(suggestions, stats, prediction);
      add_chunk_order(suggestions, stats, prediction);
      add_resident(suggestions, stats, prediction);
      add_no_filter(suggestions, stats, prediction);
      break;
    case Bottleneck::copy:
      add_threads(suggestions, stats, prediction);
      add_packing(suggestions, stats, prediction);
      add_smaller_images(suggestions, prediction);
      break;
    case Bottleneck::plan:
      if (stats.facts.order == OrderMode::random) add_chunk_order(suggestions, stats, prediction);
      break;
    case Bottleneck::buffers:
      add_depth(suggestions, stats, prediction);
      break;
    default:
      break;
  }
  sort_suggestions(suggestions, prediction.rates().now);
  return suggestions;
}

}  // namespace chunkio::advice
