// What a profiler sees. The program is linked with a stand-in for one: NVTX calls
// InitializeInjectionNvtx2_fnptr where it would else load the library that
// NVTX_INJECTION64_PATH names.
#include "base/trace.hpp"

#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

// Before the header, which calls it and else defines it, as null.
#define NVTX_STATIC_INJECTION_IMPL
extern "C" {
extern int (*InitializeInjectionNvtx2_fnptr)(const void* (*get_export_table)(std::uint32_t));
}
#include <nvtx3/nvToolsExt.h>

#include <chunkio/chunkio.hpp>
#include <chunkio/cuda/device_loader.hpp>

#include "base/access.hpp"
#include "harness/scratch_folder.hpp"
#include "support/watched_gpu.hpp"
#include "support/pixels.hpp"

namespace chunkio {
namespace {

/// What was pushed and popped since the last clear().
class Recorder {
 public:
  void push(const char* name) {
    const std::lock_guard lock(mutex_);
    std::vector<std::string>& stack = stacks_[std::this_thread::get_id()];
    ++counts_[name];
    inside_.emplace(stack.empty() ? "" : stack.back(), name);
    stack.emplace_back(name);
  }
  void pop() {
    const std::lock_guard lock(mutex_);
    std::vector<std::string>& stack = stacks_[std::this_thread::get_id()];
    if (stack.empty()) {
      ++bad_pops_;
    } else {
      stack.pop_back();
    }
  }
  void name_thread(std::uint32_t id, const char* name) {
    const std::lock_guard lock(mutex_);
    if (id == static_cast<std::uint32_t>(::gettid())) thread_names_.insert(name);
  }
  void clear() {
    const std::lock_guard lock(mutex_);
    counts_.clear();
    inside_.clear();
    thread_names_.clear();
  }

  [[nodiscard]] std::int64_t count(base::Stage stage) const {
    const std::lock_guard lock(mutex_);
    const auto found = counts_.find(std::string(to_string(stage)));
    return found == counts_.end() ? 0 : found->second;
  }
  /// Whether `stage` was ever the innermost range around the start of `inner`.
  [[nodiscard]] bool holds(base::Stage stage, base::Stage inner) const {
    const std::lock_guard lock(mutex_);
    return inside_.contains({std::string(to_string(stage)), std::string(to_string(inner))});
  }
  [[nodiscard]] bool has_thread(const std::string& name) const {
    const std::lock_guard lock(mutex_);
    return thread_names_.contains(name);
  }
  /// Ranges that were not left, and pops without a range.
  [[nodiscard]] std::int64_t unbalanced() const {
    const std::lock_guard lock(mutex_);
    std::int64_t open = bad_pops_;
    for (const auto& [thread, stack] : stacks_) open += std::ssize(stack);
    return open;
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::thread::id, std::vector<std::string>> stacks_;
  std::map<std::string, std::int64_t> counts_;
  std::set<std::pair<std::string, std::string>> inside_;
  std::set<std::string> thread_names_;
  std::int64_t bad_pops_ = 0;
};

Recorder& recorder() {
  static Recorder made;
  return made;
}

/// Returns when a range of `stage` has begun, or after half a minute.
void await(base::Stage stage) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (recorder().count(stage) == 0 && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

// The calls that a profiler takes over.

nvtxDomainHandle_t create_domain(const char* name) {
  // Not an address that anybody may look at: it only has to be told from null and from others.
  return reinterpret_cast<nvtxDomainHandle_t>(std::string(name) == "chunkio" ? 1 : 2);
}
int push_range(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* attributes) {
  if (domain == reinterpret_cast<nvtxDomainHandle_t>(1)) recorder().push(attributes->message.ascii);
  return 0;
}
int pop_range(nvtxDomainHandle_t domain) {
  if (domain == reinterpret_cast<nvtxDomainHandle_t>(1)) recorder().pop();
  return 0;
}
void name_thread(std::uint32_t id, const char* name) { recorder().name_thread(id, name); }

template <class Function>
bool take_over(const NvtxExportTableCallbacks* callbacks, NvtxCallbackModule module,
               std::uint32_t index, Function function) {
  NvtxFunctionTable table = nullptr;
  std::uint32_t size = 0;
  if (callbacks->GetModuleFunctionTable(module, &table, &size) == 0 || index >= size) return false;
  *table[index] = reinterpret_cast<NvtxFunctionPointer>(function);
  return true;
}

int attach(NvtxGetExportTableFunc_t get_export_table) {
  const auto* const callbacks =
      static_cast<const NvtxExportTableCallbacks*>(get_export_table(NVTX_ETID_CALLBACKS));
  return callbacks != nullptr &&
         take_over(callbacks, NVTX_CB_MODULE_CORE, NVTX_CBID_CORE_NameOsThreadA, &name_thread) &&
         take_over(callbacks, NVTX_CB_MODULE_CORE2, NVTX_CBID_CORE2_DomainCreateA,
                   &create_domain) &&
         take_over(callbacks, NVTX_CB_MODULE_CORE2, NVTX_CBID_CORE2_DomainRangePushEx,
                   &push_range) &&
         take_over(callbacks, NVTX_CB_MODULE_CORE2, NVTX_CBID_CORE2_DomainRangePop, &pop_range);
}

}  // namespace
}  // namespace chunkio

NvtxInitializeInjectionNvtxFunc_t InitializeInjectionNvtx2_fnptr = &chunkio::attach;

namespace chunkio {
namespace {

using base::Stage;

class TraceTest : public ::testing::Test {
 protected:
  static constexpr std::int64_t kSamples = 120;
  static constexpr std::int64_t kChunks = 12;

