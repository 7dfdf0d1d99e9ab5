/// What each thread of the kernels that make rows of a CSR matrix dense does, as functions of its
/// number: compiled for the device, where the kernels call them, and for the CPU, where a test
/// does.
///
/// A block makes a part of one row. All threads write zeros into it (`clear_part`) and look for its
/// first entry (`find_entries`), then they write the stored values (`write_part`); between the two
/// is a barrier. Where rows are scaled, a kernel before it adds up the values of each row: a block
/// a row, partial sums of all threads (`partial_sum`), which are added in pairs (`add_half`) with a
/// barrier before each round, and then one thread writes the factor (`finish_sum`).
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "device/gpu.hpp"
#include "device/kernel_plan.hpp"
#include "device/labels_step.hpp"
#include "device/value.hpp"

namespace chunkio::device {

/// Of the output, for a block: enough for all its threads to have some words to write.
inline constexpr std::int64_t kPartBytes = std::int64_t{16} << 10;

/// Of a row.
CHUNKIO_HOST_DEVICE inline std::int64_t num_parts(const DensePlan& plan) noexcept {
  return (plan.output_bytes() + kPartBytes - 1) / kPartBytes;
}

struct DensePart {
  std::int64_t sample = 0;  ///< Of the batch.
  std::int64_t first = 0;   ///< Columns [first, end).
  std::int64_t end = 0;
};

/// \param block  of num_rows * num_parts().
CHUNKIO_HOST_DEVICE inline DensePart part_of(const DensePlan& plan, std::int64_t block) noexcept {
  const std::int64_t parts = num_parts(plan);
  const std::int64_t columns = kPartBytes / plan.element_bytes;
  const std::int64_t sample = block / parts;
  const std::int64_t first = (block - sample * parts) * columns;
  const std::int64_t end = first + columns;
  return {sample, first, end < plan.columns ? end : plan.columns};
}

template <class T>
CHUNKIO_HOST_DEVICE T load(const std::byte* array, std::int64_t at) noexcept {
  return reinterpret_cast<const T*>(array)[at];
}

CHUNKIO_HOST_DEVICE inline std::int64_t column_at(const DensePlan& plan, const DenseWork& work,
                                                  std::int64_t at) noexcept {
  return plan.indices == DType::int32 ? std::int64_t{load<std::int32_t>(work.columns, at)}
                                      : load<std::int64_t>(work.columns, at);
}

CHUNKIO_HOST_DEVICE inline float value_at(const DensePlan& plan, const DenseWork& work,
                                          std::int64_t at) noexcept {
  switch (plan.values) {
    case DType::uint8:
      return static_cast<float>(load<std::uint8_t>(work.values, at));
    case DType::int8:
      return static_cast<float>(load<std::int8_t>(work.values, at));
    case DType::uint16:
      return static_cast<float>(load<std::uint16_t>(work.values, at));
    case DType::int16:
      return static_cast<float>(load<std::int16_t>(work.values, at));
    case DType::uint32:
      return static_cast<float>(load<std::uint32_t>(work.values, at));
    case DType::int32:
      return static_cast<float>(load<std::int32_t>(work.values, at));
    case DType::uint64:
      return static_cast<float>(load<std::uint64_t>(work.values, at));
    case DType::int64:
      return static_cast<float>(load<std::int64_t>(work.values, at));
    case DType::float64:
      return static_cast<float>(load<double>(work.values, at));
    default:
      return load<float>(work.values, at);
  }
}

/// Whether the entry before has another column, or is of another row.
CHUNKIO_HOST_DEVICE inline bool is_first_of_column(const DensePlan& plan, const DenseWork& work,
                                                   const RowEntries& row,
                                                   std::int64_t at) noexcept {
  return at == row.begin || column_at(plan, work, at - 1) != column_at(plan, work, at);
}

/// The sum of the entries of one column, in the order in which they are stored.
/// \pre is_first_of_column(at).
CHUNKIO_HOST_DEVICE inline float column_sum(const DensePlan& plan, const DenseWork& work,
                                            const RowEntries& row, std::int64_t at) noexcept {
  const std::int64_t column = column_at(plan, work, at);
  float sum = value_at(plan, work, at);
  for (++at; at < row.begin + row.count && column_at(plan, work, at) == column; ++at) {
    sum += value_at(plan, work, at);
  }
  return sum;
}

/// Of each `threads`th entry of the row.
CHUNKIO_HOST_DEVICE inline double partial_sum(const DensePlan& plan, const DenseWork& work,
                                              std::int64_t sample, int thread,
                                              int threads) noexcept {
  const RowEntries row = work.entries[sample];
  double sum = 0;
  for (std::int64_t at = row.begin + thread; at < row.begin + row.count; at += threads) {
    if (is_first_of_column(plan, work, row, at)) {
      sum += static_cast<double>(column_sum(plan, work, row, at));
    }
  }
  return sum;
}

static_assert((kMaxThreads & (kMaxThreads - 1)) == 0, "sums are added in pairs");

/// One round, of `half` pairs: kMaxThreads / 2 in the first one, 1 in the last.
CHUNKIO_HOST_DEVICE inline void add_half(double* partial_sums, int thread, int half) noexcept {
  if (thread < half) partial_sums[thread] += partial_sums[thread + half];
}

CHUNKIO_HOST_DEVICE inline void finish_sum(const DensePlan& plan, const DenseWork& work,
                                           std::int64_t sample, double sum) noexcept {
  work.factors[sample] = sum != 0 ? static_cast<float>(plan.row_sum / sum) : 1.0F;
}

/// The share of a thread in finding where the entries of a part begin: at *found, or at one of the
/// next (row.count + threads - 1) / threads entries. Each thread looks at one entry and at that of
/// the next thread, so that this takes as long as one access. One thread of all writes *found.
CHUNKIO_HOST_DEVICE inline void find_entries(const DensePlan& plan, const DenseWork& work,
                                             const DensePart& part, int thread, int threads,
                                             std::int64_t* found) noexcept {
  const RowEntries row = work.entries[part.sample];
  const std::int64_t skipped = (row.count + threads - 1) / threads;
  const std::int64_t end = row.begin + row.count;
  const std::int64_t at = row.begin + thread * skipped;
  const std::int64_t next = at + skipped;
  const bool before = at < end && column_at(plan, work, at) < part.first;
  if (before && (next >= end || column_at(plan, work, next) >= part.first)) *found = at;
  if (thread == 0 && !before) *found = row.begin;
}

/// In words, and what is left at the ends in elements: rows begin at any element.
template <DType dtype>
CHUNKIO_HOST_DEVICE void clear_part(const DensePlan& plan, const DenseWork& work,
                                    const DensePart& part, int thread, int threads) noexcept {
  using T = typename Element<dtype>::Type;
  struct alignas(kWordBytes) Zeros {
    std::uint32_t parts[4] = {};
  };
  constexpr auto kElements = static_cast<std::int64_t>(kWordBytes / sizeof(T));
  T* const output = reinterpret_cast<T*>(work.output);
  const std::int64_t begin = part.sample * plan.columns + part.first;
  const std::int64_t end = part.sample * plan.columns + part.end;
  std::int64_t first = (begin + kElements - 1) / kElements;  // words
  std::int64_t last = end / kElements;
  if (last < first) first = last = 0;
  for (std::int64_t word = first + thread; word < last; word += threads) {
    reinterpret_cast<Zeros*>(work.output)[word] = Zeros{};
  }
  const std::int64_t head = first == last ? end : first * kElements;
  for (std::int64_t at = begin + thread; at < head; at += threads) output[at] = T{};
  for (std::int64_t at = (head > last * kElements ? head : last * kElements) + thread; at < end;
       at += threads) {
    output[at] = T{};
  }
}

/// \param found  what find_entries() found.
template <DType dtype>
CHUNKIO_HOST_DEVICE void write_part(const DensePlan& plan, const LabelPlan& labels,
                                    const DenseWork& work, const DensePart& part,
                                    std::int64_t found, int thread, int threads) noexcept {
  using T = typename Element<dtype>::Type;
  if (part.first == 0) {
    write_labels(labels, work.labels, work.tasks[part.sample].row, work.output_labels, part.sample,
                 thread, threads);
  }
  const RowEntries row = work.entries[part.sample];
  T* const output = reinterpret_cast<T*>(work.output) + part.sample * plan.columns;
  const std::int64_t end = row.begin + row.count;
  for (std::int64_t at = found + thread; at < end; at += threads) {
    const std::int64_t column = column_at(plan, work, at);
    if (column < part.first) continue;
    if (column >= part.end) break;
    if (!is_first_of_column(plan, work, row, at)) continue;
    float value = 1;
    if (!plan.binary) {
      value = column_sum(plan, work, row, at);
      if (plan.scaled) value *= work.factors[part.sample];
      if (plan.log1p) value = log1pf(value);
    }
    output[column] = element_of<dtype>(value);
  }
}

}  // namespace chunkio::device
