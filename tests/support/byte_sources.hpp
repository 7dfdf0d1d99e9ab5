/// Byte sources for tests: one that counts, one that fails.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <stop_token>

#include <chunkio/error.hpp>

#include "io/local_file.hpp"
#include "io/wrapping_source.hpp"

namespace chunkio::test {

/// Counts what it is asked for. Not a local file: nothing looks behind it.
class CountingSource final : public io::WrappingSource {
 public:
  explicit CountingSource(std::shared_ptr<const ByteSource> source)
      : WrappingSource(std::move(source)) {}
  explicit CountingSource(const std::string& path)
      : CountingSource(std::make_shared<io::LocalFile>(path)) {}

  ReadTime read_at(std::int64_t offset, std::span<std::byte> out,
                   const std::stop_token& stop) const override {
    ++requests;
    bytes += static_cast<std::int64_t>(out.size());
    return WrappingSource::read_at(offset, out, stop);
  }

  mutable std::atomic<std::int64_t> requests = 0;
  mutable std::atomic<std::int64_t> bytes = 0;
};

/// Storage that fails wherever `damaged` is, and says so as a disk does.
class FailingSource final : public io::WrappingSource {
 public:
  FailingSource(std::shared_ptr<const ByteSource> source, ByteRange damaged)
      : WrappingSource(std::move(source)), damaged_(damaged) {}

  ReadTime read_at(std::int64_t offset, std::span<std::byte> out,
                   const std::stop_token& stop) const override {
    const std::int64_t end = offset + static_cast<std::int64_t>(out.size());
    if (offset < damaged_.end && damaged_.begin < end) {
      throw Error(ErrorCode::io_failed, "cannot read " + name() + ": the disk has failed");
    }
    return WrappingSource::read_at(offset, out, stop);
  }

 private:
  ByteRange damaged_;
};

}  // namespace chunkio::test
