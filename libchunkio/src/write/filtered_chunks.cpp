#include "write/filtered_chunks.hpp"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "write/final_verification.hpp"

namespace chunkio::write {

FilteredChunks::FilteredChunks(PartialFile file, const DatasetSpec& spec,
                               const h5::SkeletonOptions& options, std::int64_t chunk_bytes)
    : file_(std::move(file)),
      chunk_bytes_(chunk_bytes),
      filter_(options.filter),
      structure_(file_.fd(), file_.path(), spec, options) {}

void FilteredChunks::write(std::int64_t chunk, std::span<const std::byte> rows,
                           std::uint64_t /*digest*/, std::string_view /*note*/) {
  std::vector<std::byte> whole;
  if (std::cmp_less(rows.size(), chunk_bytes_)) {
    whole.assign(rows.begin(), rows.end());
    whole.resize(static_cast<std::size_t>(chunk_bytes_));
    rows = whole;
  }
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
    failed_ = true;
    throw;
  }
}

void FilteredChunks::write_first_held() {
  const auto node = held_.extract(held_.begin());
  const h5::EncodedChunk& encoded = node.mapped();
  held_bytes_ -= encoded.stored.size();
  next_ = std::max(next_, node.key() + 1);
  structure_.write_chunk(node.key(), encoded.mask, encoded.stored);
}

void FilteredChunks::check() {
  if (!failed_) return;
  const std::lock_guard lock(mutex_);
  std::rethrow_exception(failure_);
}

void FilteredChunks::complete(std::span<const FieldData> /*fields*/, h5::Completion completion) {
  const std::lock_guard lock(mutex_);
  if (failure_) std::rethrow_exception(failure_);
  while (!held_.empty()) write_first_held();
  structure_.finish(completion);
  file_.sync();
}

std::optional<std::int64_t> FilteredChunks::first_damaged(const Dataset& dataset,
                                                          std::stop_token stop) {
  return first_damaged_chunk(dataset, std::move(stop));
}

}  // namespace chunkio::write
