// Each round copies the same batches to the device from three kinds of page-locked memory: the ring
// of a loader, where the loader has put them; cudaHostAlloc, which is as fast as the bus gets; and
// huge pages that were registered afterwards, which is what that ring is.

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/host_memory.hpp"
#include "device/pinned_ring.hpp"
#include "gpu/gpu_case.hpp"
#include "harness/spread.hpp"
#include "read/loader_parts.hpp"

namespace bench {
namespace {

using chunkio::base::HostBuffer;
using chunkio::device::DeviceBuffer;
using chunkio::device::PinnedBuffer;

/// Held at once, so that caches of the CPU do not have them.
constexpr std::int64_t kBatches = 8;
/// Copied in one timing.
constexpr std::int64_t kTimedBytes = 4'000'000'000;

/// Huge pages, page-locked.
class RegisteredBuffer {
 public:
  RegisteredBuffer(std::shared_ptr<chunkio::device::Gpu> gpu, std::size_t bytes)
      : gpu_(std::move(gpu)), memory_(bytes) {
    gpu_->pin(memory_.bytes());
  }
  RegisteredBuffer(const RegisteredBuffer&) = delete;
  RegisteredBuffer& operator=(const RegisteredBuffer&) = delete;
  ~RegisteredBuffer() { gpu_->unpin(memory_.bytes()); }

  [[nodiscard]] std::byte* get() const noexcept { return memory_.data(); }

 private:
  std::shared_ptr<chunkio::device::Gpu> gpu_;
  HostBuffer memory_;
};

struct Source {
  const char* name;
  std::vector<const std::byte*> batches;
  std::vector<double> seconds;  // For all batches once, for each round.
};

}  // namespace

void measure_uploads(const GpuRun& run, const Case& images, Report& report) {
  chunkio::LoaderOptions options = images.loader_options(chunkio::SourceKind::scatter);
  options.memory.max_held = kBatches;
  options.memory.budget = std::int64_t{4} << 30;
  options.order.drop_last = true;
  chunkio::Loader loader(chunkio::Dataset::open(images.path), options);
  const chunkio::device::PinnedRing ring(run.gpu, chunkio::read::ring_of(loader));
  loader.start_epoch(kEpoch);
  std::vector<chunkio::Batch> batches;
  for (std::int64_t i = 0; i < std::min(kBatches, loader.num_steps()); ++i) {
    batches.push_back(loader.next().value());
  }
  if (batches.empty()) throw std::runtime_error("the file has not one batch; raise --bytes");
  // The loader fills what is left of its ring, and then waits.
  std::this_thread::sleep_for(std::chrono::seconds(1));

  const std::size_t batch_bytes = batches.front().images().size_bytes();
  const auto total_bytes = static_cast<std::int64_t>(batch_bytes * batches.size());
  const PinnedBuffer allocated(run.gpu, batch_bytes * batches.size());
  const RegisteredBuffer registered(run.gpu, batch_bytes * batches.size());
  const DeviceBuffer target(run.gpu, batch_bytes * batches.size());
  std::array<Source, 3> sources = {
      {{"ring of a loader", {}, {}}, {"cudaHostAlloc", {}, {}}, {"registered huge pages", {}, {}}}};
  for (std::size_t i = 0; i < batches.size(); ++i) {
    const std::byte* const batch = batches[i].images().data();
    sources[0].batches.push_back(batch);
    sources[1].batches.push_back(static_cast<std::byte*>(
        std::memcpy(allocated.get() + i * batch_bytes, batch, batch_bytes)));
    sources[2].batches.push_back(static_cast<std::byte*>(
        std::memcpy(registered.get() + i * batch_bytes, batch, batch_bytes)));
  }

  TimedStream stream;
  const auto copy_all = [&](const Source& source, cudaStream_t s) {
    for (std::size_t i = 0; i < batches.size(); ++i) {
      check_cuda(cudaMemcpyAsync(target.get() + i * batch_bytes, source.batches[i], batch_bytes,
                                 cudaMemcpyHostToDevice, s),
                 "cudaMemcpyAsync");
    }
  };
  std::vector<std::byte> arrived(batch_bytes);
  for (const Source& source : sources) {
    check_cuda(cudaMemset(target.get(), 0xA5, static_cast<std::size_t>(total_bytes)), "cudaMemset");
    // The stream does not wait for it.
    check_cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    // Also warms up.
    static_cast<void>(stream.seconds_of([&](cudaStream_t s) { copy_all(source, s); }));
    for (std::size_t i = 0; i < batches.size(); ++i) {
      check_cuda(cudaMemcpy(arrived.data(), target.get() + i * batch_bytes, batch_bytes,
                            cudaMemcpyDeviceToHost),
                 "cudaMemcpy");
      if (std::memcmp(arrived.data(), batches[i].images().data(), batch_bytes) != 0) {
        throw std::runtime_error(std::string("a batch did not arrive from: ") + source.name);
      }
    }
  }

  const std::int64_t repeats = std::max<std::int64_t>(1, kTimedBytes / total_bytes);
  for (std::int64_t round = 0; round < run.options.rounds; ++round) {
    for (Source& source : sources) {
      const double seconds = stream.seconds_of([&](cudaStream_t s) {
        for (std::int64_t i = 0; i < repeats; ++i) copy_all(source, s);
      });
      source.seconds.push_back(seconds / static_cast<double>(repeats));
    }
  }

  const auto& [from_ring, from_allocated, from_registered] = sources;
  const std::string size = images.size.name;
  report.add({"upload of batches in the ring of a loader / of cudaHostAlloc memory", size,
              ratios(from_allocated.seconds, from_ring.seconds), at_least(0.97)});
  report.add({"upload of registered huge pages / of cudaHostAlloc memory", size,
              ratios(from_allocated.seconds, from_registered.seconds)});
  nlohmann::ordered_json detail = {{"batch", options.batch_size}, {"batches", batches.size()}};
  for (const Source& source : sources) {
    report.add({std::string("upload, ") + source.name + ", GB/s", size,
                gigabytes_per_second(total_bytes, source.seconds)});
    detail["seconds"][source.name] = source.seconds;
  }
  report.add_detail(size, "uploads", std::move(detail));
}

}  // namespace bench
