/// Byte sources for tests: one in memory, one that counts, one that fails.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stop_token>
#include <string>

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

/// Bytes in memory, which outlive it.
class MemorySource : public ByteSource {
 public:
  explicit MemorySource(std::span<const std::byte> bytes) : bytes_(bytes) {}

  [[nodiscard]] const std::string& name() const noexcept override { return name_; }
  [[nodiscard]] std::int64_t size() const noexcept override { return std::ssize(bytes_); }
  [[nodiscard]] std::uint64_t version() const override { return 0; }
  ReadTime read_at(std::int64_t offset, std::span<std::byte> out,
                   const std::stop_token& /*stop*/) const override {
    if (offset < 0 || std::ssize(out) > size() || offset > size() - std::ssize(out)) {
      throw Error(ErrorCode::corrupt_data, "the bytes in memory end early");
    }
    std::copy_n(bytes_.begin() + offset, out.size(), out.begin());
    return {};
  }

 private:
  std::span<const std::byte> bytes_;
  std::string name_ = "memory";
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
