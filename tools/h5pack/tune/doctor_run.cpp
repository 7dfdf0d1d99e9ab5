#include "h5pack/tune/doctor_run.hpp"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include <chunkio/cuda/device_loader.hpp>
#include <chunkio/error.hpp>

#include "cli/progress.hpp"

namespace h5pack {
namespace {

using chunkio::Loader;
using chunkio::LoaderStats;
using Clock = std::chrono::steady_clock;

/// A slow disk or a long step must not make a run of seconds one of hours: at least these, whatever
/// they take.
constexpr std::int64_t kLeastBatches = 3;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// Takes batches for about `seconds`, each for a step of `step_ms`, counted from the second one on:
/// that the first comes late is no matter of how fast the pipeline is.
/// \returns what the loader counted until then, and at the end.
template <class AnyLoader, class Next>
auto run_for(AnyLoader& loader, double seconds, double step_ms, const Next& next) {
  const std::chrono::duration<double, std::milli> step(step_ms);
  const auto take = [&] {
    const bool any = next().has_value();
    if (any && step_ms > 0) std::this_thread::sleep_for(step);
    return any;
  };
  std::int64_t epoch = 0;
  loader.start_epoch(epoch);
  take();
  const auto first = loader.stats();
  const Clock::time_point start = Clock::now();
  for (std::int64_t batches = 0; batches < kLeastBatches || seconds_since(start) < seconds;) {
    if (take()) {
      ++batches;
    } else {
      loader.start_epoch(++epoch);
    }
  }
  return std::pair(first, loader.stats());
}

/// The loader's way, without a device. Sets report.source, which may be found out while it is read.
LoaderStats run_loader(const DoctorOptions& options, const chunkio::Dataset& dataset,
                       double step_ms, DoctorReport& report) {
  Loader loader(dataset, options.loader);
  const auto [first, last] =
      run_for(loader, options.seconds, step_ms, [&] { return loader.next(); });
  report.source = loader.source();
  report.source_reason = loader.source_reason();
  return last.since(first);
}

double images_per_second(const LoaderStats& stats) {
  return stats.seconds > 0 ? static_cast<double>(stats.images) / stats.seconds : 0;
}

/// A device's way, if there is one. Sets report.bus or report.no_bus.
std::optional<chunkio::cuda::DeviceStats> try_device(const DoctorOptions& options,
                                                     const chunkio::Dataset& dataset,
                                                     DoctorReport& report) {
  if (options.no_device) {
    report.no_bus = "--no-device";
    return std::nullopt;
  }
  try {
    chunkio::cuda::DeviceLoader loader(Loader(dataset, options.loader),
                                       {.device = static_cast<int>(options.device),
                                        .normalize = {.mean = {0}, .std = {1}},
                                        .pin_memory = chunkio::cuda::PinMemory::prefer,
                                        .resident = chunkio::cuda::DeviceResident::off});
    // Its statistics are of the whole run.
    const auto stats = run_for(loader, options.seconds, options.step_ms, [&] {
                         return loader.next(nullptr);
                       }).second;
    report.bus = BusReport{
        .bytes_per_second = stats.upload_seconds > 0
                                ? static_cast<double>(stats.bytes_uploaded) / stats.upload_seconds
                                : 0,
        .pinned = stats.pinned};
    return stats;
  } catch (const chunkio::Error& error) {
    using chunkio::ErrorCode;
    // The loader itself was made before, so what there is too little of is memory for the device.
    if (error.code() != ErrorCode::unsupported && error.code() != ErrorCode::cuda_failed &&
        error.code() != ErrorCode::out_of_resources) {
      throw;
    }
    report.no_bus = error.what();
    return std::nullopt;
  }
}

}  // namespace

std::optional<double> DoctorReport::disk_images_per_second() const {
  if (alone.disk_bytes_per_second <= 0 || alone.stored_bytes_per_sample <= 0) return std::nullopt;
  return alone.disk_bytes_per_second / alone.stored_bytes_per_sample;
}

std::optional<double> DoctorReport::decode_images_per_second() const {
  if (alone.decode_bytes_per_second <= 0) return std::nullopt;
  return static_cast<double>(alone.busy_threads) * alone.decode_bytes_per_second / sample_bytes();
}

std::optional<double> DoctorReport::copy_images_per_second() const {
  if (alone.copy_bytes_per_second <= 0) return std::nullopt;
  return static_cast<double>(alone.busy_threads) * alone.copy_bytes_per_second / sample_bytes();
}

std::optional<double> DoctorReport::bus_images_per_second() const {
  if (!bus || bus->bytes_per_second <= 0) return std::nullopt;
  return bus->bytes_per_second / sample_bytes();
}

double DoctorReport::consumer_images_per_second() const {
  return static_cast<double>(options.batch_size) * 1000 / step_ms;
}

DoctorReport run_doctor(const DoctorOptions& options, bool quiet) {
  const chunkio::Dataset dataset = chunkio::Dataset::open(options.file, options.open);
  cli::Progress progress("examining " + options.file, "steps", 4, quiet);

  DoctorReport report;
  report.dataset = dataset.info();
  report.step_ms = options.step_ms;
  {
    const Loader idle(dataset, options.loader);
    report.options = idle.options();
    report.alone = chunkio::measure_stages(idle, options.seconds / 4);
  }
  progress.add(1);
  report.loader_images_per_second = images_per_second(run_loader(options, dataset, 0, report));
  progress.add(1);
  const auto device = try_device(options, dataset, report);
  progress.add(1);
  if (device) {
    report.found = device->bottleneck();
    report.seconds = device->seconds;
    report.images_per_second = static_cast<double>(device->images) / device->seconds;
  } else {
    const LoaderStats stats = run_loader(options, dataset, options.step_ms, report);
    report.found = chunkio::find_bottleneck(stats, report.alone);
    report.seconds = stats.seconds;
    report.images_per_second = images_per_second(stats);
  }
  progress.add(1);
  return report;
}

}  // namespace h5pack
