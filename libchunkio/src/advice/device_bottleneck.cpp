/// What a DeviceLoader's consumer waits for: the loader, the bus, the kernel, or nothing.
///
/// Method. The consumer stalls while next() waits for images (host) and while its stream has
/// nothing to do because a batch is not made yet (device, by events). If it hardly does, it is the
/// limit. Otherwise the three stages before it are compared by the share of the time in which they
/// were at work: the loader, for which the thread that feeds the device waited; the bus, by the
/// events around each copy; the kernel, by the events around it. Stages that overlap are all at
/// work at the same time; the one that never rests is what limits. Where that is the loader, its
/// own counters say why (advice/bottleneck.hpp).
#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <chunkio/cuda/device_loader.hpp>

#include "advice/bottleneck.hpp"
#include "advice/prediction.hpp"
#include "advice/quantities.hpp"
#include "advice/suggestions.hpp"

namespace chunkio::advice {
namespace {

using cuda::DeviceStats;

double share(double part, double whole) { return whole > 0 ? part / whole : 0; }

/// How often each image would have to be used, where storage limits. The bus, too, would have
/// less to carry, but has suggestions that keep samples new.
void add_echo(std::vector<Suggestion>& suggestions, const DeviceStats& stats, const Rates& rates) {
  if (!std::isfinite(rates.wanted)) return;
  const double factor = std::ceil(rates.wanted / rates.now - 0.01);
  const double uses = factor * static_cast<double>(std::max<std::int64_t>(stats.echo, 1));
  const double step_seconds =
      std::max(stats.seconds - stats.stall_seconds - stats.device_stall_seconds, 0.0) /
      static_cast<double>(stats.batches);
  if (factor < 2 || !may_echo(uses, step_seconds)) return;
  const std::string echo = std::to_string(static_cast<std::int64_t>(uses));
  suggestions.push_back(rates.suggestion("echo = " + echo,
                                         "Use each image " + echo +
                                             " times (batch echoing: echo = " + echo + ", now " +
                                             std::to_string(stats.echo) + ").",
                                         factor * rates.now));
}

void add_resident(std::vector<Suggestion>& suggestions, const DeviceStats& stats,
                  const Rates& rates) {
  if (stats.resident || stats.loader.facts.random_crops ||
      stats.dataset_bytes > stats.free_device_bytes) {
    return;
  }
  const double kernel = share(stats.kernel_seconds, stats.seconds);
  suggestions.push_back(
      rates.suggestion("resident = require",
                       "Keep the dataset on the device (resident = require, with a "
                       "resident_share that allows it): it fits.",
                       kernel > 0 ? rates.now / kernel : rates.wanted));
}

std::string stall_evidence(const DeviceStats& stats) {
  return "The consumer waited " +
         percent(share(stats.stall_seconds + stats.device_stall_seconds, stats.seconds)) +
         " of the time: " + percent(share(stats.stall_seconds, stats.seconds)) +
         " inside next(), and its stream stood idle for " +
         percent(share(stats.device_stall_seconds, stats.seconds)) + ".";
}

std::string stage_evidence(const DeviceStats& stats) {
  std::string text;
  if (!stats.resident) {
    text = "For " + percent(share(stats.loader.stall_seconds, stats.loader.seconds)) +
           " of the time the device was fed nothing because the loader had nothing ready; the bus "
           "was busy for " +
           percent(share(stats.upload_seconds, stats.seconds)) + ", the kernel for ";
  } else {
    text = "The dataset is on the device; its kernel was busy for ";
  }
  return text + percent(share(stats.kernel_seconds, stats.seconds)) + ".";
}

/// The loader's own report, with the consumer of the device's batches in place of the thread
/// that feeds the device.
BottleneckReport report_on_loader(const DeviceStats& stats, double stall, const Rates& rates) {
  LoaderStats loader = stats.loader;
  loader.stall_seconds = std::min(stall, 1.0) * loader.seconds;
  BottleneckReport found = loader.bottleneck();
  // It knows of no echo.
  std::erase_if(found.suggestions,
                [](const Suggestion& suggestion) { return suggestion.option.starts_with("echo"); });
  for (Suggestion& suggestion : found.suggestions) {
    suggestion.images_per_second *= static_cast<double>(std::max<std::int64_t>(stats.echo, 1));
  }
  add_resident(found.suggestions, stats, rates);
  if (found.bottleneck == Bottleneck::disk) add_echo(found.suggestions, stats, rates);
  return found;
}

BottleneckReport report_on_bus(const DeviceStats& stats, const Rates& rates) {
  BottleneckReport found{.bottleneck = Bottleneck::bus};
  const double rate = share(static_cast<double>(stats.bytes_uploaded), stats.upload_seconds);
  found.evidence = {"The bus limits: copies to the device ran at " + byte_rate(rate) +
                    (stats.pinned ? " from page-locked memory." : " from pageable memory.")};
  add_resident(found.suggestions, stats, rates);
  if (!stats.pinned) {
    // Pageable memory is copied once more, by the driver, before it crosses. Not measured.
    found.suggestions.push_back(
        rates.suggestion("pin_memory = require",
                         "Page-lock the loader's buffers (pin_memory = require; raise "
                         "the limit of ulimit -l): copies then cross without a "
                         "detour; that this halves their time is an estimate.",
                         2 * rates.now));
  }
  found.suggestions.push_back(rates.suggestion(
      "", "Pack smaller images with h5pack: half the bytes cross in half the time.",
      2 * rates.now));
  return found;
}

BottleneckReport report_on_kernel(const DeviceStats& stats, const Rates& rates) {
  BottleneckReport found{.bottleneck = Bottleneck::kernel};
  found.evidence = {"Normalising on the device limits."};
  if (stats.dtype == DType::float32) {
    // A byte is read and four are written for each value; then two.
    found.suggestions.push_back(
        rates.suggestion("normalize.dtype = float16",
                         "Write half as many bytes (normalize.dtype = float16 or "
                         "bfloat16).",
                         5.0 / 3.0 * rates.now));
  }
  return found;
}

/// \pre Batches were delivered, and it took time.
BottleneckReport report_on_run(const DeviceStats& stats) {
  const double stall = share(stats.stall_seconds + stats.device_stall_seconds, stats.seconds);
  if (stall < kSmallStall) {
    return {.bottleneck = Bottleneck::consumer,
            .stall = stall,
            .evidence = {"Batches come fast enough (the consumer waited " + percent(stall) +
                         " of the time): nothing to gain here."}};
  }
  const auto images = static_cast<double>(stats.images);
  const double used = stats.seconds - stats.stall_seconds - stats.device_stall_seconds;
  const Rates rates{.now = images / stats.seconds, .wanted = images / std::max(used, 0.0)};
  const double kernel = share(stats.kernel_seconds, stats.seconds);
  const double bus = share(stats.upload_seconds, stats.seconds);
  const double loader = share(stats.loader.stall_seconds, stats.loader.seconds);
  BottleneckReport found;
  if (stats.resident) {
    // What next() waits for is only the plan of what comes.
    found =
        stats.stall_seconds > stats.device_stall_seconds
            ? BottleneckReport{.bottleneck = Bottleneck::plan,
                               .evidence = {"Computing the order limits: everything else is on the "
                                            "device."}}
            : report_on_kernel(stats, rates);
  } else if (loader > std::max(bus, kernel)) {
    found = report_on_loader(stats, stall, rates);
  } else {
    found = bus >= kernel ? report_on_bus(stats, rates) : report_on_kernel(stats, rates);
  }
  found.stall = stall;
  found.evidence.push_back(stall_evidence(stats));
  found.evidence.push_back(stage_evidence(stats));
  sort_suggestions(found.suggestions, rates.now);
  return found;
}

}  // namespace
}  // namespace chunkio::advice

namespace chunkio::cuda {

BottleneckReport DeviceStats::bottleneck() const {
  if (batches == 0 || !(seconds > 0)) return {};
  BottleneckReport found = advice::report_on_run(*this);
  if (!found.too_short) advice::say_if_too_short(found, seconds);
  return found;
}

}  // namespace chunkio::cuda
