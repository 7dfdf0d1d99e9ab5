// How fast the loader streams an epoch: against copies of the same rows, and against H5Dread.
//
// Warm page cache. For each picture size a file of noise is written, one epoch is checked byte by
// byte, and then rounds are run, each of which times, one after the other:
//
//   mapped, scatter  one epoch through chunkio::Loader with that source, from start_epoch() to the
//                    release of the last batch; the next epoch is not prefetched, so nothing is
//                    done before or after the clock
//   memcpy           the same rows from a huge-page buffer in file order to a ring of the loader's
//                    size in delivered order, row group by row group as the loader visits them,
//                    with as many threads
//   streaming        the same with non-temporal stores
//   h5dread          one H5Dread a sample in the same order, one thread, chunk cache as chunkio
//                    recommends it; a prefix of the epoch, scaled to all of it
//
// Ratios are taken within a round; the table has their median and range.

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <CLI/CLI.hpp>
#include <hdf5.h>
#include <nlohmann/json.hpp>

#include <chunkio/chunkio.hpp>

#include "base/host_memory.hpp"
#include "base/streaming_copy.hpp"

namespace {

using chunkio::base::HostBuffer;
using Json = nlohmann::ordered_json;

constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;
/// Data below this many times the last-level cache measures the cache.
constexpr std::int64_t kCacheMultiple = 4;
/// The epoch that is checked and timed.
constexpr std::int64_t kEpoch = 1;

struct Options {
  std::int64_t bytes = std::int64_t{1} << 30;
  std::string folder = std::filesystem::temp_directory_path().string();
  std::int64_t threads = 0;
  std::int64_t rounds = 5;
  std::int64_t batch_size = 256;
  std::int64_t h5dread_samples = 50'000;
  std::string json;
};

struct PictureSize {
  const char* name;
  std::int64_t height, width, channels;
};
constexpr PictureSize kSizes[] = {{"CelebA-sized", 218, 178, 3}, {"CIFAR-sized", 32, 32, 3}};

/// A folder that is gone when the program ends.
class ScratchFolder {
 public:
  explicit ScratchFolder(const std::string& parent) {
    std::string pattern = parent + "/chunkio-bench-XXXXXX";
    if (::mkdtemp(pattern.data()) == nullptr) {
      throw std::runtime_error("cannot make a folder in " + parent + "; name another with --dir");
    }
    path_ = pattern;
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  ~ScratchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  [[nodiscard]] std::string file(const char* name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

/// Noise, so that no byte can be mistaken for another.
void fill_with_noise(std::span<std::byte> bytes) {
  std::uint64_t state = 1;
  for (std::size_t i = 0; i < bytes.size(); i += sizeof(std::uint64_t)) {
    state += 0x9E3779B97F4A7C15u;
    std::uint64_t z = state;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z ^= z >> 27;
    std::memcpy(bytes.data() + i, &z, std::min(sizeof(z), bytes.size() - i));
  }
}

void write_file(const std::string& path, const PictureSize& size, std::int64_t num_samples,
                std::span<const std::byte> pixels) {
  const chunkio::DatasetSpec spec{.num_samples = num_samples,
                                  .height = size.height,
                                  .width = size.width,
                                  .channels = size.channels};
  chunkio::DatasetWriter writer(path, spec);
  for (std::int64_t chunk = 0; chunk < writer.num_chunks(); ++chunk) {
    const auto first = static_cast<std::size_t>(chunk * writer.chunk_bytes());
    writer.write_chunk(
        chunk, pixels.subspan(first, std::min(static_cast<std::size_t>(writer.chunk_bytes()),
                                              pixels.size() - first)));
  }
  writer.close();
}

/// Drains the epoch, compares every picture with its row of `pixels`, and returns the rows in
/// delivered order.
std::vector<std::int64_t> check_epoch(chunkio::Loader& loader, std::span<const std::byte> pixels) {
  const auto sample_bytes = static_cast<std::size_t>(loader.dataset().info().sample_bytes());
  std::vector<std::int64_t> order;
  std::vector<bool> seen(static_cast<std::size_t>(loader.dataset().size()));
  for (const chunkio::Batch& batch : loader.epoch(kEpoch)) {
    const std::byte* picture = batch.images().data();
    for (const std::int64_t row : batch.sample_ids()) {
      const auto at = static_cast<std::size_t>(row);
      if (std::memcmp(picture, pixels.data() + at * sample_bytes, sample_bytes) != 0 ||
          seen.at(at)) {
        throw std::runtime_error("the loader delivered a wrong picture for row " +
                                 std::to_string(row));
      }
      seen[at] = true;
      order.push_back(row);
      picture += sample_bytes;
    }
  }
  if (order.size() != seen.size()) throw std::runtime_error("the loader left out samples");
  return order;
}

/// One visit of a row group: which rows go to which places of the epoch.
struct Move {
  std::int64_t row = 0;
  std::int64_t position = 0;
};
struct Visit {
  std::size_t window = 0;
  std::vector<Move> moves;  // ascending by row
};
struct CopyPlan {
  std::vector<Visit> visits;
  std::vector<std::int64_t> visits_of_window;
};

/// Recovers from the delivered order what the loader did: windows of `window_groups` row groups,
/// their rows mixed. A window ends where as many groups have been met and delivered whole.
CopyPlan plan_copies(const chunkio::Loader& loader, std::span<const std::int64_t> order) {
  const chunkio::RowGroups& groups = loader.row_groups();
  CopyPlan plan;
  std::map<std::int64_t, std::size_t> visit_of_group;
  std::int64_t rows_missing = 0;
  std::int64_t groups_left = groups.num_groups();
  for (std::size_t position = 0; position < order.size(); ++position) {
    const std::int64_t group = order[position] / groups.group_samples();
    const auto [entry, is_new] = visit_of_group.try_emplace(group, plan.visits.size());
    if (is_new) {
      plan.visits.push_back({plan.visits_of_window.size(), {}});
      rows_missing += groups.length(group);
      --groups_left;
    }
    plan.visits[entry->second].moves.push_back(
        {order[position], static_cast<std::int64_t>(position)});
    --rows_missing;
    const auto met = static_cast<std::int64_t>(visit_of_group.size());
    if (rows_missing == 0 && (met == loader.window_groups() || groups_left == 0)) {
      plan.visits_of_window.push_back(met);
      visit_of_group.clear();
    }
  }
  for (Visit& visit : plan.visits) {
    std::sort(visit.moves.begin(), visit.moves.end(),
              [](const Move& a, const Move& b) { return a.row < b.row; });
  }
  return plan;
}

void plain_copy(std::byte* target, const std::byte* source, std::size_t size) noexcept {
  std::memcpy(target, source, size);
}

/// Copies an epoch's rows to the ring with `threads` threads. As in a loader, a window waits until
/// the one before the last is complete: its places are in use until then.
template <class Copy>
void copy_rows(const CopyPlan& plan, std::span<const std::byte> pixels, std::span<std::byte> ring,
               std::size_t sample_bytes, std::int64_t threads, Copy copy) {
  std::vector<std::atomic<std::int64_t>> visits_left(plan.visits_of_window.size());
  for (std::size_t w = 0; w < visits_left.size(); ++w) visits_left[w] = plan.visits_of_window[w];
  const std::size_t ring_rows = ring.size() / sample_bytes;
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t v = next++; v < plan.visits.size(); v = next++) {
      const Visit& visit = plan.visits[v];
      if (visit.window >= 2) {
        while (visits_left[visit.window - 2].load(std::memory_order_acquire) != 0) {
          std::this_thread::yield();
        }
      }
      for (const Move& move : visit.moves) {
        const auto slot = static_cast<std::size_t>(move.position) % ring_rows;
        copy(ring.data() + slot * sample_bytes,
             pixels.data() + static_cast<std::size_t>(move.row) * sample_bytes, sample_bytes);
      }
      chunkio::base::store_fence();
      visits_left[visit.window].fetch_sub(1, std::memory_order_release);
    }
  };
  std::vector<std::jthread> workers;
  for (std::int64_t t = 1; t < threads; ++t) workers.emplace_back(work);
  work();
}

template <class Id>
Id check_id(Id id, const char* what) {
  if (id < 0) throw std::runtime_error(std::string("HDF5: ") + what + " failed");
  return id;
}

/// One H5Dread a sample, rows in the given order, in a file opened anew with the given chunk cache.
void read_one_by_one(const std::string& path, const chunkio::ChunkCacheSettings& cache,
                     std::span<const std::int64_t> order, std::span<std::byte> ring,
                     std::size_t sample_bytes) {
  const hid_t file = check_id(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), "H5Fopen");
  const hid_t access = check_id(H5Pcreate(H5P_DATASET_ACCESS), "H5Pcreate");
  check_id(H5Pset_chunk_cache(access, cache.rdcc_nslots, cache.rdcc_nbytes, cache.rdcc_w0),
           "H5Pset_chunk_cache");
  const hid_t images = check_id(H5Dopen2(file, "images", access), "H5Dopen2");
  const hid_t space = check_id(H5Dget_space(images), "H5Dget_space");
  hsize_t count[4] = {};
  check_id(H5Sget_simple_extent_dims(space, count, nullptr), "H5Sget_simple_extent_dims");
  count[0] = 1;
  const hid_t memory = check_id(H5Screate_simple(4, count, nullptr), "H5Screate_simple");
  const std::size_t ring_rows = ring.size() / sample_bytes;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const hsize_t start[4] = {static_cast<hsize_t>(order[i]), 0, 0, 0};
    check_id(H5Sselect_hyperslab(space, H5S_SELECT_SET, start, nullptr, count, nullptr),
             "H5Sselect_hyperslab");
    check_id(H5Dread(images, H5T_NATIVE_UINT8, memory, space, H5P_DEFAULT,
                     ring.data() + i % ring_rows * sample_bytes),
             "H5Dread");
  }
  H5Sclose(memory);
  H5Sclose(space);
  H5Dclose(images);
  H5Pclose(access);
  H5Fclose(file);
}

