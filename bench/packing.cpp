// The table of figures about packing: h5pack against its decoder, the disk and its peers.
//
// Every figure is a ratio of two things interleaved in the same round; the median and range
// of the rounds are printed, with the target and whether the median meets it. What is timed was
// checked first. See packing_case.hpp for the parts.

#include <algorithm>
#include <array>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "figure.hpp"
#include "machine.hpp"
#include "packing_case.hpp"
#include "write_report.hpp"

namespace bench {
namespace {

struct Experiment {
  const char* name;
  void (*measure)(PackingCase&, Report&);
};
constexpr std::array<Experiment, 7> kExperiments = {{{"decode", measure_decode_only},
                                                     {"small", measure_open_read_decode},
                                                     {"cifar", measure_cifar},
                                                     {"repack", measure_repack},
                                                     {"peers", measure_pack_peers},
                                                     {"verify", measure_verify},
                                                     {"memory", measure_pack_memory}}};

struct Output {
  std::vector<std::string> only;
  std::string json;
  std::string markdown;
};

void describe_run(const PackingOptions& options, Report& report) {
  describe_machine(report);
  report.add_line(std::to_string(options.large_pictures) + " JPEG files of 218x178 and " +
                  (options.small_folder.empty() ? std::to_string(options.small_pictures) + " drawn"
                                                : "those of a folder") +
                  " of 32x32, all in the page cache; 6 CIFAR batches of " +
                  std::to_string(options.cifar_records) + " records; " +
                  gibibytes(options.repack_bytes) + " to repack and verify; " +
                  std::to_string(options.threads) + " threads; " + std::to_string(options.rounds) +
                  " interleaved rounds, median (range)");
}

int run(const PackingOptions& options, const Output& output) {
  Report report;
  describe_run(options, report);
  const ScratchFolder scratch(options.folder);
  PackingCase packing(options, scratch);
  for (const Experiment& experiment : kExperiments) {
    const std::string name = experiment.name;
    if (!output.only.empty() &&
        std::find(output.only.begin(), output.only.end(), name) == output.only.end()) {
      continue;
    }
    std::printf("\n%s\n", experiment.name);
    try {
      experiment.measure(packing, report);
    } catch (const std::exception& error) {
      report.add({"experiment '" + name + "'", kLarge.name, {}, {}, error.what(), true});
    }
  }
  write_report(report, "packing", output.json, output.markdown);
  return report.anything_failed() ? 1 : 0;
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  if (argc > 2 && std::string(argv[1]) == bench::kPeakOf) {
    return bench::peak_of_main({argv + 2, argv + argc});
  }
  bench::PackingOptions options;
  options.h5pack = CHUNKIO_H5PACK;
  options.folder = std::filesystem::temp_directory_path().string();
  options.peer_scripts = CHUNKIO_PEER_SCRIPTS;
  bench::Output output;
  CLI::App app("Prints the table of figures about packing.", "packing");
  const auto add_count = [&app](const char* name, std::int64_t& target, const char* text) {
    app.add_option(name, target, text)->check(CLI::Range(1, 1 << 30));
  };
  app.add_option("--h5pack", options.h5pack, "The program to measure")->capture_default_str();
  app.add_option("--dir", options.folder, "Where the files go; they are removed at the end");
  add_count("--threads", options.threads, "Of h5pack, the loops and the peers");
  add_count("--rounds", options.rounds, "Interleaved rounds, 5 or more for a figure to quote");
  add_count("--pictures", options.large_pictures, "JPEG files of 218x178");
  add_count("--small-pictures", options.small_pictures, "JPEG files of 32x32");
  app.add_option("--small-folder", options.small_folder,
                 "Real JPEG files of 32x32 in class folders, instead of drawn ones")
      ->check(CLI::ExistingDirectory);
  add_count("--cifar-records", options.cifar_records, "Images in each of six CIFAR batches");
  app.add_option("--repack-bytes", options.repack_bytes, "Image bytes to repack and to verify")
      ->transform(CLI::AsSizeValue(false))
      ->check(CLI::Range(std::int64_t{1} << 20, std::int64_t{1} << 40));
  add_count("--few-files", options.few_files, "Files between which memory is compared");
  add_count("--many-files", options.many_files, "Files between which memory is compared");
  std::vector<std::string> names;
  for (const bench::Experiment& experiment : bench::kExperiments) names.push_back(experiment.name);
  app.add_option("--only", output.only, "Only these experiments")
      ->delimiter(',')
      ->check(CLI::IsMember(names));
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
    std::fprintf(stderr, "packing: %s\n", error.what());
    return 1;
  }
}
