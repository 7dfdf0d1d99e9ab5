#include "advice/bottleneck.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <limits>
#include <string>
#include <utility>

#include <chunkio/chunk_layout.hpp>

namespace chunkio::advice {
namespace {

// With more of the workers' time than this spent on waiting for buffers, there is room to work
// ahead, and waiting comes from an uneven consumer.
constexpr double kMostlyWaiting = 0.5;
// What ends sooner says more of how it began than of what limits: buffers are touched for the first
// time, threads wake up.
constexpr double kLeastSeconds = 0.5;
// A cure that brings less is lost among what two runs differ by.
constexpr double kLeastGain = 0.01;
// A step that takes less trains nothing.
constexpr double kLeastStepSeconds = 1e-4;
// Stands for a stage that takes no time that could be measured.
constexpr double kNoLimit = 1e15;
// A share of the workers' time below this says nothing of the stage's rate.
constexpr double kLeastShare = 0.005;
// Twice the threads, or chunks twice as large, that bring less than this are not worth it.
constexpr double kWorthwhile = 1.03;
// The longest latency that a DiskLimit can have.
constexpr double kMaxRequestSeconds = 60;

std::string number(const char* format, double value) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), format, value);
  return text.data();
}

std::string kibibytes(std::int64_t bytes) {
  return number("%.0f KiB", std::ceil(static_cast<double>(bytes) / 1024));
}

std::string milliseconds(double seconds) { return number("%.3g ms", 1000 * seconds); }

/// What storage is asked for before a worker comes to it, in bytes. In random order nothing is
/// prefetched; libhdf5 reads when asked.
std::int64_t read_ahead_bytes(const LoaderFacts& facts) {
  if (!facts.reads_ahead || facts.source == SourceKind::hdf5 || facts.order == OrderMode::random) {
    return 0;
  }
  return facts.direct_io ? ReadingPlan::kDirectReadAheadBytes : ReadingPlan{}.read_ahead_bytes;
}

/// What the workers did, in seconds of all of them.
struct WorkerTime {
  explicit WorkerTime(const LoaderStats& stats)
      : busy(stats.read_seconds + stats.decode_seconds + stats.copy_seconds + stats.plan_seconds),
        all(busy + stats.input_wait_seconds + stats.output_wait_seconds) {}

  [[nodiscard]] std::string share(double seconds) const {
    return percent(all > 0 ? seconds / all : 0);
  }

  double busy;
  double all;
};

double images_per_second(const LoaderStats& stats) {
  return static_cast<double>(stats.images) / stats.seconds;
}

/// What the consumer would take if it never had to wait; infinite if it does nothing but wait, as a
/// loop does that only counts batches.
double wanted_per_second(const LoaderStats& stats) {
  const double used = stats.seconds - stats.stall_seconds;
  if (used < kLeastStepSeconds * static_cast<double>(stats.batches)) {
    return std::numeric_limits<double>::infinity();
  }
  return static_cast<double>(stats.images) / used;
}

/// Stages that are computed with the rates of this run, and those of it that are changed.
class Prediction {
 public:
  Prediction(const LoaderStats& stats, const std::optional<MachineRates>& measured)
      : observed_(observe(stats)),
        now_(images_per_second(stats)),
        wanted_(wanted_per_second(stats)),
        num_cpus_(observed_.rates.num_cpus) {
    measured_ = measured.has_value();
    if (measured) observed_.rates = *measured;
    const double bound = loader(observed_);
    efficiency_ = std::isfinite(bound) ? std::clamp(now_ / bound, 0.05, 1.0) : 1.0;
  }

  [[nodiscard]] const Observed& observed() const noexcept { return observed_; }
  /// Whether the rates are those of stages alone.
  [[nodiscard]] bool measured() const noexcept { return measured_; }
  [[nodiscard]] double now() const noexcept { return now_; }
  [[nodiscard]] double wanted() const noexcept { return wanted_; }
  [[nodiscard]] std::int64_t num_cpus() const noexcept { return num_cpus_; }
  /// Each worker waits for requests of its own, and for each at least this long.
  [[nodiscard]] bool waits_for_requests() const noexcept {
    return observed_.plan.read_ahead_bytes == 0 && observed_.rates.disk.request_seconds > 0;
  }

