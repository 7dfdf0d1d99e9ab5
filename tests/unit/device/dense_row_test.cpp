// The kernels of dense rows, all their threads run on the CPU, against Densifier.
#include "device/dense_row.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include <gtest/gtest.h>

#include <chunkio/dataset.hpp>
#include <chunkio/normalizer.hpp>

#include "device/sparse_stage.hpp"
#include "support/scratch.hpp"
#include "support/watched_gpu.hpp"

namespace chunkio::device {
namespace {

using cuda::PinMemory;

template <class Value, class Index>
struct Rows {
  std::vector<Index> indptr = {0};
  std::vector<Index> indices = {};
  std::vector<Value> values = {};
  std::int64_t columns = 0;

  [[nodiscard]] SparseTensor tensor() const {
    const auto view = [](const auto& numbers) {
      using T = typename std::decay_t<decltype(numbers)>::value_type;
      return Tensor(reinterpret_cast<const std::byte*>(numbers.data()), dtype_of<T>(),
                    Shape{std::ssize(numbers)});
    };
    return {view(indptr), view(indices), view(values), columns};
  }
  [[nodiscard]] DatasetInfo info() const {
    DatasetInfo info;
    info.leading.dtype = dtype_of<Value>();
    info.sparse = SparseInfo{
        .columns = columns, .num_entries = std::ssize(values), .index_dtype = dtype_of<Index>()};
    info.num_samples = std::ssize(indptr) - 1;
    return info;
  }
};

/// Rows of any length, in any order of columns, some of which come twice.
template <class Value, class Index>
Rows<Value, Index> random_rows(std::int64_t count, std::int64_t columns, std::mt19937& random) {
  Rows<Value, Index> rows{.columns = columns};
  for (std::int64_t row = 0; row < count; ++row) {
    const std::int64_t kind = random() % 4;
    const std::int64_t most = kind == 0 ? 0 : kind == 1 ? 2 * columns : 1 + columns / 8;
    const auto entries = static_cast<std::int64_t>(random() % static_cast<unsigned>(most + 1));
    for (std::int64_t i = 0; i < entries; ++i) {
      rows.indices.push_back(static_cast<Index>(random() % static_cast<unsigned>(columns)));
      rows.values.push_back(static_cast<Value>(1 + random() % 100));
    }
    if (kind == 2) std::sort(rows.indices.end() - entries, rows.indices.end());
    rows.indptr.push_back(static_cast<Index>(rows.values.size()));
  }
  return rows;
}

// Two threads that found something else would be a race.
TEST(DenseRow, OneThreadFindsWhereTheEntriesOfAPartBegin) {
  std::mt19937 random(static_cast<unsigned>(test::test_seed()));
  constexpr std::int64_t kBegin = 3;  // of the row
  for (const std::int64_t count : {0, 1, 5, 255, 256, 257, 3000, 70'000}) {
    std::vector<std::int64_t> columns(static_cast<std::size_t>(kBegin + count));
    for (std::int64_t& column : columns) column = static_cast<std::int64_t>(random() % 50'000);
    std::sort(columns.begin() + kBegin, columns.end());
    const RowEntries row{.begin = kBegin, .count = count};
    const DensePlan plan{.columns = 50'000, .indices = DType::int64};
    const DenseWork work{.columns = reinterpret_cast<const std::byte*>(columns.data()),
                         .entries = &row};
    for (int round = 0; round < 40; ++round) {
      const DensePart part{.first = round == 0 ? 0 : static_cast<std::int64_t>(random() % 50'001)};
      std::int64_t found = -1;
      int finders = 0;
      for (int thread = 0; thread < kMaxThreads; ++thread) {
        std::int64_t of_thread = -1;
        find_entries(plan, work, part, thread, kMaxThreads, &of_thread);
        if (of_thread == -1) continue;
        found = of_thread;
        ++finders;
      }
      ASSERT_EQ(finders, 1) << count << " entries, from column " << part.first << " on";
      const std::int64_t first =
          std::lower_bound(columns.begin() + kBegin, columns.end(), part.first) - columns.begin();
      EXPECT_LE(found, first);
      EXPECT_LE(first - found, (count + kMaxThreads - 1) / kMaxThreads);
    }
  }
}

template <class T>
class DenseRowTest : public testing::Test {
 protected:
  void TearDown() override {
    gpu_->destroy_stream(stream_);
    EXPECT_EQ(gpu_->live(), 0);
  }

  /// All rows of the stage as the kernels make them.
  [[nodiscard]] std::vector<std::byte> by_kernels(const SparseStage& stage, const DatasetInfo& info,
                                                  const DenseOptions& options) const {
    const DensePlan plan = make_dense_plan(info, options);
    const std::span<const std::int64_t> begins = stage.row_begins();
    std::vector<RowTask> tasks;
    std::vector<RowEntries> entries;
    for (std::size_t row = 0; row + 1 < begins.size(); ++row) {
      tasks.push_back({static_cast<std::int32_t>(row), {}});
      entries.push_back({begins[row], begins[row + 1] - begins[row]});
    }
    const auto bytes = tasks.size() * static_cast<std::size_t>(plan.output_bytes());
    const DeviceBuffer device_tasks = put(std::span<const RowTask>(tasks));
    const DeviceBuffer device_entries = put(std::span<const RowEntries>(entries));
    const DeviceBuffer factors(gpu_, tasks.size() * sizeof(float));
    const DeviceBuffer output(gpu_, bytes);
    std::memset(output.get(), 0xA5, bytes);  // None of which may stay as it is.
    gpu_->densify(plan, {},
                  {.columns = stage.columns(),
                   .values = stage.values(),
                   .tasks = reinterpret_cast<const RowTask*>(device_tasks.get()),
                   .entries = reinterpret_cast<const RowEntries*>(device_entries.get()),
                   .num_rows = std::ssize(tasks),
                   .output = output.get(),
                   .factors = reinterpret_cast<float*>(factors.get())},
                  stream_);
    gpu_->synchronize(stream_);
    return {output.get(), output.get() + bytes};
  }

  template <class Value>
  [[nodiscard]] DeviceBuffer put(std::span<const Value> values) const {
    DeviceBuffer memory(gpu_, values.size_bytes());
    std::memcpy(memory.get(), values.data(), values.size_bytes());
    return memory;
  }

  std::shared_ptr<test::WatchedGpu> gpu_ = std::make_shared<test::WatchedGpu>();
  StreamHandle stream_ = gpu_->create_stream();
};

template <class Value, class Index>
struct Types {
  using V = Value;
  using I = Index;
};
using All = testing::Types<Types<float, std::int32_t>, Types<double, std::int64_t>,
                           Types<std::uint8_t, std::int32_t>, Types<std::int8_t, std::int32_t>,
                           Types<std::uint16_t, std::int64_t>, Types<std::int16_t, std::int32_t>,
                           Types<std::uint32_t, std::int32_t>, Types<std::int32_t, std::int64_t>,
                           Types<std::uint64_t, std::int32_t>, Types<std::int64_t, std::int64_t>>;
TYPED_TEST_SUITE(DenseRowTest, All);

TYPED_TEST(DenseRowTest, IsWhatDensifierMakes) {
  std::mt19937 random(static_cast<unsigned>(test::test_seed()));
  for (int round = 0; round < 12; ++round) {
    const auto columns = static_cast<std::int64_t>(1 + random() % (round % 3 == 0 ? 9000 : 60));
    const auto rows = random_rows<typename TypeParam::V, typename TypeParam::I>(
        static_cast<std::int64_t>(1 + random() % 9), columns, random);
    const DatasetInfo info = rows.info();
    SparseStage stage(this->gpu_, info, SparseStage::Rows::of_echo_buffer, 1, PinMemory::require,
                      {.free_bytes = 1 << 30});
    const SparseTensor tensor = rows.tensor();
    EXPECT_EQ(stage.append(tensor, this->stream_),
              static_cast<std::int64_t>(tensor.values.size_bytes() + tensor.indices.size_bytes()));
    this->gpu_->synchronize(this->stream_);
    for (const DType dtype : {DType::float32, DType::float16, DType::bfloat16}) {
      for (const bool binary : {false, true}) {
        const DenseOptions options{.dtype = dtype, .binary = binary};
        const Densifier densify(columns, options, 1);
        std::vector<std::byte> expected(densify.output_bytes(tensor.rows()));
        densify(tensor, expected);
        ASSERT_EQ(this->by_kernels(stage, info, options), expected)
            << columns << " columns, binary " << binary;
      }
    }
    const DenseOptions scaled{.row_sum = 1e4, .log1p = true};
    const Densifier densify(columns, scaled, 1);
    std::vector<std::byte> expected(densify.output_bytes(tensor.rows()));
    densify(tensor, expected);
    const std::vector<std::byte> made = this->by_kernels(stage, info, scaled);
    ASSERT_EQ(made.size(), expected.size());
    for (std::size_t at = 0; at < made.size(); at += sizeof(float)) {
      float here = 0;
      float there = 0;
      std::memcpy(&here, made.data() + at, sizeof here);
      std::memcpy(&there, expected.data() + at, sizeof there);
      // Sums are added up in another order, and rounded once more.
      ASSERT_NEAR(here, there, 4e-7F * std::abs(there)) << at / sizeof(float);
    }
  }
}

TEST(SparseStageTest, RowsOfADatasetNeedHostMemoryOfABatch) {
  const auto gpu = std::make_shared<test::WatchedGpu>();
  const StreamHandle stream = gpu->create_stream();
  std::mt19937 random(7);
  {
    const auto all = random_rows<float, std::int32_t>(40, 100, random);
    SparseStage whole(gpu, all.info(), SparseStage::Rows::of_echo_buffer, 1, PinMemory::require,
                      {.free_bytes = 1 << 30});
    whole.append(all.tensor(), stream);
    SparseStage stage(gpu, all.info(), SparseStage::Rows::of_dataset, std::ssize(all.values),
                      PinMemory::require, {.free_bytes = 1 << 30});
    const std::int64_t before = stage.device_bytes();
    for (std::size_t row = 0; row < 40; row += 8) {
      Rows<float, std::int32_t> part{.columns = 100};
      for (std::size_t i = row; i < row + 8; ++i) {
        const auto begin = all.values.begin() + all.indptr[i];
        const auto end = all.values.begin() + all.indptr[i + 1];
        part.values.insert(part.values.end(), begin, end);
        part.indices.insert(part.indices.end(), all.indices.begin() + all.indptr[i],
                            all.indices.begin() + all.indptr[i + 1]);
        part.indptr.push_back(static_cast<std::int32_t>(part.values.size()));
      }
      stage.append(part.tensor(), stream);
    }
    gpu->synchronize(stream);
    EXPECT_EQ(stage.device_bytes(), before);
    ASSERT_EQ(std::vector(stage.row_begins().begin(), stage.row_begins().end()),
              std::vector(whole.row_begins().begin(), whole.row_begins().end()));
    EXPECT_EQ(std::memcmp(stage.columns(), whole.columns(), all.values.size() * 4), 0);
    EXPECT_EQ(std::memcmp(stage.values(), whole.values(), all.values.size() * 4), 0);
  }
  gpu->destroy_stream(stream);
  EXPECT_EQ(gpu->live(), 0);
}

}  // namespace
}  // namespace chunkio::device
