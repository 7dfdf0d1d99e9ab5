#include "pipeline/filtered_chunks.hpp"

#include <algorithm>
#include <utility>

namespace chunkio::pipeline {

FilteredChunks::FilteredChunks(int fd, const std::string& path, const DatasetSpec& spec,
                               const h5::SkeletonOptions& options)
    : filter_(options.filter), file_(fd, path, spec, options) {}

void FilteredChunks::write(std::int64_t chunk, std::span<const std::byte> rows) {
  h5::EncodedChunk encoded;
  {
    const auto encoder =
        encoders_.take([this] { return std::make_unique<h5::ChunkEncoder>(filter_); });
    encoded = encoder->encode(rows);
  }
  const std::lock_guard lock(mutex_);
  if (failure_) std::rethrow_exception(failure_);
  try {
    const std::size_t bytes = encoded.stored.size();
    held_.emplace(chunk, std::move(encoded));
    held_bytes_ += bytes;
    while (!held_.empty() &&
           (held_.begin()->first <= next_ || (held_.size() > 2 && held_bytes_ > kMaxHeldBytes))) {
      write_first_held();
    }
  } catch (...) {
    failure_ = std::current_exception();
    throw;
  }
}

void FilteredChunks::write_first_held() {
  const auto node = held_.extract(held_.begin());
  const h5::EncodedChunk& encoded = node.mapped();
  held_bytes_ -= encoded.stored.size();
  next_ = std::max(next_, node.key() + 1);
  file_.write_chunk(node.key(), encoded.mask, encoded.stored);
}

void FilteredChunks::check() {
  const std::lock_guard lock(mutex_);
  if (failure_) std::rethrow_exception(failure_);
}

void FilteredChunks::finish(const h5::Completion& completion) {
  const std::lock_guard lock(mutex_);
  if (failure_) std::rethrow_exception(failure_);
  while (!held_.empty()) write_first_held();
  file_.finish(completion);
}

}  // namespace chunkio::pipeline
