/// Ranges of a file that are requested ahead, merged into large requests.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <exception>
#include <future>
#include <memory>
#include <span>
#include <stop_token>
#include <utility>
#include <vector>

#include <chunkio/byte_source.hpp>
#include <chunkio/error.hpp>

#include "io/wrapping_source.hpp"

namespace chunkio::io {

/// Requests a few of them at the same time. For one thread, which reads them in ascending order.
class MergedRanges final : public WrappingSource {
 public:
  /// \param ranges  ascending, disjoint. \param most_requests  at the same time.
  MergedRanges(std::shared_ptr<const ByteSource> file, std::span<const ByteRange> ranges,
               std::size_t most_requests)
      : WrappingSource(std::move(file)), most_requests_(most_requests) {
    for (const ByteRange& range : ranges) {
      for (std::int64_t begin = range.begin; begin < range.end; begin += kMergedBytes) {
        waiting_.push_back({begin, std::min(begin + kMergedBytes, range.end)});
      }
    }
    start_requests();
  }

  ReadTime read_at(std::int64_t offset, std::span<std::byte> out,
                   const std::stop_token& stop) const override {
    auto& started = requests_.started;
    while (!started.empty() && started.front().range.end <= offset) {
      started.pop_front();
      start_requests();
    }
    if (started.empty() || offset < started.front().range.begin) {
      return source()->read_at(offset, out, stop);
    }
    const Request& request = started.front();
    const std::vector<std::byte>& bytes = wait_for(request, stop);
    const auto here =
        out.first(std::min(out.size(), static_cast<std::size_t>(request.range.end - offset)));
    std::memcpy(here.data(), bytes.data() + (offset - request.range.begin), here.size());
    const auto rest = out.subspan(here.size());
    return rest.empty() ? ReadTime{} : read_at(request.range.end, rest, stop);
  }

 private:
  /// Of a request, at most.
  static constexpr std::int64_t kMergedBytes = std::int64_t{12} << 20;
  static constexpr std::chrono::milliseconds kAskStopEvery{50};

  struct Request {
    ByteRange range = {};
    std::shared_future<std::vector<std::byte>> bytes = {};
  };
  struct Requests {
    ~Requests() { stop.request_stop(); }

    std::stop_source stop = {};
    std::deque<Request> started = {};  // last: its destructor waits
  };

  /// \throws Error as RemoteFile::read_at().
  [[nodiscard]] const std::vector<std::byte>& wait_for(const Request& request,
                                                       const std::stop_token& stop) const {
    while (request.bytes.wait_for(kAskStopEvery) != std::future_status::ready) {
      if (!stop.stop_requested()) continue;
      throw Error(ErrorCode::cancelled, "reading " + name() + " was stopped");
    }
    return request.bytes.get();
  }

  void start_requests() const {
    while (requests_.started.size() < most_requests_ && !waiting_.empty()) {
      try {
        requests_.started.push_back(
            {waiting_.front(),
             std::async(std::launch::async, [file = source(), stop = requests_.stop.get_token(),
                                             range = waiting_.front()] {
               std::vector<std::byte> bytes(static_cast<std::size_t>(range.end - range.begin));
               file->read_at(range.begin, bytes, stop);
               return bytes;
             })});
      } catch (const std::exception&) {
        waiting_.clear();  // no more threads: the reader reads the others itself
        return;
      }
      waiting_.pop_front();
    }
  }

  const std::size_t most_requests_;
  mutable std::deque<ByteRange> waiting_;
  mutable Requests requests_;
};

}  // namespace chunkio::io
