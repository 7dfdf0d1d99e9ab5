/// Everything a Loader allocates is inside what it says (memory_bytes), which is inside the budget;
/// and how much memory each chunk takes.
///
/// This program replaces malloc and its kin, mmap, munmap and mlock by versions that count. Not for
/// sanitizer builds, which replace them as well.
#include <malloc.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <chunkio/dataset.hpp>
#include <chunkio/dataset_writer.hpp>
#include <chunkio/loader.hpp>

#include "support/h5_files.hpp"
#include "support/pixels.hpp"
#include "support/scratch.hpp"

namespace {

std::atomic<std::int64_t> g_heap{0};
std::atomic<std::int64_t> g_heap_peak{0};
std::atomic<std::int64_t> g_mapped{0};
std::atomic<std::int64_t> g_locked{0};

void* counted(void* pointer) {
  if (pointer == nullptr) return nullptr;
  const auto bytes = static_cast<std::int64_t>(malloc_usable_size(pointer));
  const std::int64_t now = g_heap.fetch_add(bytes) + bytes;
  std::int64_t peak = g_heap_peak.load();
  while (now > peak && !g_heap_peak.compare_exchange_weak(peak, now)) {
  }
  return pointer;
}

void uncounted(void* pointer) {
  if (pointer != nullptr) g_heap -= static_cast<std::int64_t>(malloc_usable_size(pointer));
}

}  // namespace

// glibc keeps its own under these names.
extern "C" {
void* __libc_malloc(std::size_t size);
void* __libc_calloc(std::size_t count, std::size_t size);
void* __libc_realloc(void* pointer, std::size_t size);
void* __libc_memalign(std::size_t alignment, std::size_t size);
void __libc_free(void* pointer);

void* malloc(std::size_t size) { return counted(__libc_malloc(size)); }
void* calloc(std::size_t count, std::size_t size) { return counted(__libc_calloc(count, size)); }
void* realloc(void* pointer, std::size_t size) {
  uncounted(pointer);
  void* const moved = __libc_realloc(pointer, size);
  if (moved != nullptr) return counted(moved);
  if (size != 0) counted(pointer);
  return nullptr;
}
void* memalign(std::size_t alignment, std::size_t size) {
  return counted(__libc_memalign(alignment, size));
}
void* aligned_alloc(std::size_t alignment, std::size_t size) {
  return counted(__libc_memalign(alignment, size));
}
int posix_memalign(void** out, std::size_t alignment, std::size_t size) {
  *out = counted(__libc_memalign(alignment, size));
  return *out == nullptr ? ENOMEM : 0;
}
void free(void* pointer) {
  uncounted(pointer);
  __libc_free(pointer);
}

void* mmap(void* address, std::size_t size, int protection, int flags, int fd, off_t offset) {
  const long result = ::syscall(SYS_mmap, address, size, protection, flags, fd, offset);
  if (result == -1) return MAP_FAILED;
  if ((flags & MAP_ANONYMOUS) != 0) g_mapped += static_cast<std::int64_t>(size);
  return reinterpret_cast<void*>(result);
}
int munmap(void* address, std::size_t size) {
  // Of anonymous memory or of a file? Both are counted down, and only anonymous memory up: so a
  // test below looks while its file is still mapped.
  const int result = static_cast<int>(::syscall(SYS_munmap, address, size));
  if (result == 0) g_mapped -= static_cast<std::int64_t>(size);
  return result;
}
int mlock(const void* address, std::size_t size) {
  const int result = static_cast<int>(::syscall(SYS_mlock, address, size));
  if (result == 0) g_locked += static_cast<std::int64_t>(size);
  return result;
}
}

