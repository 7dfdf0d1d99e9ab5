// The table of figures about reading. See reading_suite.hpp for the experiments.

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "figures/reading_suite.hpp"
#include "figures/suites.hpp"
#include "harness/machine.hpp"

namespace bench {
namespace {

struct Reading {
  Options options = {.folder = std::filesystem::temp_directory_path().string()};
  std::optional<ScratchFolder> scratch;
  std::optional<Case> images;
};

void add_options(Options& options, CLI::App& app) {
  add_bytes(app, "--bytes", options.bytes, "Image bytes of each file");
  add_bytes(app, "--limited-bytes", options.limited_bytes,
            "Image bytes of the file that is read with a quarter of that as memory limit");
  add_folder(app, options.folder);
  add_count(app, "--threads", options.threads, "Of the loader, the baselines and the peers");
  add_rounds(app, options.rounds);
  add_count(app, "--batch", options.batch_size, "Samples a batch");
  add_count(app, "--h5dread-samples", options.h5dread_samples,
            "Samples the H5Dread loop reads at most");
  add_peers(app, options.peers);
}

void describe(const Options& options, Report& report) {
  report.add_line(gibibytes(options.bytes) + " of images for each size (" +
                  gibibytes(options.limited_bytes) + " under a limit of a quarter of that), " +
                  std::to_string(options.threads) + " threads, batches of " +
                  std::to_string(options.batch_size) +
                  ", default windows (256 MiB) and chunks (4 MiB); " +
                  std::to_string(options.rounds) + " interleaved rounds, median (range)");
  note_small_data(options.bytes, report);
}

}  // namespace

Suite reading_suite() {
  const auto state = std::make_shared<Reading>();
  const auto on_images = [&state](void (*measure)(const Case&, Report&)) {
    return [state, measure](Report& report) { measure(*state->images, report); };
  };
  return {.name = "reading",
          .description = "Figures about reading",
          .source = "figures/reading.cpp",
          .add_options = [state](CLI::App& app) { add_options(state->options, app); },
          .begin =
              [state](Report& report) {
                describe(state->options, report);
                state->scratch.emplace(state->options.folder);
              },
          .prepare =
              [state](const ImageSize& size) {
                state->images.emplace(make_case(state->options, *state->scratch, size));
              },
          .finish =
              [state] {
                if (state->images) std::filesystem::remove(state->images->path);
                state->images.reset();
              },
          // In this order: what fills the page cache with other things comes last.
          .experiments = {{"warm", on_images(measure_warm)},
                          {"cold", on_images(measure_cold)},
                          {"peers", on_images(measure_peers)},
                          {"python", on_images(measure_python)},
                          {"deflate", on_images(measure_deflate)},
                          {"loads", on_images(measure_loads)},
                          {"resume", on_images(measure_resume)},
                          {"limited", on_images(measure_limited)},
                          {"memory", on_images(measure_memory)}}};
}

}  // namespace bench