  void SetUp() override {
    path_ = folder_.file("train.h5");
    test::write_packed(path_, {.num_samples = kSamples, .chunk_samples = kSamples / kChunks});
    recorder().clear();
  }
  void TearDown() override { EXPECT_EQ(recorder().unbalanced(), 0); }

  /// One epoch, delivered.
  LoaderStats stream(const std::string& path, LoaderOptions options) const {
    options.batch_size = 10;
    options.io.num_threads = 2;
    options.io.num_epochs = 1;
    Loader loader(Dataset::open(path), options);
    for (const Batch& batch : loader.epoch(0)) EXPECT_GT(batch.size(), 0);
    return loader.stats();
  }

  [[nodiscard]] cuda::DeviceLoader device_loader(const std::string& path, LoaderOptions host,
                                                 cuda::DeviceOptions options) const {
    host.batch_size = 10;
    options.normalize = {.mean = {0}, .std = {1}};
    return internal::Access::make<cuda::DeviceLoader>(gpu_, Loader(Dataset::open(path), host),
                                                      options);
  }
  /// Of a dataset that is on the device; nothing is recorded yet.
  [[nodiscard]] cuda::DeviceLoader resident_loader(std::int64_t num_epochs) const {
    cuda::DeviceLoader loader = device_loader(path_, {.io = {.num_epochs = num_epochs}},
                                              {.resident = cuda::DeviceResident::require});
    recorder().clear();
    return loader;
  }

