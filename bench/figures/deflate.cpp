// A file of generated images behind HDF5's deflate filter, warm page cache. libdeflate alone: the
// stored chunks in memory, undone by as many threads, each into a buffer of its own that stays in
// cache.

#include <array>
#include <cstddef>
#include <filesystem>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <libdeflate.h>

#include "base/access.hpp"
#include "figures/reading_suite.hpp"
#include "h5/chunk_index.hpp"
#include "h5/dataset_impl.hpp"
#include "harness/in_parallel.hpp"
#include "harness/spread.hpp"

namespace bench {
namespace {

std::vector<std::vector<std::byte>> read_stored_chunks(const chunkio::Dataset& dataset) {
  const chunkio::Dataset::Impl& opened = *chunkio::internal::Access::impl(dataset);
  std::vector<std::vector<std::byte>> chunks;
  for (std::int64_t chunk = 0; chunk < opened.leading->num_chunks; ++chunk) {
    const chunkio::h5::ChunkEntry entry =
        opened.leading->index->find(std::array{chunk, 0L, 0L, 0L});
    chunks.emplace_back(static_cast<std::size_t>(entry.stored_bytes));
    opened.bytes->read_at(entry.file_offset, chunks.back(), {});
  }
  return chunks;
}

void inflate_all(const std::vector<std::vector<std::byte>>& chunks, std::size_t chunk_bytes,
                 std::int64_t threads, std::span<const std::byte> expected) {
  const auto make_decompressor = [] {
    return std::unique_ptr<libdeflate_decompressor, decltype(&libdeflate_free_decompressor)>(
        libdeflate_alloc_decompressor(), &libdeflate_free_decompressor);
  };
  in_parallel(
      std::ssize(chunks), threads,
      [&] {
        return [&, decompressor = make_decompressor(),
                raw = chunkio::base::HostBuffer(chunk_bytes)](std::int64_t chunk) {
          const auto i = static_cast<std::size_t>(chunk);
          std::size_t size = 0;
          bool right =
              libdeflate_zlib_decompress(decompressor.get(), chunks[i].data(), chunks[i].size(),
                                         raw.data(), raw.size(), &size) == LIBDEFLATE_SUCCESS &&
              size == raw.size();
          if (!expected.empty()) {
            const std::span<const std::byte> part = expected.subspan(
                i * chunk_bytes, std::min(chunk_bytes, expected.size() - i * chunk_bytes));
            right &= std::equal(part.begin(), part.end(), raw.data());
          }
          if (!right) throw std::runtime_error("libdeflate did not give back the images");
        };
      },
      1);
}

}  // namespace

void measure_deflate(const Case& images, Report& report) {
  using chunkio::SourceKind;
  const std::string size = images.size.name;
  const std::string path = images.scratch.file(size + "-deflate.h5");
  const chunkio::base::HostBuffer pixels(images.pixels.size());
  draw_images(images.size, 0, pixels.bytes());
  // h5py's default.
  write_images_file(path, images.size, images.num_samples, pixels.bytes(),
                    {.filter = {.deflate_level = 4}});
  const chunkio::Dataset dataset = chunkio::Dataset::open(path);

  chunkio::LoaderOptions options = images.loader_options(SourceKind::direct);
  chunkio::Loader many(dataset, options);
  options.io.num_threads = 1;
  chunkio::Loader one(dataset, options);
  const std::vector<std::int64_t> order = check_epoch(many, pixels.bytes());
  if (check_epoch(one, pixels.bytes()) != order) {
    throw std::runtime_error("another number of threads delivers another order");
  }
  const chunkio::Loader chosen(dataset, images.loader_options(SourceKind::automatic));
  const std::vector<std::vector<std::byte>> chunks = read_stored_chunks(dataset);
  const auto chunk_bytes =
      static_cast<std::size_t>(dataset.info().stored.chunk_shape[0]) * images.sample_bytes();
  inflate_all(chunks, chunk_bytes, images.options.threads, pixels.bytes());

  run_epochs(many, 1);

  std::vector<double> scaling;
  std::vector<double> against_libdeflate;
  std::vector<double> rate;
  std::vector<double> libdeflate_rate;
  for (std::int64_t round = 0; round < images.options.rounds; ++round) {
    const double many_seconds = seconds_of([&] { run_epochs(many, 1); });
    const double libdeflate_seconds =
        seconds_of([&] { inflate_all(chunks, chunk_bytes, images.options.threads, {}); });
    const double one_seconds = seconds_of([&] { run_epochs(one, 1); });
    scaling.push_back(one_seconds / many_seconds);
    against_libdeflate.push_back(libdeflate_seconds / many_seconds);
    rate.push_back(images.total_bytes() / many_seconds);
    libdeflate_rate.push_back(images.total_bytes() / libdeflate_seconds);
  }
  const std::string chosen_note =
      "default for this file: " + std::string(chunkio::to_string(chosen.source()));
  report.add({"direct, deflate file: 2 threads / 1 thread", size,
              images.options.threads == 2 ? scaling : std::vector<double>{}, at_least(1.8),
              images.options.threads == 2 ? "" : "needs --threads 2"});
  report.add({"direct, deflate file / libdeflate alone", size, against_libdeflate, at_least(0.9),
              chosen_note});
  add_load_figures(size, "deflate file", many, report);
  report.add_detail(size, "deflate",
                    {{"stored_bytes", dataset.info().stored_bytes},
                     {"raw_bytes", images.total_bytes()},
                     {"bytes_per_second",
                      {{"direct", to_json(spread_of(rate))},
                       {"libdeflate", to_json(spread_of(libdeflate_rate))}}}});
  std::filesystem::remove(path);
}

}  // namespace bench
