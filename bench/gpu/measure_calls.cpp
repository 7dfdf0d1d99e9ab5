// What a batch costs beside its bytes: how long until what says which rows is on the device, by a
// kernel that reads it from the host or by a copy, while uploads keep the bus busy; and what events
// of each kind cost the thread that records them.

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "gpu/gpu_case.hpp"
#include "harness/spread.hpp"

namespace bench {
namespace {

using chunkio::device::DeviceBuffer;
using chunkio::device::EventOf;
using chunkio::device::EventUse;
using chunkio::device::Gpu;
using chunkio::device::PinnedBuffer;

/// What 512 rows are described by.
constexpr std::size_t kTaskBytes = 512 * 16;
constexpr std::size_t kUploadBytes = std::size_t{16} << 20;
constexpr int kCalls = 200;

double microseconds_of(const std::chrono::steady_clock::time_point& begin) {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin)
      .count();
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + std::ssize(values) / 2;
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// Median microseconds from asking to arrival.
/// \param busy  with one upload under way, and one more waiting, all the time.
double microseconds_to_device(Gpu& gpu, bool by_kernel, bool busy, const PinnedBuffer& host,
                              const DeviceBuffer& device, const TimedStream& stream,
                              const TimedStream& uploads) {
  std::vector<double> times;
  for (int i = 0; i < kCalls; ++i) {
    std::memset(host.get(), i, kTaskBytes);
    for (int copies = 0; busy && copies < 2; ++copies) {
      gpu.copy_to_device(device.get() + kTaskBytes, host.get() + kTaskBytes, kUploadBytes,
                         uploads.get());
    }
    const auto begin = std::chrono::steady_clock::now();
    if (by_kernel) {
      gpu.fetch(device.get(), host.get(), kTaskBytes, stream.get());
    } else {
      gpu.copy_to_device(device.get(), host.get(), kTaskBytes, stream.get());
    }
    while (cudaStreamQuery(stream.get()) == cudaErrorNotReady) {
    }
    times.push_back(microseconds_of(begin));
    gpu.synchronize(uploads.get());
  }
  std::vector<std::byte> arrived(kTaskBytes);
  check_cuda(cudaMemcpy(arrived.data(), device.get(), kTaskBytes, cudaMemcpyDeviceToHost),
             "cudaMemcpy");
  if (std::memcmp(arrived.data(), host.get(), kTaskBytes) != 0) {
    throw std::runtime_error("what says which rows did not arrive");
  }
  return median(std::move(times));
}

/// Of recording an event, and of a stream that waits for it.
template <EventUse use>
double microseconds_of_event(const std::shared_ptr<Gpu>& gpu, const TimedStream& stream,
                             const TimedStream& other) {
  const EventOf<use> event(gpu);
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < kCalls; ++i) {
    gpu->record(event.get(), stream.get());
    gpu->wait(other.get(), event.get());
  }
  const double each = microseconds_of(begin) / kCalls;
  gpu->synchronize(stream.get());
  gpu->synchronize(other.get());
  return each;
}

}  // namespace

void measure_calls(const GpuRun& run, Report& report) {
  const PinnedBuffer host(run.gpu, kTaskBytes + kUploadBytes);
  const DeviceBuffer device(run.gpu, kTaskBytes + kUploadBytes);
  const TimedStream stream;
  const TimedStream uploads;
  std::memset(host.get(), 1, kTaskBytes + kUploadBytes);

  struct Series {
    std::string name;
    std::vector<double> microseconds = {};
  };
  std::array<Series, 4> ways = {{{"8 KiB to the device by the fetching kernel"},
                                 {"8 KiB to the device by a copy"},
                                 {"8 KiB to the device by the fetching kernel, beside uploads"},
                                 {"8 KiB to the device by a copy, beside uploads"}}};
  std::array<Series, 3> events = {{{"record and wait for an event of order"},
                                   {"record and wait for a timer"},
                                   {"record and wait for a waited timer"}}};
  for (std::int64_t round = 0; round < run.options.rounds; ++round) {
    for (std::size_t i = 0; i < ways.size(); ++i) {
      ways[i].microseconds.push_back(
          microseconds_to_device(*run.gpu, i % 2 == 0, i >= 2, host, device, stream, uploads));
    }
    events[0].microseconds.push_back(
        microseconds_of_event<EventUse::order>(run.gpu, stream, uploads));
    events[1].microseconds.push_back(
        microseconds_of_event<EventUse::timer>(run.gpu, stream, uploads));
    events[2].microseconds.push_back(
        microseconds_of_event<EventUse::waited_timer>(run.gpu, stream, uploads));
  }
  const auto add = [&](Series& series) {
    report.add({series.name + ", microseconds", "-", std::move(series.microseconds)});
  };
  std::for_each(ways.begin(), ways.end(), add);
  std::for_each(events.begin(), events.end(), add);
}

}  // namespace bench
