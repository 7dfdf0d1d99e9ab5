// A file of generated images behind HDF5's deflate filter, warm page cache. libdeflate alone: the
// stored chunks in memory, undone by as many threads, each into a buffer of its own that stays in
// cache.

#include <atomic>
#include <cstddef>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <libdeflate.h>

#include "experiments.hpp"
#include "spread.hpp"

namespace bench {
namespace {

void inflate_all(const std::vector<std::vector<std::byte>>& chunks, std::size_t chunk_bytes,
                 std::int64_t threads, std::span<const std::byte> expected) {
  std::atomic<std::size_t> next{0};
  std::atomic<bool> failed{false};
  const auto work = [&] {
    libdeflate_decompressor* decompressor = libdeflate_alloc_decompressor();
    const chunkio::base::HostBuffer raw(chunk_bytes);
    for (std::size_t i = next++; i < chunks.size(); i = next++) {
      std::size_t size = 0;
      if (libdeflate_zlib_decompress(decompressor, chunks[i].data(), chunks[i].size(), raw.data(),
                                     raw.size(), &size) != LIBDEFLATE_SUCCESS ||
          size != raw.size()) {
        failed = true;
      }
      if (!expected.empty()) {
        const std::span<const std::byte> part = expected.subspan(
            i * chunk_bytes, std::min(chunk_bytes, expected.size() - i * chunk_bytes));
        if (!std::equal(part.begin(), part.end(), raw.data())) failed = true;
      }
    }
    libdeflate_free_decompressor(decompressor);
  };
  {
    std::vector<std::jthread> workers;
    for (std::int64_t t = 1; t < threads; ++t) workers.emplace_back(work);
    work();
  }
  if (failed) throw std::runtime_error("libdeflate did not give back the images");
}

}  // namespace

void measure_deflate(const Case& pictures, Report& report) {
  using chunkio::SourceKind;
  const std::string size = pictures.size.name;
  const std::string path = pictures.scratch.file(size + "-deflate.h5");
  const chunkio::base::HostBuffer pixels(pictures.pixels.size());
  draw_pictures(pictures.size, 0, pixels.bytes());
  write_deflate_file(path, pictures.size, pictures.num_samples, pixels.bytes());
  const chunkio::Dataset dataset = chunkio::Dataset::open(path);

  chunkio::LoaderOptions options = pictures.loader_options(SourceKind::direct);
  chunkio::Loader many(dataset, options);
  options.num_threads = 1;
  chunkio::Loader one(dataset, options);
  const std::vector<std::int64_t> order = check_epoch(many, pixels.bytes());
  if (check_epoch(one, pixels.bytes()) != order) {
    throw std::runtime_error("another number of threads delivers another order");
  }
  const chunkio::Loader chosen(dataset, pictures.loader_options(SourceKind::automatic));
  const std::vector<std::vector<std::byte>> chunks = read_stored_chunks(path);
  const auto chunk_bytes =
      static_cast<std::size_t>(dataset.info().stored.chunk_shape[0]) * pictures.sample_bytes();
  inflate_all(chunks, chunk_bytes, pictures.options.threads, pixels.bytes());

  run_epochs(many, 1);

  std::vector<double> scaling;
  std::vector<double> against_libdeflate;
  std::vector<double> rate;
  std::vector<double> libdeflate_rate;
  for (std::int64_t round = 0; round < pictures.options.rounds; ++round) {
    const double many_seconds = seconds_of([&] { run_epochs(many, 1); });
    const double libdeflate_seconds =
        seconds_of([&] { inflate_all(chunks, chunk_bytes, pictures.options.threads, {}); });
    const double one_seconds = seconds_of([&] { run_epochs(one, 1); });
    scaling.push_back(one_seconds / many_seconds);
    against_libdeflate.push_back(libdeflate_seconds / many_seconds);
    rate.push_back(pictures.total_bytes() / many_seconds);
    libdeflate_rate.push_back(pictures.total_bytes() / libdeflate_seconds);
  }
  const std::string chosen_note =
      "default for this file: " + std::string(chunkio::to_string(chosen.source()));
  report.add({"direct, deflate file: 2 threads / 1 thread", size, at_least(1.8),
              pictures.options.threads == 2 ? scaling : std::vector<double>{},
              pictures.options.threads == 2 ? "" : "needs --threads 2"});
  report.add({"direct, deflate file / libdeflate alone", size, at_least(0.9), against_libdeflate,
              chosen_note});
  const chunkio::LoaderStats stats = many.epoch_stats(kEpoch);
  report.add(
      {"deflate file: chunk loads / chunks",
       size,
       at_most(1.0),
       {static_cast<double>(stats.chunk_loads) / static_cast<double>(dataset.info().num_chunks)}});
  report.add(
      {"deflate file: bytes read / bytes stored",
       size,
       at_most(1.01),
       {static_cast<double>(stats.bytes_read) / static_cast<double>(dataset.info().stored_bytes)}});
  report.add_detail(size, "deflate",
                    {{"stored_bytes", dataset.info().stored_bytes},
                     {"raw_bytes", pictures.total_bytes()},
                     {"bytes_per_second",
                      {{"direct", to_json(spread_of(rate))},
                       {"libdeflate", to_json(spread_of(libdeflate_rate))}}}});
  std::filesystem::remove(path);
}

}  // namespace bench
