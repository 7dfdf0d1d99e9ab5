/// What the experiments of one image size have in common.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <chunkio/dataset.hpp>
#include <chunkio/loader.hpp>

#include "base/host_memory.hpp"
#include "harness/drawn_images.hpp"
#include "harness/scratch_folder.hpp"

namespace bench {

using chunkio::test::ScratchFolder;

struct Options {
  std::int64_t bytes = std::int64_t{1} << 30;
  std::int64_t limited_bytes = std::int64_t{4} << 30;
  std::string folder = {};
  std::int64_t threads = 2;
  std::int64_t rounds = 5;
  std::int64_t batch_size = 256;
  std::int64_t h5dread_samples = 50'000;
  std::string peers = {};         ///< Virtual environment; empty: none.
};

/// The epoch that is checked and timed. The next is never prefetched.
inline constexpr std::int64_t kEpoch = 1;

struct Case {
  const Options& options;
  const ScratchFolder& scratch;
  ImageSize size;
  std::int64_t num_samples;
  std::string path;                  ///< Noise in a file of the library's own, unfiltered.
  chunkio::base::HostBuffer pixels;  ///< What is in it.
  std::vector<std::int64_t> order;   ///< Rows as an epoch delivers them.

  [[nodiscard]] std::size_t sample_bytes() const { return static_cast<std::size_t>(size.bytes()); }
  [[nodiscard]] double total_bytes() const {
    return static_cast<double>(num_samples) * static_cast<double>(size.bytes());
  }
  [[nodiscard]] chunkio::LoaderOptions loader_options(chunkio::SourceKind source) const {
    return {.batch_size = options.batch_size,
            .seed = 7,
            .io = {.num_threads = options.threads, .source = source, .num_epochs = kEpoch + 1}};
  }
};

/// Writes the file and delivers an epoch of it, which is checked.
Case make_case(const Options& options, const ScratchFolder& scratch, const ImageSize& size);

/// Drains the epoch, compares every image with its row of `pixels`, and returns the rows in
/// delivered order.
/// \throws std::runtime_error for a wrong, repeated or missing image.
std::vector<std::int64_t> check_epoch(chunkio::Loader& loader, std::span<const std::byte> pixels);

/// `count` epochs from kEpoch on: from the first start_epoch() to the release of the last batch.
void run_epochs(chunkio::Loader& loader, std::int64_t count);

template <class Work>
double seconds_of(Work work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace bench
