// The table of figures about small chunks: a file as h5py writes it with one image a chunk.
//
// Warm: the first epoch begins with opening the file, and so with reading the index of its chunks;
// later ones are of the same loader. Cold: all of that with nothing of the file in the page cache,
// against fio. Deflated: a later epoch against libdeflate alone, which undoes the same chunks in
// memory, each into a buffer that stays in cache.

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <hdf5.h>
#include <libdeflate.h>

#include "figures/suites.hpp"
#include "h5/handle.hpp"
#include "harness/cold_file.hpp"
#include "harness/epoch_case.hpp"
#include "harness/fio.hpp"
#include "harness/in_parallel.hpp"
#include "harness/spread.hpp"

namespace bench {
namespace {

constexpr ImageSize kImage{"CIFAR-sized", 32, 32, 3};

struct SmallChunksOptions {
  std::int64_t count = 300'000;
  std::int64_t batch_size = 256;
  std::int64_t threads = 2;
  std::int64_t rounds = 5;
  std::string folder = std::filesystem::temp_directory_path().string();
};

std::vector<std::byte> deflated(libdeflate_compressor* compressor,
                                std::span<const std::byte> image) {
  std::vector<std::byte> stored(libdeflate_zlib_compress_bound(compressor, image.size()));
  stored.resize(libdeflate_zlib_compress(compressor, image.data(), image.size(), stored.data(),
                                         stored.size()));
  return stored;
}

/// One image a chunk, behind the index that libhdf5 writes unless asked for another.
void write_file(const std::string& path, std::int64_t count, std::span<const std::byte> images,
                const std::vector<std::vector<std::byte>>& stored) {
  using namespace chunkio::h5;
  const auto require = [](bool done) {
    if (!done) throw std::runtime_error("libhdf5 cannot write the file");
  };
  const FileId file(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT));
  const std::array<hsize_t, 4> shape{static_cast<hsize_t>(count), 32, 32, 3};
  const std::array<hsize_t, 4> chunk{1, 32, 32, 3};
  const SpaceId space(H5Screate_simple(4, shape.data(), nullptr));
  const ListId creation(H5Pcreate(H5P_DATASET_CREATE));
  require(H5Pset_chunk(creation.get(), 4, chunk.data()) >= 0);
  if (!stored.empty()) require(H5Pset_deflate(creation.get(), 4) >= 0);
  const DatasetId dataset(H5Dcreate2(file.get(), "images", H5T_STD_U8LE, space.get(), H5P_DEFAULT,
                                     creation.get(), H5P_DEFAULT));
  require(dataset.get() >= 0);
  for (std::int64_t i = 0; i < count; ++i) {
    const auto at = static_cast<std::size_t>(i);
    const auto size = static_cast<std::size_t>(kImage.bytes());
    const std::span<const std::byte> bytes =
        stored.empty() ? images.subspan(at * size, size) : std::span<const std::byte>(stored[at]);
    const std::array<hsize_t, 4> place{static_cast<hsize_t>(i), 0, 0, 0};
    require(H5Dwrite_chunk(dataset.get(), H5P_DEFAULT, 0, place.data(), bytes.size(),
                           bytes.data()) >= 0);
  }
}

/// What is measured on.
class SmallChunks {
 public:
  explicit SmallChunks(const SmallChunksOptions& options)
      : options_(options),
        scratch_(options.folder),
        pixels_(static_cast<std::size_t>(options.count * kImage.bytes())),
        plain_(scratch_.file("plain.h5")),
        deflate_(scratch_.file("deflate.h5")),
        large_(scratch_.file("large.h5")) {
    draw_images(kImage, 0, pixels_.bytes());
    const std::unique_ptr<libdeflate_compressor, decltype(&libdeflate_free_compressor)> compressor(
        libdeflate_alloc_compressor(4), &libdeflate_free_compressor);
    const auto size = static_cast<std::size_t>(kImage.bytes());
    for (std::size_t at = 0; at < pixels_.size(); at += size) {
      stored_.push_back(deflated(compressor.get(), pixels_.bytes().subspan(at, size)));
    }
    write_file(plain_, options.count, pixels_.bytes(), {});
    write_file(deflate_, options.count, pixels_.bytes(), stored_);
    write_images_file(large_, kImage, options.count, pixels_.bytes());
    for (const std::string& path : {plain_, deflate_}) {
      chunkio::Loader loader(chunkio::Dataset::open(path), loader_options());
      check_epoch(loader, pixels_.bytes());
    }
  }

  void warm(Report& report) {
    std::vector<double> first;
    std::vector<double> later;
    std::vector<double> large;
    for (std::int64_t round = -1; round < options_.rounds; ++round) {
      std::optional<chunkio::Loader> loader;
      const double first_rate = rate([&] {
        loader.emplace(chunkio::Dataset::open(plain_), loader_options());
        run_epochs(*loader, 1);
      });
      const double later_rate = rate([&] { run_epochs(*loader, 1); });
      loader.emplace(chunkio::Dataset::open(large_), loader_options());
      run_epochs(*loader, 1);
      const double large_rate = rate([&] { run_epochs(*loader, 1); });
      if (round < 0) continue;  // fills the page cache
      first.push_back(first_rate);
      later.push_back(later_rate);
      large.push_back(large_rate);
    }
    report.add({"one image a chunk, warm: first epoch / later ones", kImage.name,
                ratios(first, later), at_least(0.5)});
    report.add(
        {"one image a chunk, warm: later epochs, images/s", kImage.name, later, at_least(1e6)});
    report.add({"one image a chunk, warm: first epoch, images/s", kImage.name, first});
    report.add({"later epochs / those of chunks of 4 MiB", kImage.name, ratios(later, large)});
  }

