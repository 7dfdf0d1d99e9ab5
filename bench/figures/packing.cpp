// The table of figures about packing. See packing_case.hpp for the experiments.

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "figures/packing_case.hpp"
#include "figures/suites.hpp"
#include "harness/machine.hpp"

namespace bench {
namespace {

struct Packing {
  PackingOptions options = {.h5pack = CHUNKIO_H5PACK,
                            .folder = std::filesystem::temp_directory_path().string()};
  std::optional<ScratchFolder> scratch;
  std::optional<PackingCase> images;
};

void add_options(PackingOptions& options, CLI::App& app) {
  app.add_option("--h5pack", options.h5pack, "The program to measure")->capture_default_str();
  add_folder(app, options.folder);
  add_count(app, "--threads", options.threads, "Of h5pack, the loops and the peers");
  add_rounds(app, options.rounds);
  add_count(app, "--pictures", options.large_images, "JPEG files of 218x178");
  add_count(app, "--small-pictures", options.small_images, "JPEG files of 32x32");
  app.add_option("--small-folder", options.small_folder,
                 "Real JPEG files of 32x32 in class folders, instead of drawn ones")
      ->check(CLI::ExistingDirectory);
  add_count(app, "--cifar-records", options.cifar_records, "Images in each of six CIFAR batches");
  add_bytes(app, "--repack-bytes", options.repack_bytes, "Image bytes to repack and to verify");
  add_count(app, "--few-files", options.few_files, "Files between which memory is compared");
  add_count(app, "--many-files", options.many_files, "Files between which memory is compared");
  add_peers(app, options.peers);
}

void describe(const PackingOptions& options, Report& report) {
  report.add_line(std::to_string(options.large_images) + " JPEG files of 218x178 and " +
                  (options.small_folder.empty() ? std::to_string(options.small_images) + " drawn"
                                                : "those of a folder") +
                  " of 32x32, all in the page cache; 6 CIFAR batches of " +
                  std::to_string(options.cifar_records) + " records; " +
                  gibibytes(options.repack_bytes) + " to repack and verify; " +
                  std::to_string(options.threads) + " threads; " + std::to_string(options.rounds) +
                  " interleaved rounds, median (range)");
}

}  // namespace

Suite packing_suite() {
  const auto state = std::make_shared<Packing>();
  const auto on_images = [&state](void (*measure)(PackingCase&, Report&)) {
    return [state, measure](Report& report) { measure(*state->images, report); };
  };
  return {.name = "packing",
          .description = "Figures about packing",
          .source = "figures/packing.cpp",
          .add_options = [state](CLI::App& app) { add_options(state->options, app); },
          .begin =
              [state](Report& report) {
                describe(state->options, report);
                state->scratch.emplace(state->options.folder);
                state->images.emplace(state->options, *state->scratch);
              },
          .experiments = {{"decode", on_images(measure_decode_only)},
                          {"small", on_images(measure_open_read_decode)},
                          {"cifar", on_images(measure_cifar)},
                          {"repack", on_images(measure_repack)},
                          {"peers", on_images(measure_pack_peers)},
                          {"verify", on_images(measure_verify)},
                          {"memory", on_images(measure_pack_memory)}}};
}

}  // namespace bench