/// Rows that a baseline left in the ring are the last that were delivered to their places.
void check_ring(const char* what, std::span<const std::int64_t> order,
                std::span<const std::byte> pixels, std::span<const std::byte> ring,
                std::size_t sample_bytes) {
  const std::size_t ring_rows = ring.size() / sample_bytes;
  const std::size_t first = order.size() > ring_rows ? order.size() - ring_rows : 0;
  for (std::size_t i = first; i < order.size(); ++i) {
    if (std::memcmp(ring.data() + i % ring_rows * sample_bytes,
                    pixels.data() + static_cast<std::size_t>(order[i]) * sample_bytes,
                    sample_bytes) != 0) {
      throw std::runtime_error(std::string(what) + " left a wrong picture at position " +
                               std::to_string(i));
    }
  }
}

template <class Work>
double seconds_of(Work work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

struct Spread {
  double median = 0, lowest = 0, highest = 0;
};

Spread spread_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  const double median =
      values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
  return {median, values.front(), values.back()};
}

Json to_json(const Spread& spread) {
  return {{"median", spread.median}, {"min", spread.lowest}, {"max", spread.highest}};
}

Json measure(const PictureSize& size, const Options& options, const ScratchFolder& scratch) {
  const std::int64_t picture_bytes = size.height * size.width * size.channels;
  const std::int64_t num_samples = std::max<std::int64_t>(options.bytes / picture_bytes, 1);
  const auto sample_bytes = static_cast<std::size_t>(picture_bytes);
  const HostBuffer source(static_cast<std::size_t>(num_samples) * sample_bytes);
  fill_with_noise(source.bytes());
  const std::span<const std::byte> pixels = source.bytes();
  const std::string path = scratch.file(size.name);
  write_file(path, size, num_samples, pixels);

  const chunkio::Dataset dataset = chunkio::Dataset::open(path);
  const chunkio::DatasetInfo& info = dataset.info();
  chunkio::LoaderOptions loader_options{.batch_size = options.batch_size,
                                        .seed = 7,
                                        .num_threads = options.threads,
                                        .source = chunkio::SourceKind::mapped,
                                        .num_epochs = kEpoch + 1};
  chunkio::Loader mapped(dataset, loader_options);
  loader_options.source = chunkio::SourceKind::scatter;
  chunkio::Loader scatter(dataset, loader_options);
  const std::int64_t threads = mapped.num_threads();
  const std::vector<std::int64_t> order = check_epoch(mapped, pixels);
  if (check_epoch(scatter, pixels) != order) throw std::runtime_error("the sources differ");
  const CopyPlan plan = plan_copies(mapped, order);

  const std::int64_t chunk_samples = info.stored.chunk_shape[0];
  const chunkio::ChunkCacheSettings cache =
      chunkio::recommend_cache(info.num_chunks, chunk_samples * picture_bytes);
  const std::span<const std::int64_t> prefix = std::span(order).first(static_cast<std::size_t>(
      std::min(options.h5dread_samples, static_cast<std::int64_t>(order.size()))));
  const double scale = static_cast<double>(order.size()) / static_cast<double>(prefix.size());

  const HostBuffer ring(
      static_cast<std::size_t>(mapped.memory_bytes() / picture_bytes * picture_bytes));
  const auto run_epoch = [](chunkio::Loader& loader) {
    loader.start_epoch(kEpoch);
    while (loader.next()) {
    }
  };
  const auto run_memcpy = [&] {
    copy_rows(plan, pixels, ring.bytes(), sample_bytes, threads, plain_copy);
  };
  const auto run_streaming = [&] {
    copy_rows(plan, pixels, ring.bytes(), sample_bytes, threads, chunkio::base::streaming_copy);
  };
  const auto run_h5dread = [&] {
    read_one_by_one(path, cache, prefix, ring.bytes(), sample_bytes);
  };

  // Checked, and warm: the file in the page cache, the ring backed by memory.
  run_memcpy();
  check_ring("memcpy", order, pixels, ring.bytes(), sample_bytes);
  std::fill(ring.bytes().begin(), ring.bytes().end(), std::byte{0});
  run_streaming();
  check_ring("streaming", order, pixels, ring.bytes(), sample_bytes);
  std::fill(ring.bytes().begin(), ring.bytes().end(), std::byte{0});
  run_h5dread();
  check_ring("h5dread", prefix, pixels, ring.bytes(), sample_bytes);
  run_epoch(mapped);
  run_epoch(scatter);

  const std::vector<std::string> loaders = {"mapped", "scatter"};
  const std::vector<std::string> baselines = {"memcpy", "streaming", "h5dread"};
  Json rounds = Json::array();
  std::map<std::string, std::map<std::string, std::vector<double>>> ratios;
  std::map<std::string, std::vector<double>> rates;  // bytes a second
  const double bytes = static_cast<double>(num_samples * picture_bytes);
  for (std::int64_t round = 0; round < options.rounds; ++round) {
    std::map<std::string, double> seconds;
    seconds["mapped"] = seconds_of([&] { run_epoch(mapped); });
    seconds["memcpy"] = seconds_of(run_memcpy);
    seconds["scatter"] = seconds_of([&] { run_epoch(scatter); });
    seconds["streaming"] = seconds_of(run_streaming);
    seconds["h5dread"] = seconds_of(run_h5dread) * scale;
    rounds.push_back({{"seconds", seconds}});
    for (const auto& [name, time] : seconds) rates[name].push_back(bytes / time);
    for (const std::string& loader : loaders) {
      for (const std::string& baseline : baselines) {
        ratios[loader][baseline].push_back(seconds[baseline] / seconds[loader]);
      }
    }
  }

  const auto count = [](std::int64_t value) { return static_cast<long long>(value); };
  std::printf(
      "\n%s: %lld pictures of %lldx%lldx%lld, %.2f GiB, chunks of %lld, window of %lld chunks, "
      "ring "
      "%.2f GiB\n",
      size.name, count(num_samples), count(size.height), count(size.width), count(size.channels),
      bytes / kGiB, count(chunk_samples), count(mapped.window_groups()),
      static_cast<double>(ring.size()) / kGiB);
  std::printf("  H5Dread: nslots %llu, nbytes %llu, w0 %g; %zu of %zu samples, scaled by %.2f\n",
              static_cast<unsigned long long>(cache.rdcc_nslots),
              static_cast<unsigned long long>(cache.rdcc_nbytes), cache.rdcc_w0, prefix.size(),
              order.size(), scale);
  std::printf("  %-10s %12s %7s", "", "images/s", "GB/s");
  for (const std::string& baseline : baselines) std::printf("   / %-19s", baseline.c_str());
  std::printf("\n");
  Json rate_json;
  Json ratio_json;
  for (const char* name : {"mapped", "scatter", "memcpy", "streaming", "h5dread"}) {
    const Spread rate = spread_of(rates[name]);
    rate_json[name] = to_json(rate);
    std::printf("  %-10s %12.0f %7.2f", name, rate.median / static_cast<double>(picture_bytes),
                rate.median / 1e9);
    if (ratios.contains(name)) {
      for (const std::string& baseline : baselines) {
        const Spread ratio = spread_of(ratios[name][baseline]);
        ratio_json[name][baseline] = to_json(ratio);
        std::printf("   %5.2f (%5.2f to %5.2f)", ratio.median, ratio.lowest, ratio.highest);
      }
    }
    std::printf("\n");
  }
  std::fflush(stdout);
  std::filesystem::remove(path);

  return {{"name", size.name},
          {"shape", {num_samples, size.height, size.width, size.channels}},
          {"bytes", num_samples * picture_bytes},
          {"chunk_samples", chunk_samples},
          {"window_groups", mapped.window_groups()},
          {"window_bytes", mapped.options().window_bytes},
          {"batch_size", options.batch_size},
          {"threads", threads},
          {"ring_bytes", ring.size()},
          {"h5dread_samples", prefix.size()},
          {"h5dread_cache",
           {{"rdcc_nslots", cache.rdcc_nslots},
            {"rdcc_nbytes", cache.rdcc_nbytes},
            {"rdcc_w0", cache.rdcc_w0}}},
          {"rounds", rounds},
          {"bytes_per_second", rate_json},
          {"loader_speed_relative_to", ratio_json}};
}