  /// \param echo  how often each image is used.
  [[nodiscard]] Cure cure(std::string option, std::string text, const Observed& changed,
                          double echo = 1) const {
    // A loader that delivers already is never predicted to become slower.
    const double rate = std::max(efficiency_ * loader(changed), now_) * echo;
    const double used = std::min(rate, wanted_);
    return {.option = std::move(option),
            .text = std::move(text),
            .images_per_second = used,
            .stall = std::isfinite(wanted_) ? std::max(0.0, 1 - used / wanted_) : 1.0};
  }

  /// Of the loader alone, were it to reach what the model says.
  [[nodiscard]] static double loader(const Observed& observed) {
    return predict_throughput(observed.rates, observed.plan).loader_images_per_second;
  }

 private:
  Observed observed_;
  bool measured_ = false;
  double now_;
  double wanted_;
  std::int64_t num_cpus_;
  double efficiency_ = 1;
};

// ---- cures, one function each; they add nothing where they do not apply ----

using Cures = std::vector<Cure>;

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

void add_resident(Cures& cures, const LoaderStats& stats, const Prediction& prediction) {
  const LoaderFacts& facts = stats.facts;
  if (facts.resident == Resident::host || facts.image_bytes > facts.spare_bytes) return;
  Observed changed = prediction.observed();
  changed.rates.disk = {};
  changed.plan.decoded_bytes = 0;
  cures.push_back(prediction.cure(
      "resident = host",
      "Keep the images in memory after the first epoch (resident = host): the budget holds them.",
      changed));
}

void add_threads(Cures& cures, const LoaderStats& stats, const Prediction& prediction) {
  if (stats.facts.source == SourceKind::hdf5) return;
  const auto with = [&](std::int64_t threads, const std::string& text) {
    Observed changed = prediction.observed();
    changed.plan.num_threads = threads;
    return prediction.cure("num_threads = " + std::to_string(threads), text, changed);
  };
  const std::string now = " (now " + std::to_string(stats.num_threads) + ")";
  const std::int64_t cpus = std::max(prediction.num_cpus(), stats.num_threads);
  Cure best = with(cpus, "Raise num_threads to the " + std::to_string(cpus) + " CPUs" + now + ".");
  std::int64_t threads = cpus;
  // Workers that each wait for a request of their own may be more than there are CPUs.
  while (prediction.waits_for_requests() && threads < kMaxWaitingThreads) {
    threads = std::min(2 * threads, kMaxWaitingThreads);
    Cure more = with(threads, "Raise num_threads to " + std::to_string(threads) + now +
                                  ": each of them waits for a request of its own to the disk.");
    if (more.images_per_second < kWorthwhile * best.images_per_second) break;
    best = std::move(more);
  }
  if (best.option != "num_threads = " + std::to_string(stats.num_threads)) {
    cures.push_back(std::move(best));
  }
}

void add_no_verification(Cures& cures, const LoaderStats& stats, const Prediction& prediction) {
  if (stats.facts.verify == Verify::off || stats.facts.filtered) return;
  Observed changed = prediction.observed();
  changed.plan.decoded_bytes = 0;
  const bool always = stats.facts.verify == Verify::always;
  cures.push_back(prediction.cure(
      always ? "verify = first_epoch" : "verify = off",
      always
          ? "Compare digests in the first epoch only (verify = first_epoch)."
          : "The first epoch compares digests; later ones do not. Set verify = off, and check the "
            "file with h5pack verify now and then.",
      changed));
}

void add_no_filter(Cures& cures, const LoaderStats& stats, const Prediction& prediction) {
  if (!stats.facts.filtered) return;
  Observed changed = without_libhdf5(stats, prediction);
  changed.plan.decoded_bytes = 0;
  // What has to be read then is what is decoded now.
  changed.plan.request_bytes =
      std::max(changed.plan.request_bytes,
               changed.plan.sample_bytes *
                   std::max(stats.facts.group_samples, changed.plan.samples_per_group));
  cures.push_back(prediction.cure("",
                                  "Pack the file again without a filter with h5pack repack, "
                                  "which stores none by default.",
                                  changed));
}

