#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include <chunkio/error.hpp>
#include <chunkio/tuning.hpp>

namespace chunkio {
namespace {

constexpr double kUnlimited = std::numeric_limits<double>::infinity();
/// More than anybody uses an image, and a number of every integer type of 64 bits.
constexpr double kMostEcho = 1e15;

void require(bool met, const char* what, double value) {
  if (met) return;
  throw Error(ErrorCode::invalid_argument,
              std::string("cannot predict throughput: ") + what + ", not " + std::to_string(value));
}

void require_valid(const MachineRates& rates, const ReadingPlan& plan) {
  chunkio::require_valid(rates.disk);
  const auto positive = [](double value) { return value > 0 && std::isfinite(value); };
  const auto not_negative = [](double value) { return value >= 0 && std::isfinite(value); };
  require(positive(rates.copy_bytes_per_second), "copy_bytes_per_second must be above 0",
          rates.copy_bytes_per_second);
  require(not_negative(rates.memory_bytes_per_second),
          "memory_bytes_per_second must not be below 0", rates.memory_bytes_per_second);
  require(positive(rates.decode_bytes_per_second), "decode_bytes_per_second must be above 0",
          rates.decode_bytes_per_second);
  require(not_negative(rates.bus_bytes_per_second), "bus_bytes_per_second must not be below 0",
          rates.bus_bytes_per_second);
  require(not_negative(rates.group_seconds), "group_seconds must not be below 0",
          rates.group_seconds);
  require(not_negative(rates.row_seconds), "row_seconds must not be below 0", rates.row_seconds);
  require(not_negative(plan.step_seconds), "step_seconds must not be below 0", plan.step_seconds);
  const auto count = [](std::int64_t value, std::int64_t least, const char* what) {
    require(value >= least, what, static_cast<double>(value));
  };
  count(rates.num_cpus, 1, "num_cpus must be at least 1");
  count(plan.sample_bytes, 1, "sample_bytes must be at least 1");
  count(plan.samples_per_group, 1, "samples_per_group must be at least 1");
  count(plan.request_bytes, 1, "request_bytes must be at least 1");
  count(plan.requests_per_group, 1, "requests_per_group must be at least 1");
  count(plan.decoded_bytes, 0, "decoded_bytes must be at least 0");
  count(plan.num_threads, 1, "num_threads must be at least 1");
  count(plan.read_ahead_bytes, 0, "read_ahead_bytes must be at least 0");
  count(plan.batch_size, 1, "batch_size must be at least 1");
}

/// Group reads a second; a time of 0 is no limit.
double per_second(double seconds) { return seconds > 0 ? 1 / seconds : kUnlimited; }

}  // namespace

Throughput predict_throughput(const MachineRates& rates, const ReadingPlan& plan) {
  require_valid(rates, plan);
  const auto rows = static_cast<double>(plan.samples_per_group);
  const auto row_bytes = static_cast<double>(plan.sample_bytes);
  const auto requests = static_cast<double>(plan.requests_per_group);
  const double group_bytes = requests * static_cast<double>(plan.request_bytes);
  const auto workers = static_cast<double>(plan.num_threads);
  const auto busy_workers = static_cast<double>(std::min(plan.num_threads, rates.num_cpus));

  // One group read.
  const double transfer_seconds =
      rates.disk.bytes_per_second > 0 ? group_bytes / rates.disk.bytes_per_second : 0;
  const double group_read_seconds =
      (plan.adjacent ? 0 : requests * rates.disk.request_seconds) + transfer_seconds;
  const double decode_seconds =
      static_cast<double>(plan.decoded_bytes) / rates.decode_bytes_per_second;
  const double copy_seconds = rates.group_seconds + rows * rates.row_seconds +
                              rows * row_bytes / rates.copy_bytes_per_second;

  double requests_under_way = workers;
  if (plan.read_ahead_bytes > 0) {
    requests_under_way = std::max(
        workers, std::floor(static_cast<double>(plan.read_ahead_bytes) * requests / group_bytes));
  }
  if (rates.disk.queue_depth > 0) {
    requests_under_way = std::min(requests_under_way, static_cast<double>(rates.disk.queue_depth));
  }

  const double disk =
      std::min(per_second(transfer_seconds), requests_under_way * per_second(group_read_seconds));
  const double decode = busy_workers * per_second(decode_seconds);
  double copy = busy_workers * per_second(copy_seconds);
  if (rates.memory_bytes_per_second > 0) {
    copy = std::min(copy, rates.memory_bytes_per_second / (rows * row_bytes));
  }
  double group_reads =
      std::min({disk, copy, busy_workers * per_second(decode_seconds + copy_seconds)});
  if (plan.read_ahead_bytes == 0) {
    group_reads = std::min(
        group_reads, workers * per_second(group_read_seconds + decode_seconds + copy_seconds));
  }

  Throughput found;
  found.disk_images_per_second = rows * disk;
  found.decode_images_per_second = rows * decode;
  found.copy_images_per_second = rows * copy;
  found.bus_images_per_second =
      rates.bus_bytes_per_second > 0 ? rates.bus_bytes_per_second / row_bytes : kUnlimited;
  found.consumer_images_per_second =
      static_cast<double>(plan.batch_size) * per_second(plan.step_seconds);
  found.loader_images_per_second = std::min(rows * group_reads, found.bus_images_per_second);
  found.images_per_second =
      std::min(found.loader_images_per_second, found.consumer_images_per_second);
  // 1 for a consumer that takes no time: it does nothing but wait.
  found.stall = 1 - found.images_per_second / found.consumer_images_per_second;

  if (found.loader_images_per_second >= found.consumer_images_per_second) {
    found.bottleneck = Bottleneck::consumer;
    return found;
  }
  if (std::isfinite(found.consumer_images_per_second)) {
    found.echo = static_cast<std::int64_t>(std::min(
        std::ceil(found.consumer_images_per_second / found.loader_images_per_second), kMostEcho));
  }
  using Stage = std::pair<Bottleneck, double>;
  const std::array stages{Stage{Bottleneck::disk, found.disk_images_per_second},
                          Stage{Bottleneck::decode, found.decode_images_per_second},
                          Stage{Bottleneck::copy, found.copy_images_per_second},
                          Stage{Bottleneck::bus, found.bus_images_per_second}};
  found.bottleneck = std::ranges::min_element(stages, {}, &Stage::second)->first;
  return found;
}

}  // namespace chunkio
