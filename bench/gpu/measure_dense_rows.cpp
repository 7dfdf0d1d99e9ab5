// Rows of a sparse matrix made dense: 20,000 columns, 1,500 of them stored, float32 values and
// int32 columns, as single cells have them; as they are, and with each row's sum made 10,000 before
// log1p. Beside a copy in device memory of as many bytes as the entries and the outputs have.

#include <cmath>
#include <stdexcept>
#include <vector>

#include <chunkio/normalizer.hpp>

#include "device/dense_plan.hpp"
#include "gpu/gpu_case.hpp"
#include "harness/noise.hpp"
#include "harness/spread.hpp"

namespace bench {
namespace {

using chunkio::DType;
using chunkio::device::DensePlan;
using chunkio::device::DeviceBuffer;
using chunkio::device::RowEntries;
using chunkio::device::RowTask;

// compare_torch.py has the same.
constexpr std::int64_t kColumns = 20'000;
constexpr std::int64_t kEntries = 1'500;  // of a row
constexpr std::int64_t kBatch = 2048;
constexpr double kRowSum = 10'000;

struct Matrix {
  std::vector<std::int32_t> columns;
  std::vector<float> values;
  std::vector<std::int32_t> offsets = {0};
  std::vector<RowTask> tasks;
  std::vector<RowEntries> entries;

  Matrix() {
    SplitMix64 next(7);
    for (std::int64_t row = 0; row < kBatch; ++row) {
      tasks.push_back({static_cast<std::int32_t>(row)});
      entries.push_back({row * kEntries, kEntries});
      offsets.push_back(static_cast<std::int32_t>((row + 1) * kEntries));
      for (std::int64_t i = 0; i < kEntries; ++i) {
        // One of each so many columns, so that they ascend.
        const std::int64_t first = i * kColumns / kEntries;
        const std::int64_t end = (i + 1) * kColumns / kEntries;
        columns.push_back(static_cast<std::int32_t>(
            first + static_cast<std::int64_t>(next() % static_cast<std::uint64_t>(end - first))));
        values.push_back(static_cast<float>(1 + next() % 8));
      }
    }
  }
};

void measure(const GpuRun& run, const Matrix& matrix, bool transformed, Report& report) {
  chunkio::DenseOptions options;
  DensePlan plan{.columns = kColumns};
  if (transformed) {
    options = {.row_sum = kRowSum, .log1p = true};
    plan.scaled = true;
    plan.row_sum = kRowSum;
    plan.log1p = true;
  }
  const std::int64_t bytes =
      kBatch * (plan.output_bytes() +
                kEntries * static_cast<std::int64_t>(sizeof(float) + sizeof(std::int32_t)));
  const DeviceBuffer columns = on_device<std::int32_t>(run, matrix.columns);
  const DeviceBuffer values = on_device<float>(run, matrix.values);
  const DeviceBuffer tasks = on_device<RowTask>(run, matrix.tasks);
  const DeviceBuffer entries = on_device<RowEntries>(run, matrix.entries);
  const DeviceBuffer factors(run.gpu, kBatch * sizeof(float));
  std::vector<float> got(static_cast<std::size_t>(kBatch * kColumns));
  const DeviceBuffer output(run.gpu, got.size() * sizeof(float));
  check_cuda(cudaMemset(output.get(), 0xA5, got.size() * sizeof(float)), "cudaMemset");
  check_cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  const auto densify = [&](cudaStream_t stream) {
    run.gpu->densify(plan, {},
                     {.columns = columns.get(),
                      .values = values.get(),
                      .tasks = reinterpret_cast<const RowTask*>(tasks.get()),
                      .entries = reinterpret_cast<const RowEntries*>(entries.get()),
                      .num_rows = kBatch,
                      .output = output.get(),
                      .factors = reinterpret_cast<float*>(factors.get())},
                     stream);
  };
  TimedStream stream;
  densify(stream.get());
  check_cuda(cudaStreamSynchronize(stream.get()), "cudaStreamSynchronize");
  check_cuda(
      cudaMemcpy(got.data(), output.get(), got.size() * sizeof(float), cudaMemcpyDeviceToHost),
      "cudaMemcpy");
  std::vector<float> expected(got.size());
  const chunkio::Densifier on_cpu(kColumns, options);
  const auto tensor = [](const auto& numbers, DType dtype) {
    return chunkio::Tensor(reinterpret_cast<const std::byte*>(numbers.data()), dtype,
                           {std::ssize(numbers)});
  };
  on_cpu({.indptr = tensor(matrix.offsets, DType::int32),
          .indices = tensor(matrix.columns, DType::int32),
          .values = tensor(matrix.values, DType::float32),
          .columns = kColumns},
         std::as_writable_bytes(std::span(expected)));
  for (std::size_t i = 0; i < got.size(); ++i) {
    // log1p of the two differs in its last bits.
    const float difference = transformed ? 1e-6F * std::abs(expected[i]) : 0;
    if (!(std::abs(got[i] - expected[i]) <= difference)) {
      throw std::runtime_error("the dense rows are not those of the CPU");
    }
  }

  const TurnSeconds seconds = times_beside_copies(run, stream, bytes, densify);
  const std::string kind = transformed ? "dense rows, log1p" : "dense rows";
  const std::string of = kind + ", 1,500 of 20,000 columns stored, float32";
  report.add({of + " / copy of as many bytes", "-", ratios(seconds.copy, seconds.work)});
  report.add({of + ", GB/s read and written", "-", gigabytes_per_second(bytes, seconds.work)});
  add_torch_work(run, kind, of, seconds, report);
  report.add_detail("-", of,
                    {{"rows", kBatch},
                     {"bytes", bytes},
                     {"kernel_seconds", seconds.work},
                     {"copy_seconds", seconds.copy}});
}

}  // namespace

void measure_dense_rows(const GpuRun& run, Report& report) {
  const Matrix matrix;
  for (const bool transformed : {false, true}) measure(run, matrix, transformed, report);
}

}  // namespace bench