void add_packing(Cures& cures, const LoaderStats& stats, const Prediction& prediction) {
  if (stats.facts.source != SourceKind::hdf5 || stats.facts.filtered) return;
  const Observed changed = without_libhdf5(stats, prediction);
  cures.push_back(prediction.cure("",
                                  "Pack the images with h5pack, so that they are read without "
                                  "libhdf5, which works on one thread at a time.",
                                  changed));
}

void add_chunk_order(Cures& cures, const LoaderStats& stats, const Prediction& prediction) {
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
  cures.push_back(prediction.cure(
      "order = chunk_shuffled",
      "Visit the file chunk by chunk (order = chunk_shuffled): each chunk is then read once an "
      "epoch.",
      changed));
}

/// Fewer requests for the same bytes, where the time of a request is mostly latency. That it is
/// has to be known: counters alone do not tell latency from bandwidth.
void add_larger_chunks(Cures& cures, const LoaderStats& stats, const Prediction& prediction) {
  if (!prediction.measured() || stats.facts.source == SourceKind::hdf5 ||
      stats.facts.order == OrderMode::random) {
    return;
  }
  const Observed& observed = prediction.observed();
  if (observed.rates.disk.request_seconds <= 0) return;
  const std::int64_t now = observed.plan.samples_per_group * observed.plan.sample_bytes;
  std::optional<Cure> best;
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
    Cure cure = prediction.cure("",
                                "Pack the images again with h5pack repack, in chunks of " +
                                    kibibytes(bytes) + " (now " + kibibytes(now) +
                                    "): a request then brings more for the same latency.",
                                changed);
    if (best && cure.images_per_second < kWorthwhile * best->images_per_second) break;
    best = std::move(cure);
  }
  if (best) cures.push_back(std::move(*best));
}

void add_faster_disk(Cures& cures, const Prediction& prediction) {
  const Observed& observed = prediction.observed();
  if (observed.rates.disk.bytes_per_second <= 0 && observed.rates.disk.request_seconds <= 0) return;
  Observed changed = observed;
  // As fast as the consumer, or twice as fast as it is if the consumer takes whatever comes.
  const double factor = std::isfinite(prediction.wanted())
                            ? std::clamp(1.1 * prediction.wanted() / prediction.now(), 1.1, 1000.0)
                            : 2.0;
  changed.rates.disk.bytes_per_second =
      std::min(factor * changed.rates.disk.bytes_per_second, kNoLimit);
  changed.rates.disk.request_seconds /= factor;
  const double rate = changed.rates.disk.bytes_per_second;
  const double latency = changed.rates.disk.request_seconds;
  const double transfer = rate > 0 ? static_cast<double>(changed.plan.request_bytes) / rate : 0;
  const std::string requests = "requests of " + kibibytes(changed.plan.request_bytes);
  const bool waits = prediction.waits_for_requests() || changed.rates.disk.queue_depth > 0;
  cures.push_back(prediction.cure(
      "",
      waits && latency > transfer
          ? "Put the file on a disk that answers " + requests + " in " +
                milliseconds(latency + transfer) + " each."
          : "Put the file on a disk that delivers " + byte_rate(rate) + " in " + requests + ".",
      changed));
}

void add_echo(Cures& cures, const Prediction& prediction) {
  if (!std::isfinite(prediction.wanted()) || prediction.now() <= 0) return;
  const double uses = std::ceil(prediction.wanted() / prediction.now() - kLeastGain);
  if (!may_echo(uses, prediction.observed().plan.step_seconds)) return;
  const std::string echo = number("%.0f", uses);
  cures.push_back(prediction.cure(
      "echo = " + echo,
      "Use each batch " + echo + " times, cropped and flipped anew (batch echoing: echo = " + echo +
          " of a DeviceLoader, echo_pass of a Normalizer).",
      prediction.observed(), uses));
}

void add_smaller_images(Cures& cures, const Prediction& prediction) {
  Observed changed = prediction.observed();
  if (changed.plan.sample_bytes < 2) return;
  changed.plan.sample_bytes /= 2;
  changed.plan.request_bytes = std::max<std::int64_t>(changed.plan.request_bytes / 2, 1);
  changed.plan.decoded_bytes /= 2;
  cures.push_back(prediction.cure(
      "", "Pack smaller images with h5pack: half the bytes, half the work.", changed));
}