namespace chunkio {
namespace {

struct Case {
  std::string name;
  LoaderOptions options = {};
  std::string file = "packed";
  std::int64_t memory_budget = std::int64_t{400} << 20;
  bool is_worst_case = false;  ///< What is said is rarely all in use.
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

/// Every third one of small pictures.
LoaderOptions single_rows(OrderMode order) {
  std::vector<std::int64_t> rows;
  for (std::int64_t row = 0; row < 60'000; row += 3) rows.push_back(row);
  return {.batch_size = 8,
          .rows = RowSelection::of(rows),
          .order = {.mode = order, .window_bytes = 64 << 10},
          .memory = {.prefetch_depth = 500},
          .io = {.num_threads = 2}};
}

LoaderOptions decoded(SourceKind source) {
  return {.batch_size = 16,
          .order = {.window_bytes = 8 << 20},
          .io = {.num_threads = 4, .source = source}};
}

/// A matrix of 20,000 rows of ten values; with `long_row` one among them has 2^24.
void write_sparse(const std::string& path, bool long_row) {
  constexpr std::int64_t kRows = 20'000;
  constexpr std::int64_t kLong = std::int64_t{1} << 24;
  SparseSpec spec{.row_lengths = std::vector<std::int64_t>(kRows, 10), .num_columns = kLong};
  if (long_row) spec.row_lengths[kRows / 3] = kLong;
  SparseWriter writer(path, spec);
  std::vector<std::int64_t> columns(static_cast<std::size_t>(long_row ? kLong : 10));
  std::iota(columns.begin(), columns.end(), 0);
  const std::vector<float> values(columns.size(), 1);
  for (std::int64_t row = 0; row < kRows; ++row) {
    const auto length = static_cast<std::size_t>(spec.row_lengths[static_cast<std::size_t>(row)]);
    writer.write_rows(row, 1, std::span(columns).first(length),
                      std::as_bytes(std::span(values).first(length)));
  }
  writer.close();
}

class MemoryBudgetTest : public testing::TestWithParam<Case> {};

TEST_P(MemoryBudgetTest, HoldsEverythingHeldBatchesIncluded) {
  const test::ScratchFolder scratch;
  std::string path = scratch.file("packed.h5");
  if (GetParam().file == "packed") {
    test::write_packed(
        path, {.num_samples = 6000, .height = 64, .width = 64, .channels = 3, .chunk_samples = 64});
  } else if (GetParam().file == "small_pictures") {
    test::write_packed(
        path, {.num_samples = 60'000, .height = 8, .width = 8, .channels = 1, .chunk_samples = 2});
  } else if (GetParam().file == "sparse" || GetParam().file == "sparse_long_row") {
    write_sparse(path, GetParam().file == "sparse_long_row");
  } else {
    path = test::h5py_file(scratch, GetParam().file);
  }
  // What libhdf5 and the C++ runtime set up once is not the loader's.
  {
    Loader warm_up(Dataset::open(path), {.batch_size = 4, .io = {.num_threads = 1}});
    for (const Batch& batch : warm_up.epoch(0)) (void)batch;
  }
  const Dataset dataset = Dataset::open(path);
  LoaderOptions options = GetParam().options;
  options.memory.budget = GetParam().memory_budget;

  const std::int64_t heap = g_heap;
  const std::int64_t mapped = g_mapped;
  g_heap_peak = heap;
  Loader loader(dataset, options);
  EXPECT_LE(loader.memory_bytes(), options.memory.budget);
  std::int64_t most_mapped = g_mapped - mapped;
  std::vector<Batch> held;
  for (std::int64_t epoch = 0; epoch < 2; ++epoch) {
    loader.start_epoch(epoch);
    while (std::optional<Batch> batch = loader.next()) {
      held.push_back(*std::move(batch));
      if (static_cast<std::int64_t>(held.size()) == options.memory.max_held)
        held.erase(held.begin());
      most_mapped = std::max(most_mapped, g_mapped - mapped);
    }
  }
  const std::int64_t used = most_mapped + g_heap_peak - heap + g_locked;
  RecordProperty("used", std::to_string(used));
  RecordProperty("said", std::to_string(loader.memory_bytes()));
  EXPECT_LE(used, loader.memory_bytes());
  // It must not be true because anything would be: most of what is said is in use.
  if (GetParam().is_worst_case) return;
  EXPECT_GE(used, loader.memory_bytes() / 2);
}

INSTANTIATE_TEST_SUITE_P(
    Loaders, MemoryBudgetTest,
    testing::Values(
        Case{"mapped",
             {.order = {.window_bytes = 8 << 20},
              .io = {.num_threads = 2, .source = SourceKind::mapped}}},
        Case{"scatter",
             {.order = {.window_bytes = 8 << 20},
              .io = {.num_threads = 4, .source = SourceKind::scatter}}},
        Case{"direct",
             {.order = {.window_bytes = 8 << 20},
              .io = {.num_threads = 4, .source = SourceKind::direct}}},
        Case{"hdf5",
             {.order = {.window_bytes = 8 << 20},
              .io = {.num_threads = 2, .source = SourceKind::hdf5}}},
        Case{"many_held",
             {.order = {.window_bytes = 2 << 20},
              .memory = {.prefetch_depth = 1, .max_held = 30},
              .io = {.num_threads = 1}}},
        Case{"random_order",
             {.order = {.mode = OrderMode::random},
              .memory = {.prefetch_depth = 8},
              .io = {.num_threads = 2}}},
        Case{"fields",
             {.fields = {"weights"}, .order = {.window_bytes = 8 << 20}, .io = {.num_threads = 2}}},
        Case{"resident",
             {.order = {.window_bytes = 8 << 20},
              .memory = {.resident = Resident::host},
              .io = {.num_threads = 2}}},
        Case{"batches_of_one",
             {.batch_size = 1,
              .order = {.window_bytes = 8 << 20},
              .memory = {.max_held = 1000},
              .io = {.num_threads = 2}}},
        Case{"batches_of_one_small_pictures",
             {.batch_size = 1, .order = {.window_bytes = 1 << 20}, .io = {.num_threads = 2}},
             "small_pictures"},
        Case{"batches_of_one_lanes",
             {.batch_size = 4,
              .order = {.window_bytes = 256 << 10, .lanes = 4},
              .io = {.num_threads = 2}},
             "small_pictures"},
        Case{"streamed_fields",
             {.batch_size = 30,
              .fields = {"flow"},
              .order = {.window_bytes = 4 << 20},
              .io = {.num_threads = 2}},
             "many_masks",
             20 << 20},
        Case{"verify",
             {.order = {.window_bytes = 8 << 20},
              .io = {.num_threads = 2, .verify = Verify::always}}},
        Case{"direct_io",
             {.order = {.window_bytes = 8 << 20}, .io = {.num_threads = 2, .direct_io = true}}},
        Case{"skip",
             {.order = {.window_bytes = 8 << 20},
              .io = {.num_threads = 2, .on_error = OnError::skip}}},
        Case{"single_rows", single_rows(OrderMode::chunk_shuffled), "small_pictures"},
        Case{"single_rows_random", single_rows(OrderMode::random), "small_pictures"},
        Case{"sparse",
             {.batch_size = 500, .order = {.window_bytes = 1 << 20}, .io = {.num_threads = 2}},
             "sparse"},
        Case{"sparse_resident",
             {.batch_size = 500,
              .order = {.window_bytes = 1 << 20},
              .memory = {.resident = Resident::host},
              .io = {.num_threads = 2}},
             "sparse"},
        Case{"sparse_long_row",
             {.batch_size = 500, .order = {.window_bytes = 1 << 20}, .io = {.num_threads = 2}},
             "sparse_long_row",
             std::int64_t{2} << 30,
             true},
        Case{"deflate_direct", decoded(SourceKind::direct), "large_deflate"},
        Case{"deflate_hdf5", decoded(SourceKind::hdf5), "large_deflate"}),
    [](const auto& instance) { return instance.param.name; });

// ---- Memory that grows with the number of chunks (format.md states it) ----

constexpr std::int64_t kNoteBytes = 100;

/// Chunks of one sample each, without labels.
DatasetSpec many_chunks(std::int64_t count) {
  return {.num_samples = count, .height = 8, .width = 8, .channels = 1, .channel_order = "gray"};
}

void write_chunks(DatasetWriter& writer, std::int64_t first) {
  const std::vector<std::byte> pixels(64);
  const std::string note(kNoteBytes, 'x');
  for (std::int64_t i = first; i < writer.num_chunks(); ++i) writer.write_chunk(i, pixels, note);
}

/// By how many bytes `measure` is larger for each chunk more. It looks at the heap: mapped memory
/// is of sizes that are chosen, or holds an index of which only the pages in use take memory.
double bytes_a_chunk(const std::function<std::int64_t(std::int64_t num_chunks)>& measure) {
  constexpr std::int64_t kFew = 1 << 17;  // Enough for all that has a limit to be at it.
  constexpr std::int64_t kMany = 1 << 18;
  static_cast<void>(measure(kFew));  // What is set up once is not counted.
  const std::int64_t few = measure(kFew);
  const double bytes = static_cast<double>(measure(kMany) - few) / (kMany - kFew);
  testing::Test::RecordProperty("bytes_a_chunk", std::to_string(bytes));
  return bytes;
}

TEST(BytesAChunk, OfReadersAreNone) {
  const test::ScratchFolder scratch;
  for (const Verify verify : {Verify::off, Verify::first_epoch}) {
    const double bytes = bytes_a_chunk([&](std::int64_t count) {
      const std::string path = scratch.file(std::to_string(count) + ".h5");
      if (!std::filesystem::exists(path)) {
        DatasetWriter writer(path, many_chunks(count), {.chunk_samples = 1});
        write_chunks(writer, 0);
        writer.close();
      }
      const std::int64_t before = g_heap;
      Loader loader(Dataset::open(path),
                    {.order = {.window_bytes = 1 << 16},
                     .io = {.num_threads = 1, .source = SourceKind::scatter, .verify = verify}});
      for (const Batch& batch : loader.epoch(0)) (void)batch;
      return g_heap - before;
    });
    // A byte says whether it was compared.
    EXPECT_NEAR(bytes, verify == Verify::off ? 0 : 1, 0.2);
  }
}

TEST(BytesAChunk, OfWritersAreFew) {
  const test::ScratchFolder scratch;
  const std::string path = scratch.file("out.h5");
  const auto of_run = [&](WriterOptions options, std::int64_t already_written) {
    options.chunk_samples = 1;
    options.overwrite = !options.resume;
    return bytes_a_chunk([&](std::int64_t count) {
      if (options.resume) {
        DatasetWriter earlier(path, many_chunks(count),
                              {.chunk_samples = 1, .overwrite = true, .identity = "{}"});
        write_chunks(earlier, already_written);
        earlier.commit();
      }
      const std::int64_t before = g_heap;
      DatasetWriter writer(path, many_chunks(count), options);
      if (!options.resume) write_chunks(writer, 0);
      writer.commit();
      return g_heap - before;
    });
  };
  // A digest of each sample, what was written of a chunk, and whether.
  EXPECT_NEAR(of_run({}, 0), 8 + 8 + 1, 0.5);
  // And what is or was to be read back: 16 bytes in a vector that grows.
  EXPECT_NEAR(of_run({.identity = "{}"}, 0), 17 + 24, 20);
  // And the notes, once, as allocators round them.
  EXPECT_NEAR(of_run({.identity = "{}", .resume = true}, 1), 17 + sizeof(ResumedChunk) + kNoteBytes,
              12);
}

}  // namespace
}  // namespace chunkio
