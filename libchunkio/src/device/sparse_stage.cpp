#include "device/sparse_stage.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "base/checked_math.hpp"

namespace chunkio::device {
namespace {

template <class Index>
void widen(const Tensor& offsets, std::int64_t before, std::vector<std::int64_t>& out) {
  const auto* const all = reinterpret_cast<const Index*>(offsets.data());
  for (std::int64_t i = 1; i < offsets.shape()[0]; ++i) {
    out.push_back(before + static_cast<std::int64_t>(all[i] - all[0]));
  }
}

/// Puts the entries of a row in order of their columns; those of one column stay as they were.
template <class Index>
void sort_row(std::span<Index> columns, std::span<std::byte> values, std::size_t value_bytes) {
  if (std::is_sorted(columns.begin(), columns.end())) return;
  std::vector<std::size_t> order(columns.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return columns[a] < columns[b]; });
  const std::vector<Index> old_columns(columns.begin(), columns.end());
  const std::vector<std::byte> old_values(values.begin(), values.end());
  for (std::size_t i = 0; i < order.size(); ++i) {
    columns[i] = old_columns[order[i]];
    std::memcpy(values.data() + i * value_bytes, old_values.data() + order[i] * value_bytes,
                value_bytes);
  }
}

}  // namespace

SparseStage::SparseStage(std::shared_ptr<Gpu> gpu, const DatasetInfo& info, Rows rows,
                         std::int64_t entries, cuda::PinMemory policy, const MemoryNeeds& needs)
    : gpu_(std::move(gpu)),
      value_(info.leading.dtype),
      index_(info.sparse->index_dtype),
      rows_(rows),
      policy_(policy),
      needs_(needs),
      copied_(gpu_) {
  make_device_room(std::max<std::int64_t>(entries, 1), nullptr);
  if (rows == Rows::of_echo_buffer) make_host_room(capacity_, nullptr);
}

std::int64_t SparseStage::footprint(const DatasetInfo& info, std::int64_t entries) {
  const std::size_t bytes = size_of(info.leading.dtype) + size_of(info.sparse->index_dtype);
  return base::checked_multiply(std::max<std::int64_t>(entries, 1),
                                static_cast<std::int64_t>(bytes))
      .value_or(kBeyondAnyDevice);
}

void SparseStage::make_host_room(std::int64_t entries, StreamHandle stream) {
  if (entries <= host_capacity_) return;
  const std::int64_t room = std::max(entries, host_capacity_ + host_capacity_ / 2);
  // A copy under way still reads what is to go.
  if (host_capacity_ > 0) gpu_->synchronize(stream);
  const auto grow = [&](CopySource& source, DType dtype) {
    CopySource larger(gpu_, static_cast<std::size_t>(room) * size_of(dtype), policy_);
    const std::int64_t kept = begins_.back() - host_begin(begins_.back());
    if (kept > 0) {
      std::memcpy(larger.get(), source.get(), static_cast<std::size_t>(kept) * size_of(dtype));
    }
    source = std::move(larger);
  };
  grow(host_columns_, index_);
  grow(host_values_, value_);
  host_capacity_ = room;
}

void SparseStage::make_device_room(std::int64_t entries, StreamHandle stream) {
  if (entries <= capacity_) return;
  const std::int64_t room = std::max(entries, capacity_ + capacity_ / 2);
  if (capacity_ > 0) gpu_->synchronize(stream);
  // First, so that both never exist. What was there is copied again.
  columns_ = {};
  values_ = {};
  capacity_ = 0;
  columns_ = allocate(gpu_, static_cast<std::size_t>(room) * size_of(index_), needs_);
  values_ = allocate(gpu_, static_cast<std::size_t>(room) * size_of(value_), needs_);
  capacity_ = room;
  copy(0, begins_.back(), stream);
}

void SparseStage::clear() {
  if (begins_.size() > 1) gpu_->synchronize(copied_.get());
  begins_.assign(1, 0);
}

std::int64_t SparseStage::append(const SparseTensor& rows, StreamHandle stream) {
  const std::size_t first_row = begins_.size() - 1;
  const std::int64_t begin = begins_.back();
  const std::int64_t count = rows.values.shape()[0];
  const std::int64_t in_host = begin - host_begin(begin);
  if (rows_ == Rows::of_dataset && begin > 0) gpu_->synchronize(stream);
  make_host_room(in_host + count, stream);
  make_device_room(begin + count, stream);
  const auto copy_to = [in_host](CopySource& source, const Tensor& from) {
    const std::size_t at = static_cast<std::size_t>(in_host) * size_of(from.dtype());
    if (from.size_bytes() > 0) std::memcpy(source.get() + at, from.data(), from.size_bytes());
  };
  copy_to(host_columns_, rows.indices);
  copy_to(host_values_, rows.values);
  const auto put = [&]<class Index>(Index) {
    widen<Index>(rows.indptr, begin, begins_);
    for (std::size_t row = first_row; row + 1 < begins_.size(); ++row) {
      const auto at = static_cast<std::size_t>(begins_[row] - host_begin(begin));
      const auto length = static_cast<std::size_t>(begins_[row + 1] - begins_[row]);
      sort_row(std::span(reinterpret_cast<Index*>(host_columns_.get()) + at, length),
               std::span(host_values_.get() + at * size_of(value_), length * size_of(value_)),
               size_of(value_));
    }
  };
  if (index_ == DType::int32) {
    put(std::int32_t{});
  } else {
    put(std::int64_t{});
  }
  const std::int64_t copied = copy(begin, begin + count, stream);
  gpu_->record(copied_.get(), stream);
  return copied;
}

std::int64_t SparseStage::copy(std::int64_t begin, std::int64_t end, StreamHandle stream) {
  std::int64_t copied = 0;
  const auto send = [&](const DeviceBuffer& target, CopySource& source, DType dtype) {
    const std::size_t bytes = static_cast<std::size_t>(end - begin) * size_of(dtype);
    if (bytes == 0) return;
    const std::int64_t in_host = begin - host_begin(begin);
    gpu_->copy_to_device(target.get() + static_cast<std::size_t>(begin) * size_of(dtype),
                         source.get() + static_cast<std::size_t>(in_host) * size_of(dtype), bytes,
                         stream);
    copied += static_cast<std::int64_t>(bytes);
  };
  send(columns_, host_columns_, index_);
  send(values_, host_values_, value_);
  return copied;
}

}  // namespace chunkio::device