  test::ScratchFolder folder_;
  std::string path_;
  std::shared_ptr<test::WatchedGpu> gpu_ = std::make_shared<test::WatchedGpu>();
  device::GpuStream stream_{gpu_};
};

TEST_F(TraceTest, EveryStageOfALoaderHasARangeForEachRowGroup) {
  for (const SourceKind source :
       {SourceKind::mapped, SourceKind::scatter, SourceKind::direct, SourceKind::hdf5}) {
    SCOPED_TRACE(to_string(source));
    recorder().clear();
    const LoaderStats stats = stream(path_, {.order = {.version = 1}, .io = {.source = source}});
    EXPECT_EQ(recorder().count(Stage::read_group), kChunks) << "version 2 merges these";
    EXPECT_EQ(recorder().count(Stage::read_group), stats.chunk_loads);
    EXPECT_EQ(recorder().count(Stage::hand_over), stats.batches + 1) << "and the end";
    EXPECT_GE(recorder().count(Stage::plan), 1);
    EXPECT_GE(recorder().count(Stage::prefetch), 1);
    EXPECT_TRUE(recorder().holds(Stage::read_group, Stage::read));
    EXPECT_TRUE(recorder().holds(Stage::read_group, Stage::copy));
    // Never one a row.
    EXPECT_GE(recorder().count(Stage::copy), kChunks);
    EXPECT_LE(recorder().count(Stage::copy), 2 * kChunks);
    EXPECT_EQ(recorder().count(Stage::decode), 0);
    EXPECT_EQ(recorder().count(Stage::verify), 0);
    EXPECT_TRUE(recorder().has_thread("chunkio reader"));
  }
}

TEST_F(TraceTest, DigestsAreVerifiedInARangeOfTheirOwn) {
  stream(path_, {.io = {.verify = Verify::always}});
  EXPECT_EQ(recorder().count(Stage::verify), kChunks);
  EXPECT_TRUE(recorder().holds(Stage::read_group, Stage::verify));
}

TEST_F(TraceTest, FiltersAreUndoneInARangeOfTheirOwn) {
  const std::string path = folder_.file("deflated.h5");
  // Zeros: chunks that deflate does not make smaller are stored as they are.
  const test::PackedFile file{.num_samples = kSamples};
  DatasetWriter writer(path,
                       {.num_samples = file.num_samples,
                        .height = file.height,
                        .width = file.width,
                        .channels = file.channels,
                        .channel_order = "RGB"},
                       {.chunk_samples = kSamples / kChunks, .filter = {.deflate_level = 1}});
  const std::vector<std::byte> zeros(
      static_cast<std::size_t>(writer.chunk_samples() * file.sample_bytes()));
  for (std::int64_t i = 0; i < writer.num_chunks(); ++i) writer.write_chunk(i, zeros);
  writer.close();
  recorder().clear();

  stream(path, {.io = {.source = SourceKind::direct}});
  EXPECT_EQ(recorder().count(Stage::decode), kChunks);
  EXPECT_TRUE(recorder().holds(Stage::read_group, Stage::decode));
}

TEST_F(TraceTest, WaitingHasAName) {
  // Two windows fill the ring, and the consumer takes nothing.
  Loader loader(Dataset::open(path_), {.batch_size = 10,
                                       .order = {.window_bytes = 1200},
                                       .memory = {.prefetch_depth = 1},
                                       .io = {.num_threads = 1}});
  loader.start_epoch(0);
  await(Stage::wait_for_buffer);
  EXPECT_GE(recorder().count(Stage::wait_for_buffer), 1);
  EXPECT_EQ(recorder().count(Stage::wait_for_batch), 0);
}

TEST_F(TraceTest, NormalizingOnTheCpuHasARange) {
  const Dataset dataset = Dataset::open(path_);
  Loader loader(dataset, {.batch_size = 10, .io = {.num_epochs = 1}});
  const Normalizer normalizer(dataset.info(), {.mean = {0}, .std = {1}}, 2);
  std::vector<std::byte> output(normalizer.output_bytes(10));
  for (const Batch& batch : loader.epoch(0)) normalizer(batch, output);
  EXPECT_GE(recorder().count(Stage::normalize), loader.num_steps());
}

TEST_F(TraceTest, TheWayToTheDeviceIsNamed) {
  gpu_->before_copies([] { await(Stage::wait_for_copy); });
  cuda::DeviceLoader loader =
      device_loader(path_, {.memory = {.max_held = 2}, .io = {.num_threads = 2, .num_epochs = 1}},
                    {.echo_buffer_batches = 6, .resident = cuda::DeviceResident::off});
  std::int64_t batches = 0;
  for (loader.start_epoch(0); auto batch = loader.next(stream_.get());) ++batches;
  EXPECT_EQ(batches, 12);
  EXPECT_EQ(recorder().count(Stage::upload), batches);
  EXPECT_EQ(recorder().count(Stage::kernel), batches);
  EXPECT_EQ(recorder().count(Stage::device_hand_over), batches + 1) << "and the end";
  EXPECT_EQ(recorder().count(Stage::wait_for_output), batches);
  EXPECT_TRUE(recorder().holds(Stage::device_hand_over, Stage::wait_for_upload));
  EXPECT_TRUE(recorder().holds(Stage::device_hand_over, Stage::kernel));
  // Two batches may be on their way, so the third waits for the first.
  EXPECT_GE(recorder().count(Stage::wait_for_copy), 1);
  EXPECT_LE(recorder().count(Stage::wait_for_copy), batches - 2 + 1) << "and at the end";
  EXPECT_EQ(recorder().count(Stage::wait_for_device_buffer), 2 + 1) << "and at the end";
  EXPECT_TRUE(recorder().has_thread("chunkio feed"));
}

TEST_F(TraceTest, TheWayOfAResidentDatasetIsNamed) {
  // What reads it has batches of a 32nd of the memory budget.
  constexpr std::int64_t kSide = 64;
  constexpr std::int64_t kUploads = 12;
  const std::string path = folder_.file("large.h5");
  test::write_packed(path, {.num_samples = kSamples,
                            .height = kSide,
                            .width = kSide,
                            .chunk_samples = kSamples / kChunks});
  recorder().clear();
  cuda::DeviceLoader loader =
      device_loader(path,
                    {.order = {.window_bytes = 1},
                     .memory = {.budget = 32 * (kSamples / kUploads) * (kSide * kSide * 3 + 8)},
                     .io = {.num_threads = 2, .num_epochs = 1}},
                    {.resident = cuda::DeviceResident::require});
  EXPECT_EQ(recorder().count(Stage::upload), kUploads);
  // For all but two of the copies one by one, and for the rest.
  EXPECT_EQ(recorder().count(Stage::wait_for_copy), kUploads - 1 + 1);
  EXPECT_GE(recorder().count(Stage::read_group), 1) << "it was read";
  recorder().clear();

  std::int64_t batches = 0;
  for (loader.start_epoch(0); auto batch = loader.next(stream_.get());) ++batches;
  EXPECT_EQ(batches, 12);
  EXPECT_EQ(recorder().count(Stage::plan), batches + 1) << "and the end";
  EXPECT_EQ(recorder().count(Stage::kernel), batches);
  EXPECT_EQ(recorder().count(Stage::wait_for_device_buffer), 0) << "nothing is copied";
  EXPECT_EQ(recorder().count(Stage::upload), 0) << "everything is there";
  EXPECT_EQ(recorder().count(Stage::wait_for_copy), 0);
  EXPECT_EQ(recorder().count(Stage::read_group), 0);
}

TEST_F(TraceTest, TheEpochAfterThatOfAResidentDatasetIsPlannedAhead) {
  cuda::DeviceLoader loader = resident_loader(2);
  std::int64_t batches = 0;
  for (const std::int64_t epoch : {0, 1}) {
    for (loader.start_epoch(epoch); loader.next(stream_.get());) ++batches;
  }
  // Every batch and both ends are planned by themselves, and the second epoch as a whole.
  EXPECT_EQ(recorder().count(Stage::plan), batches + 2 + 1);
}

TEST_F(TraceTest, PlanningAnEpochOfAResidentDatasetIsPartOfItsStall) {
  cuda::DeviceLoader loader = resident_loader(1);
  loader.start_epoch(0);
  EXPECT_EQ(recorder().count(Stage::plan), 0) << "nobody counts how long start_epoch() takes";
  EXPECT_TRUE(loader.next(stream_.get()));
  EXPECT_EQ(recorder().count(Stage::plan), 1);
  EXPECT_GT(loader.stats().stall_seconds, 0);
}

TEST_F(TraceTest, WaitingForAnOutputBatchHasAName) {
  cuda::DeviceLoader loader = device_loader(path_, {.io = {.num_threads = 2}},
                                            {.max_held = 1, .release_timeout_seconds = 0.001});
  loader.start_epoch(0);
  const auto held = loader.next(stream_.get());
  EXPECT_EQ(recorder().count(Stage::wait_for_output), 1);
  EXPECT_THROW(static_cast<void>(loader.next(stream_.get())), Error);
  EXPECT_EQ(recorder().count(Stage::wait_for_output), 2);
}

TEST_F(TraceTest, RangesEndWhereSomethingIsThrown) {
  const Dataset dataset = Dataset::open(path_);
  Loader loader(dataset, {.batch_size = 10});
  loader.start_epoch(0);
  std::vector<std::optional<Batch>> held;
  EXPECT_THROW(while (true) held.push_back(loader.next()), Error) << "max_held";
  EXPECT_EQ(recorder().count(Stage::hand_over), std::ssize(held) + 1);
}

}  // namespace
}  // namespace chunkio
