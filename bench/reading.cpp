// The table of figures about reading: the loader against the memory, the disk and its peers.
//
// Every figure is a ratio of two things interleaved in the same round; the median and range
// of the rounds are printed, with the target and whether the median meets it. What is timed was
// checked first. See experiments.hpp for the parts.

#include <algorithm>
#include <array>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "base/cpus.hpp"
#include "epoch_case.hpp"
#include "epoch_child.hpp"
#include "experiments.hpp"
#include "figure.hpp"
#include "machine.hpp"
#include "write_report.hpp"

namespace bench {
namespace {

/// Data below this many times the last-level cache measures the cache.
constexpr std::int64_t kCacheMultiple = 4;

struct Experiment {
  const char* name;
  void (*measure)(const Case&, Report&);
};
// In this order: what fills the page cache with other things comes last.
constexpr std::array<Experiment, 9> kExperiments = {{{"warm", measure_warm},
                                                     {"cold", measure_cold},
                                                     {"peers", measure_peers},
                                                     {"python", measure_python},
                                                     {"deflate", measure_deflate},
                                                     {"loads", measure_loads},
                                                     {"resume", measure_resume},
                                                     {"limited", measure_limited},
                                                     {"memory", measure_memory}}};

struct Output {
  std::vector<std::string> only;
  std::vector<std::string> sizes;
  std::string json;
  std::string markdown;
};

void describe_run(const Options& options, Report& report) {
  describe_machine(report);
  report.add_line(gibibytes(options.bytes) + " of images for each size (" +
                  gibibytes(options.limited_bytes) + " under a limit of a quarter of that), " +
                  std::to_string(options.threads) + " threads, batches of " +
                  std::to_string(options.batch_size) +
                  ", default windows (256 MiB) and chunks (4 MiB); " +
                  std::to_string(options.rounds) + " interleaved rounds, median (range)");
  if (options.bytes < kCacheMultiple * chunkio::base::last_level_cache_bytes()) {
    report.add_line("NOTE: --bytes is less than " + std::to_string(kCacheMultiple) +
                    " times the last-level cache; these figures measure the cache");
  }
}

int run(const Options& options, const Output& output) {
  const auto wanted = [](const std::vector<std::string>& names, const std::string& name) {
    return names.empty() || std::find(names.begin(), names.end(), name) != names.end();
  };
  Report report;
  describe_run(options, report);
  const ScratchFolder scratch(options.folder);
  for (const PictureSize& size : kPictureSizes) {
    if (!wanted(output.sizes, size.name)) continue;
    std::printf("\n%s, %lldx%lldx%lld\n", size.name, static_cast<long long>(size.height),
                static_cast<long long>(size.width), static_cast<long long>(size.channels));
    const Case pictures = make_case(options, scratch, size);
    for (const Experiment& experiment : kExperiments) {
      if (!wanted(output.only, experiment.name)) continue;
      try {
        experiment.measure(pictures, report);
      } catch (const std::exception& error) {
        report.add({std::string("experiment '") + experiment.name + "'",
                    size.name,
                    {},
                    {},
                    error.what(),
                    true});
      }
    }
    std::filesystem::remove(pictures.path);
  }
  write_report(report, "reading", output.json, output.markdown);
  return report.anything_failed() ? 1 : 0;
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  if (argc > 1 && std::string(argv[1]) == bench::kEpochChild) {
    return bench::epoch_child_main({argv + 2, argv + argc});
  }
  bench::Options options;
  options.folder = std::filesystem::temp_directory_path().string();
  options.peer_scripts = CHUNKIO_PEER_SCRIPTS;
  bench::Output output;
  CLI::App app("Prints the table of figures about reading.", "reading");
  app.add_option("--bytes", options.bytes, "Image bytes of each file")
      ->transform(CLI::AsSizeValue(false))
      ->check(CLI::Range(std::int64_t{1} << 20, std::int64_t{1} << 40));
  app.add_option("--limited-bytes", options.limited_bytes,
                 "Image bytes of the file that is read with a quarter of that as memory limit")
      ->transform(CLI::AsSizeValue(false))
      ->check(CLI::Range(std::int64_t{1} << 20, std::int64_t{1} << 40));
  app.add_option("--dir", options.folder, "Where the files go; they are removed at the end");
  app.add_option("--threads", options.threads, "Of the loader, the baselines and the peers")
      ->check(CLI::Range(1, 1024));
  app.add_option("--rounds", options.rounds, "Interleaved rounds, 5 or more for a figure to quote")
      ->check(CLI::Range(1, 1000));
  app.add_option("--batch", options.batch_size, "Samples a batch")->check(CLI::Range(1, 1 << 20));
  app.add_option("--h5dread-samples", options.h5dread_samples,
                 "Samples the H5Dread loop reads at most")
      ->check(CLI::Range(1, 1 << 30));
  std::vector<std::string> names;
  for (const bench::Experiment& experiment : bench::kExperiments) names.push_back(experiment.name);
  app.add_option("--only", output.only, "Only these experiments")
      ->delimiter(',')
      ->check(CLI::IsMember(names));
  std::vector<std::string> sizes;
  for (const bench::PictureSize& size : bench::kPictureSizes) sizes.push_back(size.name);
  app.add_option("--size", output.sizes, "Only these image sizes")
      ->delimiter(',')
      ->check(CLI::IsMember(sizes));
  app.add_option("--peers", options.peers,
                 "Virtual environment made by bench/peers/setup.sh; without it no peers run");
  app.add_option("--json", output.json, "Also write everything to this file");
  app.add_option("--markdown", output.markdown, "Also write the table to its section of this file");
  try {
    app.parse(argc, argv);
    return bench::run(options, output);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "reading: %s\n", error.what());
    return 1;
  }
}
