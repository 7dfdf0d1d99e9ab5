#include "pipeline/bottleneck.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

namespace chunkio::pipeline {
namespace {

// Below this share of the time the consumer's waiting is the jitter of handing batches over: all
// that could be gained is less than what two runs differ by.
constexpr double kSmallStall = 0.03;
// With more of the workers' time than this spent on waiting for buffers, there is room to work
// ahead, and waiting comes from an uneven consumer.
constexpr double kMostlyWaiting = 0.5;

std::string percent(double share) {
  return std::to_string(static_cast<int>(std::lround(100 * share))) + " %";
}

std::string rate(double bytes_per_second) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.0f MB/s", bytes_per_second / 1e6);
  return text.data();
}

constexpr const char* kThroughLibhdf5 =
    "Reading through libhdf5 limits, which works on one thread at a time: pack the pictures with "
    "h5pack, so that they are read without it.";

std::string disk_advice(const LoaderStats& stats, const ReaderFacts& facts) {
  if (facts.source == SourceKind::hdf5) return kThroughLibhdf5;
  std::string advice = "Storage delivers " +
                       rate(static_cast<double>(stats.bytes_read) / stats.seconds) +
                       ": put the file on a faster disk";
  if (!facts.resident && facts.picture_bytes <= facts.spare_bytes) {
    advice += ", or keep the pictures in memory (resident = host; the budget holds them)";
  } else {
    advice += ", or use each batch more than once (echoing)";
  }
  return advice + ".";
}

std::string decode_advice(const LoaderStats& stats, const ReaderFacts& facts) {
  if (stats.num_threads < facts.num_cpus) {
    return "Decoding limits: raise num_threads to the " + std::to_string(facts.num_cpus) +
           " CPUs (now " + std::to_string(stats.num_threads) + ").";
  }
  if (facts.filtered) {
    return "Decoding limits and all CPUs are busy: pack the file again without a filter (h5pack's "
           "default).";
  }
  return "Checking digests limits and all CPUs are busy: verify = first_epoch or off.";
}

std::string copy_advice(const LoaderStats& stats, const ReaderFacts& facts) {
  if (facts.source == SourceKind::hdf5) return kThroughLibhdf5;
  if (stats.num_threads < facts.num_cpus) {
    return "Copying limits: raise num_threads to the " + std::to_string(facts.num_cpus) +
           " CPUs (now " + std::to_string(stats.num_threads) + ").";
  }
  return "Memory bandwidth limits: smaller pictures, or fewer other programs on this machine.";
}

std::string plan_advice(const ReaderFacts& facts) {
  if (facts.order == OrderMode::random) {
    return "Computing the order limits: order = chunk_shuffled costs less than random.";
  }
  return "Computing the order limits, as it can with pictures of a few bytes: no option makes it "
         "faster.";
}

}  // namespace

Bottleneck find_bottleneck(const LoaderStats& stats, const ReaderFacts& facts) {
  if (stats.batches == 0 || !(stats.seconds > 0)) return {};
  const double stall = stats.stall_seconds / stats.seconds;
  if (stall < kSmallStall) {
    return {.bound = Bound::consumer,
            .advice = "The loader is fast enough (its consumer waited " + percent(stall) +
                      " of the time): nothing to gain here."};
  }

  struct Stage {
    Bound bound;
    double seconds;
  };
  const std::array stages{
      Stage{Bound::disk, stats.read_seconds}, Stage{Bound::decode, stats.decode_seconds},
      Stage{Bound::copy, stats.copy_seconds}, Stage{Bound::plan, stats.plan_seconds}};
  const Stage largest =
      *std::max_element(stages.begin(), stages.end(),
                        [](const Stage& a, const Stage& b) { return a.seconds < b.seconds; });
  const double waiting = stats.output_wait_seconds;
  double all = waiting + stats.input_wait_seconds;
  for (const Stage& stage : stages) all += stage.seconds;

  Bottleneck found{.bound = largest.bound};
  if (waiting > kMostlyWaiting * all) {
    found.advice = "Batches are asked for in bursts: workers waited " + percent(waiting / all) +
                   " of their time for a free buffer; raise prefetch_depth, or release batches "
                   "sooner.";
    return found;
  }
  switch (largest.bound) {
    case Bound::disk:
      found.advice = disk_advice(stats, facts);
      break;
    case Bound::decode:
      found.advice = decode_advice(stats, facts);
      break;
    case Bound::copy:
      found.advice = copy_advice(stats, facts);
      break;
    default:
      found.advice = plan_advice(facts);
  }
  return found;
}

}  // namespace chunkio::pipeline
