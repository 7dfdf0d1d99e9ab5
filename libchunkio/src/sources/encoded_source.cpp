#include "sources/encoded_source.hpp"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include "base/digest.hpp"
#include "base/stopwatch.hpp"
#include "base/streaming_copy.hpp"
#include "sources/row_digests.hpp"
#include "sources/row_offsets.hpp"
#include "sources/stored_ranges.hpp"

namespace chunkio::sources {
namespace {

/// What each thread may take to decode an image: as much as one of 1.7 megapixels.
constexpr std::int64_t kSmallBytes = std::int64_t{32} << 20;

}  // namespace

EncodedSource::EncodedSource(std::shared_ptr<const Dataset::Impl> file,
                             std::shared_ptr<const ByteSource> bytes,
                             std::shared_ptr<base::BufferPool> scratch, std::int64_t group_samples,
                             std::uint64_t seed, std::int64_t first_sample, bool verify)
    : file_(std::move(file)),
      images_(*file_->encoded),
      bytes_(std::move(bytes)),
      scratch_(std::move(scratch)),
      offsets_(file_, images_.offsets, bytes_, scratch_),
      data_(file_, images_.data, bytes_, scratch_),
      group_samples_(group_samples),
      seed_(seed),
      first_sample_(first_sample) {
  if (verify) {
    RowDigests::require(*file_);
    digests_.emplace(file_, RowDigests::open_digests(*file_), bytes_, scratch_);
  }
  group_offsets_ = scan_offsets(
      offsets_, images_.rows, group_samples_,
      [this](std::int64_t first, auto offsets) {
        images_.check_offsets(first, offsets, file_->info.path);
      },
      [this](std::int64_t length) { longest_ = std::max(longest_, length); });
  file_->check_unchanged();
}

ReadCost EncodedSource::place(const RowGroup& group, std::span<const RowTarget> rows,
                              std::stop_token stop) const {
  ReadCost cost;
  if (rows.empty()) return cost;
  const std::int64_t first = group.first_row + rows.front().row;
  const std::int64_t last = group.first_row + rows.back().row;
  const std::size_t offsets_room = offsets_.room(last - first + 2);
  const std::size_t digests_room = digests_ ? digests_->room(last - first + 1) : 0;
  const auto scratch = scratch_->take(offsets_room + digests_room + data_.room(longest_));
  const auto offsets = as_offsets(offsets_.read(
      first, last - first + 2, scratch->bytes().first(offsets_room), nullptr, stop, cost));
  images_.check_offsets(first, offsets, file_->info.path);

  std::span<const std::uint64_t> digests;
  if (digests_) {
    const std::span<const std::byte> bytes =
        digests_->read(first, last - first + 1,
                       scratch->bytes().subspan(offsets_room, digests_room), nullptr, stop, cost);
    digests = {reinterpret_cast<const std::uint64_t*>(bytes.data()),
               bytes.size() / sizeof(std::uint64_t)};
  }
  const std::span<std::byte> room = scratch->bytes().subspan(offsets_room + digests_room);
  const auto sample_bytes = static_cast<std::size_t>(images_.decoding->sample_bytes());
  DamagedRowList damaged;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (i > 0 && rows[i].row == rows[i - 1].row) {
      std::memcpy(rows[i].target, rows[i - 1].target, sample_bytes);
      continue;
    }
    const std::int64_t row = group.first_row + rows[i].row;
    const std::int64_t begin = offsets[static_cast<std::size_t>(row - first)];
    const std::int64_t end = offsets[static_cast<std::size_t>(row - first) + 1];
    const std::span<const std::byte> encoded =
        data_.read(begin, end - begin, room, group.prefetched, stop, cost);
    base::Stopwatch watch;
    try {
      if (!digests.empty() &&
          digests[static_cast<std::size_t>(row - first)] != base::digest(encoded)) {
        throw Error(ErrorCode::digest_mismatch, "it does not match its digest");
      }
      decode(encoded, row, group.epoch, {rows[i].target, sample_bytes});
    } catch (const Error& error) {
      const bool mismatch = error.code() == ErrorCode::digest_mismatch;
      if (!mismatch && error.code() != ErrorCode::corrupt_data &&
          error.code() != ErrorCode::unsupported) {
        throw;
      }
      const Error named = images_.named(error, row, file_->info.path);
      damaged.add({{{row, row + 1}},
                   named.what(),
                   mismatch ? ErrorCode::digest_mismatch : ErrorCode::corrupt_data});
    }
    cost.decode_seconds += watch.lap();
  }
  base::store_fence();
  file_->check_unchanged();
  damaged.raise(cost);
  return cost;
}

void EncodedSource::decode(std::span<const std::byte> encoded, std::int64_t row, std::int64_t epoch,
                           std::span<std::byte> target) const {
  const auto decoder =
      decoders_.take([this] { return std::make_unique<image::SampleDecoder>(*images_.decoding); });
  decoder->open(encoded, images_.orientation(row),
                image::SampleDraw{base::augmentation_key(seed_, static_cast<std::uint64_t>(epoch)),
                                  first_sample_ + row});
  images_.check_size(decoder->stored());
  if (decoder->bytes() <= kSmallBytes) {
    decoder->decode(target);
    return;
  }
  const std::lock_guard lock(large_image_);
  try {
    decoder->decode(target);
  } catch (...) {
    decoder->release();
    throw;
  }
  decoder->release();
}

std::unique_ptr<const ByteSource> EncodedSource::prefetch(const RowGroup& group,
                                                          const RowRange& wanted) const noexcept {
  // Of a few images nobody knows yet where they lie.
  if ((wanted.end - wanted.begin) * 2 < group.num_rows) return nullptr;
  try {
    const auto number = static_cast<std::size_t>(group.first_row / group_samples_);
    std::vector<ByteRange> ranges;
    for_each_stored_range(*images_.data, {group_offsets_[number], group_offsets_[number + 1]},
                          [&](std::int64_t offset, std::int64_t size) {
                            ranges.push_back({offset, offset + size});
                          });
    return bytes_->prefetch(ranges);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

std::int64_t EncodedSource::memory_bytes(std::int64_t threads) const noexcept {
  const auto footprint = [](std::size_t bytes) {
    return static_cast<std::int64_t>(base::HostBuffer::footprint(bytes));
  };
  const std::int64_t decoder = images_.decoder_bytes();
  const std::int64_t of_thread =
      footprint(offsets_.room(std::min(group_samples_, images_.rows) + 1) +
                (digests_ ? digests_->room(std::min(group_samples_, images_.rows)) : 0) +
                data_.room(longest_)) +
      std::min(decoder, kSmallBytes) +
      3 * images_.decoding->sample_bytes();  // scratch and weights of resizing
  return threads * of_thread + (decoder > kSmallBytes ? decoder : 0) +
         offsets_.memory_bytes(threads) + data_.memory_bytes(threads) +
         static_cast<std::int64_t>(group_offsets_.capacity() * sizeof(std::int64_t)) +
         static_cast<std::int64_t>(images_.orientations.size());
}

}  // namespace chunkio::sources