void add_depth(Cures& cures, const LoaderStats& stats, const Prediction& prediction) {
  // With buffers for the longest burst the average rate counts: that of workers who never wait.
  const WorkerTime time(stats);
  const double idle = time.all > 0 ? stats.output_wait_seconds / time.all : 0;
  const double rate = prediction.now() / std::max(1 - idle, 0.01);
  const double used = std::min(rate, prediction.wanted());
  const std::int64_t depth = 4 * std::max<std::int64_t>(stats.facts.prefetch_depth, 1);
  cures.push_back({.option = "prefetch_depth = " + std::to_string(depth),
                   .text = "Keep more batches ready (prefetch_depth = " + std::to_string(depth) +
                           ", now " + std::to_string(stats.facts.prefetch_depth) +
                           "; memory_budget must hold them), or release batches sooner.",
                   .images_per_second = used,
                   .stall = std::isfinite(prediction.wanted())
                                ? std::max(0.0, 1 - used / prediction.wanted())
                                : 1.0});
}

/// In the order in which equals are preferred: first what costs nothing.
Cures find_cures(Bound bound, const LoaderStats& stats, const Prediction& prediction) {
  Cures cures;
  switch (bound) {
    case Bound::disk:
      add_chunk_order(cures, stats, prediction);
      add_resident(cures, stats, prediction);
      add_threads(cures, stats, prediction);
      add_packing(cures, stats, prediction);
      add_larger_chunks(cures, stats, prediction);
      add_faster_disk(cures, prediction);
      add_echo(cures, prediction);
      add_smaller_images(cures, prediction);
      break;
    case Bound::decode:
      add_no_verification(cures, stats, prediction);
      add_threads(cures, stats, prediction);
      add_chunk_order(cures, stats, prediction);
      add_resident(cures, stats, prediction);
      add_no_filter(cures, stats, prediction);
      break;
    case Bound::copy:
      add_threads(cures, stats, prediction);
      add_packing(cures, stats, prediction);
      add_smaller_images(cures, prediction);
      break;
    case Bound::plan:
      if (stats.facts.order == OrderMode::random) add_chunk_order(cures, stats, prediction);
      break;
    case Bound::buffers:
      add_depth(cures, stats, prediction);
      break;
    default:
      break;
  }
  sort_cures(cures, prediction.now());
  return cures;
}

// ---- evidence ----

std::string stall_evidence(const LoaderStats& stats) {
  return "The consumer waited " + percent(stats.stall_seconds / stats.seconds) + " of the time (" +
         number("%.3g", stats.stall_seconds) + " of " + number("%.3g", stats.seconds) + " s).";
}

std::string worker_evidence(const LoaderStats& stats) {
  const WorkerTime time(stats);
  return "Of the time of its " + std::to_string(stats.num_threads) +
         (stats.num_threads == 1 ? " worker, " : " workers, ") + time.share(stats.read_seconds) +
         " went into waiting for storage, " + time.share(stats.decode_seconds) + " into " +
         (stats.facts.filtered ? "decoding, " : "checking digests, ") +
         time.share(stats.copy_seconds) + " into copying, " + time.share(stats.plan_seconds) +
         " into the order, " + time.share(stats.output_wait_seconds) +
         " into waiting for a free buffer.";
}

std::string bound_evidence(Bound bound, const LoaderStats& stats, const Prediction& prediction) {
  const double delivered = static_cast<double>(stats.bytes_delivered) / stats.seconds;
  switch (bound) {
    case Bound::disk: {
      const double read = static_cast<double>(stats.bytes_read) / stats.seconds;
      std::string text = stats.facts.source == SourceKind::hdf5
                             ? "Reading through libhdf5 limits: it delivered "
                             : "Storage limits: it delivered ";
      text += byte_rate(read);
      if (std::isfinite(prediction.wanted())) {
        text += ", and the consumer would take " +
                byte_rate(read * prediction.wanted() / prediction.now());
      }
      return text + ".";
    }
    case Bound::decode:
      return (stats.facts.filtered ? "Decoding limits: each worker gains "
                                   : "Checking digests limits: each worker checks ") +
             byte_rate(prediction.observed().rates.decode_bytes_per_second) + " of pixels.";
    case Bound::copy:
      if (stats.facts.source == SourceKind::hdf5) {
        return "Copying limits, behind libhdf5, which works on one thread at a time.";
      }
      return "Copying limits: memory took " + byte_rate(delivered) + ".";
    case Bound::plan:
      return stats.facts.order == OrderMode::random
                 ? "Computing the order limits, which costs most if it is random."
                 : "Computing the order limits, as it can with images of a few bytes: no option "
                   "makes it faster.";
    default:
      return "Batches are asked for in bursts: workers waited " +
             WorkerTime(stats).share(stats.output_wait_seconds) +
             " of their time for a free buffer, and the consumer for batches all the same.";
  }
}