  void cold(Report& report) {
    const std::string row = "one image a chunk, cold: first epoch / fio";
    const std::string no_fio = reason_without_fio();
    if (!no_fio.empty()) {
      report.add({row, kImage.name, {}, at_least(0.9), no_fio});
      return;
    }
    std::vector<double> buffered;
    std::vector<double> direct;
    std::vector<double> disk;
    const auto first_epoch = [&](bool direct_io) {
      drop_from_page_cache(plain_);
      return total_bytes() / seconds_of([&] {
               chunkio::LoaderOptions options = loader_options();
               options.io.direct_io = direct_io;
               chunkio::Loader loader(chunkio::Dataset::open(plain_), options);
               run_epochs(loader, 1);
             });
    };
    first_epoch(false);  // memory that was touched before: see cold.cpp
    for (std::int64_t round = 0; round < options_.rounds; ++round) {
      const double before = measure_fio(plain_).higher();
      buffered.push_back(first_epoch(false));
      direct.push_back(first_epoch(true));
      disk.push_back(std::max(before, measure_fio(plain_).higher()));
    }
    report.add({row, kImage.name, ratios(buffered, disk), at_least(0.9)});
    report.add({"one image a chunk, cold, O_DIRECT: first epoch / fio", kImage.name,
                ratios(direct, disk)});
    std::vector<double> gigabytes;
    for (const double value : disk) gigabytes.push_back(value / 1e9);
    report.add({"fio, GB/s", kImage.name, gigabytes});
  }

  void deflate(Report& report) {
    std::vector<double> ours;
    std::vector<double> theirs;
    chunkio::Loader loader(chunkio::Dataset::open(deflate_), loader_options());
    run_epochs(loader, 1);
    inflate_all();
    for (std::int64_t round = 0; round < options_.rounds; ++round) {
      ours.push_back(rate([&] { run_epochs(loader, 1); }));
      theirs.push_back(rate([&] { inflate_all(); }));
    }
    report.add({"one deflated image a chunk, warm / libdeflate alone", kImage.name,
                ratios(ours, theirs), at_least(0.9)});
    report.add({"one deflated image a chunk, warm, images/s", kImage.name, ours});
  }

 private:
  [[nodiscard]] chunkio::LoaderOptions loader_options() const {
    return {.batch_size = options_.batch_size,
            .seed = 7,
            .io = {.num_threads = options_.threads, .num_epochs = kEpoch + 1}};
  }
  [[nodiscard]] double total_bytes() const { return static_cast<double>(pixels_.size()); }
  template <class Work>
  [[nodiscard]] double rate(Work work) const {
    return static_cast<double>(options_.count) / seconds_of(work);
  }

  void inflate_all() const {
    in_parallel(options_.count, options_.threads, [&] {
      const std::shared_ptr<libdeflate_decompressor> decompressor(libdeflate_alloc_decompressor(),
                                                                  &libdeflate_free_decompressor);
      return [this, decompressor,
              raw = std::vector<std::byte>(static_cast<std::size_t>(kImage.bytes()))](
                 std::int64_t i) mutable {
        const std::vector<std::byte>& stored = stored_[static_cast<std::size_t>(i)];
        std::size_t size = 0;
        if (libdeflate_zlib_decompress(decompressor.get(), stored.data(), stored.size(), raw.data(),
                                       raw.size(), &size) != LIBDEFLATE_SUCCESS ||
            size != raw.size()) {
          throw std::runtime_error("libdeflate did not give back the images");
        }
      };
    });
  }

  const SmallChunksOptions& options_;
  ScratchFolder scratch_;
  chunkio::base::HostBuffer pixels_;
  std::vector<std::vector<std::byte>> stored_;  // of deflate_, by image
  std::string plain_;
  std::string deflate_;
  std::string large_;
};

using State = MadeWhenAsked<SmallChunks, SmallChunksOptions>;

}  // namespace

Suite small_chunks_suite() {
  const auto state = std::make_shared<State>();
  return {.name = "small-chunks",
          .description = "Figures about files with one image a chunk",
          .source = "figures/small_chunks.cpp",
          .add_options =
              [state](CLI::App& app) {
                SmallChunksOptions& options = state->options;
                add_count(app, "--count", options.count, "Images of 32x32x3");
                add_count(app, "--batch", options.batch_size, "Samples a batch");
                add_count(app, "--threads", options.threads, "Of the loader and of libdeflate");
                add_rounds(app, options.rounds);
                add_folder(app, options.folder);
              },
          .begin =
              [state](Report& report) {
                report.add_line(std::to_string(state->options.count) + " images of 32x32x3, " +
                                std::to_string(state->options.threads) + " threads, batches of " +
                                std::to_string(state->options.batch_size) + "; " +
                                std::to_string(state->options.rounds) +
                                " interleaved rounds, median (range)");
              },
          .finish = [state] { state->made.reset(); },
          .experiments = {{"warm", [state](Report& report) { state->get().warm(report); }},
                          {"cold", [state](Report& report) { state->get().cold(report); }},
                          {"deflate", [state](Report& report) { state->get().deflate(report); }}}};
}

}  // namespace bench
