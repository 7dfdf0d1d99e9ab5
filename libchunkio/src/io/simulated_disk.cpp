#include "io/simulated_disk.hpp"

#include <algorithm>
#include <exception>
#include <utility>
#include <vector>

#include <chunkio/error.hpp>

#include "base/stopwatch.hpp"
#include "io/direct_file.hpp"

namespace chunkio::io {
namespace {

/// What was asked for, and when it is there.
struct Request {
  ByteRange range;
  DiskLimiter::Clock::time_point complete;
};

}  // namespace

/// Ranges that the disk was asked for.
class SimulatedDisk::Prefetched final : public WrappingSource {
 public:
  /// \param inner  what the source returned of the same ranges.
  Prefetched(const SimulatedDisk& disk, std::unique_ptr<const ByteSource> inner,
             std::vector<Request> requests)
      : WrappingSource(disk.source()),
        disk_(disk),
        inner_(std::move(inner)),
        requests_(std::move(requests)) {}

  ReadTime read_at(std::int64_t offset, std::span<std::byte> out,
                   const std::stop_token& stop) const override {
    ReadTime time;
    const auto size = static_cast<std::int64_t>(out.size());
    std::int64_t charged = 0;
    for (const auto& [range, complete] : requests_) {
      const std::int64_t bytes = std::min(range.end, offset + size) - std::max(range.begin, offset);
      if (bytes <= 0) continue;
      charged += bytes;
      time += disk_.wait(complete, stop);
    }
    const ByteSource& bytes = inner_ ? *inner_ : *source();
    time += bytes.read_at(offset, out, stop);
    // Blocks of the storage round a range.
    if (charged < size) time += disk_.wait(disk_.disk_->submit_more(size - charged), stop);
    return time;
  }
  [[nodiscard]] std::int64_t request_bytes() const noexcept override {
    return inner_ ? inner_->request_bytes() : source()->request_bytes();
  }

 private:
  const SimulatedDisk& disk_;
  std::unique_ptr<const ByteSource> inner_;
  std::vector<Request> requests_;
};

ReadTime SimulatedDisk::read_at(std::int64_t offset, std::span<std::byte> out,
                                const std::stop_token& stop) const {
  const auto complete = disk_->submit(static_cast<std::int64_t>(out.size()), offset_ + offset);
  ReadTime time = source()->read_at(offset, out, stop);
  return time += wait(complete, stop);
}

std::unique_ptr<const ByteSource> SimulatedDisk::prefetch(
    std::span<const ByteRange> ranges) const noexcept try {
  if (!reads_ahead_) return nullptr;
  std::vector<Request> requests;
  requests.reserve(ranges.size());
  std::unique_ptr<const ByteSource> inner = source()->prefetch(ranges);
  for (const ByteRange& range : ranges) {
    requests.push_back({range, disk_->submit(range.end - range.begin, offset_ + range.begin)});
  }
  return std::make_unique<const Prefetched>(*this, std::move(inner), std::move(requests));
} catch (const std::exception&) {
  return nullptr;  // charged when it is read
}

std::int64_t SimulatedDisk::request_bytes() const noexcept {
  return std::max(source()->request_bytes(), kDirectPieceBytes);
}

ReadTime SimulatedDisk::wait(DiskLimiter::Clock::time_point time,
                             const std::stop_token& stop) const {
  base::Stopwatch watch;
  if (!disk_->wait_until(time, stop)) {
    throw Error(ErrorCode::cancelled, "reading " + name() + " was stopped");
  }
  return {.waited_seconds = watch.lap()};
}

}  // namespace chunkio::io
