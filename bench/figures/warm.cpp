// Warm page cache. Each round times, one after the other:
//
//   automatic                one epoch through chunkio::Loader with the source that it has found to
//                            be the fastest, in epochs before
//   mapped, scatter, direct  the same with that source, and the stores found fastest
//   memcpy                   the same rows from a huge-page buffer in file order to a ring of the
//                            loader's size in delivered order, row group by row group as the loader
//                            visits them, with as many threads
//   streaming                the same with non-temporal stores
//   h5dread                  one H5Dread a sample in the same order, one thread; a prefix of the
//                            epoch, scaled to all of it. With the chunk cache that chunkio
//                            recommends, and without one, which is faster where samples are large:
//                            the faster of both counts

#include <algorithm>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <chunkio/chunk_layout.hpp>

#include "base/streaming_copy.hpp"
#include "figures/reading_suite.hpp"
#include "harness/copies.hpp"
#include "harness/h5dread_baseline.hpp"
#include "harness/spread.hpp"

namespace bench {
namespace {

/// Epochs in each timing: training goes through many, and the next is prefetched while one drains.
/// One alone begins with an empty pipeline, which is timed as a row of its own.
constexpr std::int64_t kEpochs = 4;

}  // namespace

void measure_warm(const Case& images, Report& report) {
  using chunkio::SourceKind;
  const Options& options = images.options;
  const std::span<const std::byte> pixels = images.pixels.bytes();
  const chunkio::Dataset dataset = chunkio::Dataset::open(images.path);

  std::vector<std::pair<std::string, chunkio::Loader>> loaders;
  for (const auto& [name, kind] : {std::pair{"automatic", SourceKind::automatic},
                                   {"mapped", SourceKind::mapped},
                                   {"scatter", SourceKind::scatter},
                                   {"direct", SourceKind::direct}}) {
    chunkio::LoaderOptions loader_options = images.loader_options(kind);
    loader_options.io.num_epochs = kEpoch + kEpochs;
    loaders.emplace_back(name, chunkio::Loader(dataset, loader_options));
    if (check_epoch(loaders.back().second, pixels) != images.order) {
      throw std::runtime_error(std::string(name) + " delivers another order");
    }
  }
  const chunkio::Loader& first = loaders.front().second;
  const std::int64_t threads = first.num_threads();
  const CopyPlan plan = plan_copies(first, images.order);
  const chunkio::DatasetInfo& info = dataset.info();
  const chunkio::ChunkCacheSettings cache =
      chunkio::recommend_cache(info.num_chunks, info.stored.chunk_shape[0] * images.size.bytes());
  const auto prefix =
      std::span(images.order)
          .first(static_cast<std::size_t>(
              std::min(options.h5dread_samples, static_cast<std::int64_t>(images.order.size()))));
  const double scale =
      static_cast<double>(images.order.size()) / static_cast<double>(prefix.size());
  const chunkio::base::HostBuffer ring(
      static_cast<std::size_t>(first.memory_bytes() / images.size.bytes() * images.size.bytes()));

  const auto run_copy = [&](Copy copy) {
    copy_rows(plan, pixels, ring.bytes(), images.sample_bytes(), threads, copy);
  };
  const chunkio::ChunkCacheSettings no_cache{.rdcc_nslots = 1, .rdcc_nbytes = 0, .rdcc_w0 = 1};
  const auto run_h5dread = [&](const chunkio::ChunkCacheSettings& settings) {
    read_one_by_one(images.path, settings, prefix, ring.bytes(), images.sample_bytes());
  };
  // Checked, and warm: the file in the page cache, the ring backed by memory.
  run_copy(plain_copy);
  check_ring("memcpy", images.order, pixels, ring.bytes(), images.sample_bytes());
  run_copy(chunkio::base::streaming_copy);
  check_ring("streaming", images.order, pixels, ring.bytes(), images.sample_bytes());
  run_h5dread(cache);
  check_ring("h5dread", prefix, pixels, ring.bytes(), images.sample_bytes());

  // Long enough to find out what is fastest.
  for (auto& [name, loader] : loaders) run_epochs(loader, kEpochs);
  chunkio::Loader alone(dataset, images.loader_options(SourceKind::mapped));
  run_epochs(alone, 1);

  std::map<std::string, std::vector<double>> seconds;  // of one epoch
  const auto time_loader = [&](std::pair<std::string, chunkio::Loader>& loader) {
    seconds[loader.first].push_back(seconds_of([&] { run_epochs(loader.second, kEpochs); }) /
                                    kEpochs);
  };
  const auto time_copy = [&](const char* name, Copy copy) {
    seconds[name].push_back(seconds_of([&] {
                              for (std::int64_t i = 0; i < kEpochs; ++i) run_copy(copy);
                            }) /
                            kEpochs);
  };
  for (std::int64_t round = 0; round < options.rounds; ++round) {
    // A baseline after each loader, so that none has the quiet end of a round.
    time_loader(loaders[0]);
    time_copy("memcpy", plain_copy);
    time_loader(loaders[1]);
    time_copy("streaming", chunkio::base::streaming_copy);
    time_loader(loaders[2]);
    time_loader(loaders[3]);
    // Which is the faster copy depends on the processor.
    seconds["faster copy"].push_back(
        std::min(seconds["memcpy"].back(), seconds["streaming"].back()));
    seconds["mapped, one epoch"].push_back(seconds_of([&] { run_epochs(alone, 1); }));
    seconds["h5dread, chunk cache"].push_back(scale * seconds_of([&] { run_h5dread(cache); }));
    seconds["h5dread, no cache"].push_back(scale * seconds_of([&] { run_h5dread(no_cache); }));
    seconds["h5dread"].push_back(
        std::min(seconds["h5dread, chunk cache"].back(), seconds["h5dread, no cache"].back()));
  }

  const auto speed = [&](const std::string& of, const std::string& against) {
    return ratios(seconds[against], seconds[of]);
  };
  const std::string size = images.size.name;
  const bool small = images.size.bytes() < 16384;
  report.add({"warm, source as chosen by default / faster of both copies", size,
              speed("automatic", "faster copy"), at_least(0.95),
              loaders[0].second.source_reason()});
  report.add({"warm mapped / non-temporal copy", size, speed("mapped", "streaming")});
  report.add({"warm mapped, one epoch alone / non-temporal copy", size,
              speed("mapped, one epoch", "streaming")});
  // Nothing is faster than the faster of both copies.
  constexpr double kFaster = 1.2;
  const bool possible = spread_of(speed("streaming", "memcpy")).median >= kFaster;
  report.add({"warm mapped / memcpy", size, speed("mapped", "memcpy"),
              possible ? std::optional(at_least(kFaster)) : std::nullopt,
              possible ? "" : "no target: a non-temporal copy is not so much faster here"});
  report.add(
      {"warm scatter / memcpy", size, speed("scatter", "memcpy"), at_least(small ? 1.0 : 0.8)});
  report.add(
      {"warm direct, unfiltered file / memcpy", size, speed("direct", "memcpy"), at_least(0.7)});
  report.add({"warm mapped / H5Dread of each image", size, speed("mapped", "h5dread")});
  report.add({"warm scatter / H5Dread of each image", size, speed("scatter", "h5dread")});

  for (const char* name : {"automatic", "mapped", "scatter", "direct", "memcpy", "streaming",
                           "h5dread, chunk cache", "h5dread, no cache"}) {
    report.add({std::string("warm ") + name + ", GB/s", size,
                gigabytes_per_second(images.total_bytes(), seconds[name])});
  }

  nlohmann::ordered_json rates;
  for (const auto& [name, times] : seconds) {
    std::vector<double> rate;
    for (const double time : times) rate.push_back(images.total_bytes() / time);
    rates[name] = to_json(spread_of(rate));
  }
  report.add_detail(size, "warm",
                    {{"threads", threads},
                     {"epochs", kEpochs},
                     {"ring_bytes", ring.size()},
                     {"chunk_samples", info.stored.chunk_shape[0]},
                     {"window_groups", first.window_groups()},
                     {"window_bytes", first.options().order.window_bytes},
                     {"h5dread_samples", prefix.size()},
                     {"h5dread_cache",
                      {{"rdcc_nslots", cache.rdcc_nslots},
                       {"rdcc_nbytes", cache.rdcc_nbytes},
                       {"rdcc_w0", cache.rdcc_w0}}},
                     {"seconds", seconds},
                     {"bytes_per_second", rates}});
}

}  // namespace bench