std::string cpu_model() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown processor";
}

void run(const Options& options) {
  unsigned major = 0;
  unsigned minor = 0;
  unsigned release = 0;
  check_id(H5get_libversion(&major, &minor, &release), "H5get_libversion");
  const std::string hdf5 =
      std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(release);
  const auto last_level_cache = static_cast<std::int64_t>(::sysconf(_SC_LEVEL3_CACHE_SIZE));
  std::printf(
      "%s, %u CPUs, last-level cache %.0f MiB; HDF5 %s; warm page cache; %lld rounds; median "
      "(range)\n",
      cpu_model().c_str(), std::thread::hardware_concurrency(),
      static_cast<double>(last_level_cache) / (1 << 20), hdf5.c_str(),
      static_cast<long long>(options.rounds));
  const bool large_enough = options.bytes >= kCacheMultiple * last_level_cache;
  if (!large_enough) {
    std::printf(
        "NOTE: --bytes is less than %lld times the last-level cache; these figures measure the "
        "cache.\n",
        static_cast<long long>(kCacheMultiple));
  }
  const ScratchFolder scratch(options.folder);
  Json report = {{"program", "loader_vs_baselines"},
                 {"processor", cpu_model()},
                 {"cpus", std::thread::hardware_concurrency()},
                 {"last_level_cache_bytes", last_level_cache},
                 {"larger_than_cache", large_enough},
                 {"hdf5_version", hdf5},
                 {"page_cache", "warm"},
                 {"cases", Json::array()}};
  for (const PictureSize& size : kSizes) report["cases"].push_back(measure(size, options, scratch));
  if (!options.json.empty()) {
    std::ofstream file(options.json);
    file << report.dump(2) << '\n';
    file.close();
    if (!file) throw std::runtime_error("cannot write " + options.json);
  }
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("Times the loader against copies of the same rows and against H5Dread a sample.",
               "loader_vs_baselines");
  app.add_option("--bytes", options.bytes, "Picture bytes of each file")
      ->transform(CLI::AsSizeValue(false))
      ->check(CLI::Range(std::int64_t{1} << 20, std::int64_t{1} << 40));
  app.add_option("--dir", options.folder, "Where the files go; they are removed at the end");
  app.add_option("--threads", options.threads,
                 "Of the loader and of the copies; 0: the loader's default")
      ->check(CLI::Range(0, 1024));
  app.add_option("--rounds", options.rounds, "Interleaved rounds, 5 or more for a figure to quote")
      ->check(CLI::Range(1, 1000));
  app.add_option("--batch", options.batch_size, "Samples a batch")->check(CLI::Range(1, 1 << 20));
  app.add_option("--h5dread-samples", options.h5dread_samples,
                 "Samples the H5Dread loop reads at most")
      ->check(CLI::Range(1, 1 << 30));
  app.add_option("--json", options.json, "Also write everything to this file");
  try {
    app.parse(argc, argv);
    run(options);
    return 0;
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "loader_vs_baselines: %s\n", error.what());
    return 1;
  }
}
