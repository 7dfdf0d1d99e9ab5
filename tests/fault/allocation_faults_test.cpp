/// Each allocation of the constructors and of starting an epoch fails once: an error comes out, and
/// nothing hangs, ends the process, or stays behind.
///
/// This program replaces operator new, and mmap() where the library calls it, by ones of which the
/// k-th call of any thread fails. What libhdf5 and CUDA take by themselves is not meant.
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <chunkio/chunkio.hpp>
#include <chunkio/cuda/device_loader.hpp>

#include "base/access.hpp"
#include "harness/scratch_folder.hpp"
#include "support/watched_gpu.hpp"
#include "support/pixels.hpp"
#include "support/process_counts.hpp"

namespace {

/// Allocations left until one fails; below 0: none does.
std::atomic<std::int64_t> g_until_failure{-1};
const pthread_t g_main_thread = pthread_self();

/// Whether it is the library that allocates: the GPU of the tests has threads, too, without a name.
bool in_library() {
  if (pthread_equal(pthread_self(), g_main_thread) != 0) return true;
  std::array<char, 16> name{};
  return pthread_getname_np(pthread_self(), name.data(), name.size()) == 0 &&
         std::string_view(name.data()).starts_with("chunkio");
}

/// Whether this allocation is the one that is to fail.
bool fails() {
  return g_until_failure.load() >= 0 && in_library() && g_until_failure.fetch_sub(1) == 0;
}

void* allocate(std::size_t size, std::size_t alignment) {
  if (fails()) return nullptr;
  const std::size_t whole =
      (std::max<std::size_t>(size, 1) + alignment - 1) / alignment * alignment;
  return alignment <= alignof(std::max_align_t) ? std::malloc(whole)
                                                : std::aligned_alloc(alignment, whole);
}

void* allocate_or_throw(std::size_t size, std::size_t alignment) {
  void* memory = allocate(size, alignment);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

constexpr std::size_t kUsual = alignof(std::max_align_t);

/// Mappings that failed on purpose.
std::atomic<std::int64_t> g_failed_mappings{0};

}  // namespace

// What the linker makes of mmap().
extern "C" {
void* __real_mmap(void* address, std::size_t size, int protection, int flags, int fd, off_t offset);
void* __wrap_mmap(void* address, std::size_t size, int protection, int flags, int fd,
                  off_t offset) {
  if (!fails()) return __real_mmap(address, size, protection, flags, fd, offset);
  ++g_failed_mappings;
  errno = ENOMEM;
  return MAP_FAILED;
}
}

// Where GCC inlines them, it takes memory that new has from malloc() for memory that nobody may
// free().
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"
#endif

void* operator new(std::size_t size) { return allocate_or_throw(size, kUsual); }
void* operator new[](std::size_t size) { return allocate_or_throw(size, kUsual); }
void* operator new(std::size_t size, std::align_val_t alignment) {
  return allocate_or_throw(size, static_cast<std::size_t>(alignment));
}
void* operator new[](std::size_t size, std::align_val_t alignment) {
  return allocate_or_throw(size, static_cast<std::size_t>(alignment));
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  return allocate(size, kUsual);
}
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept {
  return allocate(size, kUsual);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
void operator delete[](void* memory, const std::nothrow_t&) noexcept { std::free(memory); }

namespace chunkio {
namespace {

/// Of a run that can be resumed.
constexpr const char* kIdentity = R"({"name":"images","number":3,"shuffled":true})";

/// Longer than anything here takes, sanitizers and a busy machine included.
constexpr unsigned kHangSeconds = 20;

class AllocationFaultsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    test::write_packed(path_, {.num_samples = 60, .chunk_samples = 6});
    std::thread([] {}).join();  // with the first one ThreadSanitizer starts its own
    threads_before_ = test::settled_threads();
  }

  /// Fails the first allocation of `action`, then the second, ... until none is left to fail.
  /// `action` ends all that it began before it returns or throws.
  void sweep(const std::function<void()>& action) const {
    g_failed_mappings = 0;
    action();  // what is made once a process, such as thread-local memory, is no part of it
    std::int64_t failures = 0;
    for (std::int64_t k = 0;; ++k) {
      ::alarm(kHangSeconds);  // ends a hanging test by a signal
      std::optional<std::string> unexpected;
      g_until_failure = k;
      try {
        action();
      } catch (const std::bad_alloc&) {
      } catch (const Error& error) {
        g_until_failure = -1;
        // libhdf5 calls our file drivers, and says only that they failed.
        if (error.code() != ErrorCode::out_of_resources && error.code() != ErrorCode::hdf5_failed) {
          unexpected = error.what();
        }
      } catch (const std::exception& error) {
        g_until_failure = -1;
        unexpected = error.what();
      }
      const bool fired = g_until_failure.exchange(-1) < 0;
      ::alarm(0);
      ASSERT_FALSE(unexpected) << "allocation " << k << ": " << *unexpected;
      if (!fired) break;
      ++failures;
    }
    EXPECT_GT(failures, 5) << "hardly anything was made to fail";
    EXPECT_GT(g_failed_mappings, 0) << "no buffer was made to fail";
    EXPECT_EQ(test::settled_threads(), threads_before_) << "threads stayed behind";
  }

  [[nodiscard]] static LoaderOptions options() {
    return {.batch_size = 8, .seed = 3, .fields = {"weights"}, .io = {.num_threads = 2}};
  }

  test::ScratchFolder folder_;
  std::string path_ = folder_.file("train.h5");
  std::int64_t threads_before_ = 0;
};

TEST_F(AllocationFaultsTest, OpeningADataset) {
  sweep([&] { (void)Dataset::open(path_); });
}

TEST_F(AllocationFaultsTest, MakingALoader) {
  const Dataset dataset = Dataset::open(path_);
  for (const SourceKind source :
       {SourceKind::mapped, SourceKind::scatter, SourceKind::direct, SourceKind::hdf5}) {
    SCOPED_TRACE(to_string(source));
    LoaderOptions with_source = options();
    with_source.io.source = source;
    with_source.io.num_threads = 16;  // so that the first wait already when the last fails to start
    sweep([&] { const Loader loader(dataset, with_source); });
  }
}

TEST_F(AllocationFaultsTest, DeliveringAnEpoch) {
  const Dataset dataset = Dataset::open(path_);
  sweep([&] {
    Loader loader(dataset, options());
    loader.start_epoch(0);
    while (loader.next()) {
    }
  });
}

TEST_F(AllocationFaultsTest, StartingAWriterLeavesNothingBehind) {
  const std::string target = folder_.file("new.h5");
  const DatasetSpec spec{.num_samples = 20, .height = 4, .width = 4, .channels = 3};
  for (const std::string identity : {"", kIdentity}) {
    SCOPED_TRACE(identity);
    sweep([&] {
      try {
        const DatasetWriter writer(target, spec, {.chunk_samples = 4, .identity = identity});
      } catch (...) {
        g_until_failure = std::min<std::int64_t>(g_until_failure, -1);
        if (std::filesystem::exists(target + ".partial")) throw std::runtime_error("left behind");
        throw;
      }
    });
  }
}

TEST_F(AllocationFaultsTest, GoingOnWithAFileKeepsWhatIsThere) {
  const std::string target = folder_.file("new.h5");
  const std::vector<std::byte> rows(4 * 48);
  const DatasetSpec spec{.num_samples = 20, .height = 4, .width = 4, .channels = 3};
  const WriterOptions options{.chunk_samples = 4, .identity = kIdentity, .resume = true};
  {
    DatasetWriter writer(target, spec, options);
    writer.write_chunk(0, rows);
    writer.commit();
  }
  sweep([&] {
    const DatasetWriter writer(target, spec, options);
    if (writer.resumed().size() != 1) throw std::runtime_error("it began again");
  });
}

TEST_F(AllocationFaultsTest, ALoaderOnADevice) {
  const Dataset dataset = Dataset::open(path_);
  for (const auto resident : {cuda::DeviceResident::off, cuda::DeviceResident::require}) {
    SCOPED_TRACE(static_cast<int>(resident));
    sweep([&] {
      const auto gpu = std::make_shared<test::WatchedGpu>();
      const std::unique_ptr<CUstream_st, std::function<void(cuda::Stream)>> stream(
          gpu->create_stream(), [&gpu](cuda::Stream ours) { gpu->destroy_stream(ours); });
      cuda::DeviceLoader loader = internal::Access::make<cuda::DeviceLoader>(
          gpu, Loader(dataset, options()),
          cuda::DeviceOptions{.normalize = {.mean = {0}, .std = {1}}, .resident = resident});
      loader.start_epoch(0);
      while (loader.next(stream.get())) {
      }
    });
  }
}

}  // namespace
}  // namespace chunkio
