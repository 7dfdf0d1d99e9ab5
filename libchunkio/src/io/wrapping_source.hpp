/// A byte source that is another one but for what a derived class changes.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <utility>

#include <chunkio/byte_source.hpp>

namespace chunkio::io {

class WrappingSource : public ByteSource {
 public:
  explicit WrappingSource(std::shared_ptr<const ByteSource> source) : source_(std::move(source)) {}

  [[nodiscard]] const std::string& name() const noexcept override { return source_->name(); }
  [[nodiscard]] std::int64_t size() const noexcept override { return source_->size(); }
  [[nodiscard]] std::uint64_t version() const override { return source_->version(); }
  ReadTime read_at(std::int64_t offset, std::span<std::byte> out,
                   const std::stop_token& stop) const override {
    return source_->read_at(offset, out, stop);
  }
  [[nodiscard]] std::unique_ptr<const ByteSource> prefetch(
      std::span<const ByteRange> ranges) const noexcept override {
    return source_->prefetch(ranges);
  }
  [[nodiscard]] std::int64_t request_bytes() const noexcept override {
    return source_->request_bytes();
  }
  [[nodiscard]] std::int64_t block_bytes() const noexcept override {
    return source_->block_bytes();
  }

 protected:
  [[nodiscard]] const std::shared_ptr<const ByteSource>& source() const noexcept { return source_; }

 private:
  std::shared_ptr<const ByteSource> source_;
};

}  // namespace chunkio::io