/// \pre Batches were delivered, and it took time.
Diagnosis diagnose_run(const LoaderStats& stats, const std::optional<MachineRates>& measured) {
  Diagnosis found{.bound = Bound::consumer, .stall = stats.stall_seconds / stats.seconds};
  if (found.stall < kSmallStall) {
    found.evidence = {"The loader is fast enough (its consumer waited " + percent(found.stall) +
                      " of the time): nothing to gain here."};
    return found;
  }

  struct Stage {
    Bound bound;
    double seconds;
  };
  const std::array stages{
      Stage{Bound::disk, stats.read_seconds}, Stage{Bound::decode, stats.decode_seconds},
      Stage{Bound::copy, stats.copy_seconds}, Stage{Bound::plan, stats.plan_seconds}};
  found.bound = std::max_element(stages.begin(), stages.end(), [](const Stage& a, const Stage& b) {
                  return a.seconds < b.seconds;
                })->bound;
  if (stats.output_wait_seconds > kMostlyWaiting * WorkerTime(stats).all) {
    found.bound = Bound::buffers;
  }
  if (stats.images == 0) {
    // All of it was skipped as damaged.
    found.evidence = {stall_evidence(stats), worker_evidence(stats)};
    return found;
  }
  const Prediction prediction(stats, measured);
  found.evidence = {bound_evidence(found.bound, stats, prediction), stall_evidence(stats),
                    worker_evidence(stats)};
  found.cures = find_cures(found.bound, stats, prediction);
  return found;
}

}  // namespace

bool may_echo(double uses, double step_seconds) {
  return uses >= 2 && uses <= 8 && step_seconds >= 1e-3;
}

std::string percent(double share) {
  return std::to_string(static_cast<int>(std::lround(100 * share))) + " %";
}

std::string byte_rate(double bytes_per_second) {
  return bytes_per_second >= 1e9 ? number("%.2f GB/s", bytes_per_second / 1e9)
                                 : number("%.0f MB/s", bytes_per_second / 1e6);
}

void sort_cures(std::vector<Cure>& cures, double images_per_second_now) {
  std::erase_if(cures, [&](const Cure& cure) {
    return cure.images_per_second < (1 + kLeastGain) * images_per_second_now;
  });
  // Equal is what differs by less than the least gain; the order they came in decides then.
  const auto steps = [&](const Cure& cure) {
    return std::lround(std::log(cure.images_per_second) / std::log1p(kLeastGain));
  };
  std::stable_sort(cures.begin(), cures.end(),
                   [&](const Cure& a, const Cure& b) { return steps(a) > steps(b); });
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
      rates.disk.request_seconds =
          std::min(stats.read_seconds / static_cast<double>(group_reads), kMaxRequestSeconds);
    }
  }
  return observed;
}

Diagnosis diagnose(const LoaderStats& stats, const std::optional<MachineRates>& measured) {
  if (stats.batches == 0 || !(stats.seconds > 0)) return {};
  Diagnosis found = diagnose_run(stats, measured);
  say_if_too_short(found, stats.seconds);
  return found;
}

void say_if_too_short(Diagnosis& diagnosis, double seconds) {
  diagnosis.too_short = seconds < kLeastSeconds;
  if (!diagnosis.too_short) return;
  diagnosis.evidence.insert(
      diagnosis.evidence.begin(),
      "This took " + number("%.2g", seconds) +
          " s, too short to judge what limits: run more epochs, or look at more data.");
}

}  // namespace chunkio::advice

namespace chunkio {

Diagnosis LoaderStats::diagnosis() const { return advice::diagnose(*this); }

std::string Diagnosis::summary() const {
  if (evidence.empty()) return {};
  if (cures.empty() || too_short) return evidence.front();
  return evidence.front() + " " + cures.front().text;
}

}  // namespace chunkio
