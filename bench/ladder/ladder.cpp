// The ladder of the seed experiments: the same images loaded in eleven ways, from one file per
// image to echoed batches, with a simulated training step behind each.
//
// Every variant is measured in every round, in rotating order; what a variant delivers is
// compared with the images before anything is timed. A trial is an epoch, or as much of one as
// fits in --trial-seconds, and at least two batches a worker. A variant starts with nothing of its
// own cached; the page cache is warm, and the disk is the one that --simulate-disk or --limit-...
// say, for all variants alike.

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include <chunkio/error.hpp>

#include "chunkbench/report_page.hpp"
#include "chunkbench/results.hpp"
#include "chunkbench/results_files.hpp"
#include "cli/atomic_file.hpp"
#include "cli/command.hpp"
#include "cli/disk_options.hpp"
#include "cli/escape.hpp"
#include "cli/options.hpp"
#include "cli/output.hpp"
#include "cli/quote.hpp"
#include "cli/run_main.hpp"
#include "cli/stop_signal.hpp"
#include "harness/drawn_images.hpp"
#include "harness/machine.hpp"
#include "harness/scratch_folder.hpp"
#include "harness/spread.hpp"
#include "ladder/ladder_images.hpp"
#include "ladder/variants.hpp"

namespace bench {
namespace {

using Clock = std::chrono::steady_clock;
using cli::ExitCode;

struct Options {
  std::string folder;  ///< Empty: images are drawn.
  std::int64_t images = 6000;
  std::int64_t height = 128, width = 128;
  std::int64_t chunk_bytes = std::int64_t{1} << 20;
  std::int64_t rounds = 5;
  double step_ms = 4;
  bool busy_step = false;
  double trial_seconds = 3;
  LadderSettings loading = {.window_bytes = std::int64_t{64} << 20};
  cli::DiskOptions disk;
  std::string scratch = std::filesystem::temp_directory_path().string();
  std::string output;
  std::string page;
  bool force = false;
};

double seconds_between(Clock::time_point start, Clock::time_point end) {
  return std::chrono::duration<double>(end - start).count();
}

/// One trial of one variant.
struct Trial {
  std::int64_t images = 0;
  double seconds = 0;
  double stall_seconds = 0;
  std::optional<double> read_amplification = {};
};

/// In place of a training step.
void pretend_step(const Options& options) {
  const std::chrono::duration<double, std::milli> duration(options.step_ms);
  if (!options.busy_step) {
    std::this_thread::sleep_for(duration);
    return;
  }
  const auto end = Clock::now() + duration;
  while (Clock::now() < end) {
  }
}

Trial take_trial(const Variant& variant, const LadderImages& images, const Options& options,
                 const LadderSettings& settings) {
  const std::unique_ptr<Epoch> epoch = variant.start(images, settings);
  Trial trial;
  const auto start = Clock::now();
  // Workers begin with a batch each, and the first of them come late and together.
  const std::int64_t least = 2 * settings.threads;
  for (std::int64_t batches = 0; trial.seconds < options.trial_seconds || batches < least;
       ++batches) {
    const auto asked = Clock::now();
    const std::optional<LadderBatch> batch = epoch->next();
    trial.stall_seconds += seconds_between(asked, Clock::now());
    if (!batch) break;
    trial.images += static_cast<std::int64_t>(batch->rows.size());
    pretend_step(options);
    trial.seconds = seconds_between(start, Clock::now());
  }
  if (const auto bytes = epoch->bytes_read()) {
    trial.read_amplification =
        static_cast<double>(*bytes) /
        (static_cast<double>(trial.images) * static_cast<double>(images.image_bytes()));
  }
  trial.stall_seconds = std::min(trial.stall_seconds, trial.seconds);
  return trial;
}

/// Compares the first batches of a variant with the images.
void check_variant(const Variant& variant, const LadderImages& images,
                   const LadderSettings& settings) {
  constexpr int kBatches = 3;
  LadderSettings fast = settings;
  fast.limit.reset();
  const std::unique_ptr<Epoch> epoch = variant.start(images, fast);
  const std::size_t bytes = images.image_bytes();
  std::vector<float> values(bytes);
  for (int i = 0; i < kBatches; ++i) {
    const std::optional<LadderBatch> batch = epoch->next();
    if (!batch) break;
    for (std::size_t row = 0; row < batch->rows.size(); ++row) {
      const std::byte* const expected = images.image(batch->rows[row]);
      bool equal = false;
      if (batch->values.empty()) {
        equal = std::memcmp(batch->pixels.data() + row * bytes, expected, bytes) == 0;
      } else {
        normalize_image(images.files.size, expected, values.data());
        equal = std::memcmp(batch->values.data() + row * bytes, values.data(),
                            bytes * sizeof(float)) == 0;
      }
      if (!equal) {
        throw std::runtime_error("'" + variant.name + "' delivers wrong pixels for image " +
                                 std::to_string(batch->rows[row]));
      }
    }
  }
}

Sampled sampled(const std::vector<double>& values) {
  return {spread_of(values), static_cast<std::int64_t>(values.size())};
}

std::string number(double value, const char* format) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), format, value);
  return text.data();
}

void print_table(const std::vector<MeasuredVariant>& ladder) {
  std::printf("\n%-46s %22s %8s %7s %8s\n", "variant", "images/s, median (range)", "x first",
              "stall", "read/use");
  for (const MeasuredVariant& variant : ladder) {
    const Spread& rate = variant.images_per_second.spread;
    const std::string range = number(rate.median, "%.0f") + " (" + number(rate.lowest, "%.0f") +
                              "-" + number(rate.highest, "%.0f") + ")";
    std::printf(
        "%-46s %24s %8.1f %6.1f%% %8s\n", variant.name.c_str(), range.c_str(),
        rate.median / ladder.front().images_per_second.spread.median, 100 * variant.stall,
        variant.read_amplification ? number(*variant.read_amplification, "%.2f").c_str() : "-");
  }
}

std::vector<std::string> notes_of(const Options& options, const LadderImages& images) {
  return {"simulated step: " + number(options.step_ms, "%g") + " ms for each batch, " +
              (options.busy_step ? "computing" : "sleeping, as a CPU does while a GPU computes"),
          "files with workers: threads of this program, not a PyTorch DataLoader",
          "chunks of " + std::to_string(images.chunk_samples) +
              " images; page cache warm; a disk that is set charges every read",
          "a trial ends with the epoch, or after " + number(options.trial_seconds, "%g") +
              " s and two batches a worker"};
}

Results describe(const Options& options, const LadderImages& images) {
  Results results;
  results.created = now_text();
  results.versions = {{"chunkio", CHUNKBENCH_VERSION}, {"hdf5", hdf5_version()}};
  results.machine = machine_json(options.scratch);
  results.machine["threads"] = options.loading.threads;
  const ImageSize& size = images.files.size;
  results.dataset = {
      .name = options.folder.empty()
                  ? "synthetic"
                  : std::filesystem::path(options.folder).lexically_normal().filename().string(),
      .shape = {images.count(), size.height, size.width, size.channels},
      .bytes = images.count() * size.bytes(),
      .filters = {}};
  if (results.dataset.name.empty()) results.dataset.name = "folder";
  results.options = {.rounds = options.rounds,
                     .cold = false,
                     .batch_size = options.loading.batch_size,
                     .seed = options.loading.seed,
                     .limit = shaped(options.loading.limit),
                     .notes = notes_of(options, images)};
  return results;
}

/// What the trials so far say, variant by variant.
std::vector<MeasuredVariant> ladder_of(const std::vector<std::vector<Trial>>& trials) {
  std::vector<MeasuredVariant> ladder;
  for (std::size_t i = 0; i < trials.size(); ++i) {
    std::vector<double> rates;
    std::vector<double> stalls;
    std::vector<double> amplifications;
    for (const Trial& trial : trials[i]) {
      rates.push_back(static_cast<double>(trial.images) / trial.seconds);
      stalls.push_back(trial.stall_seconds / trial.seconds);
      if (trial.read_amplification) amplifications.push_back(*trial.read_amplification);
    }
    MeasuredVariant variant{.name = variants()[i].name,
                            .images_per_second = sampled(rates),
                            .stall = spread_of(stalls).median};
    if (!amplifications.empty()) variant.read_amplification = spread_of(amplifications).median;
    ladder.push_back(std::move(variant));
  }
  return ladder;
}

void print_head(const Options& options, const Results& results) {
  const std::vector<std::int64_t>& shape = results.dataset.shape;
  std::printf("%s: %lld images of %lldx%lldx%lld, batches of %lld, %lld threads, %s\n",
              cli::escape(results.dataset.name).c_str(), static_cast<long long>(shape[0]),
              static_cast<long long>(shape[1]), static_cast<long long>(shape[2]),
              static_cast<long long>(shape[3]), static_cast<long long>(options.loading.batch_size),
              static_cast<long long>(options.loading.threads),
              options.loading.limit ? cli::disk_text(*options.loading.limit).c_str()
                                    : "no slower disk than there is");
  for (const std::string& note : results.options.notes) std::printf("  %s\n", note.c_str());
  std::fflush(stdout);
}

/// Before anything is drawn: minutes later would be late.
void check_outputs(const Options& options) {
  if (!options.output.empty()) cli::check_atomic_file(options.output, options.force);
  if (!options.page.empty()) cli::check_atomic_file(options.page, options.force);
  if (!options.output.empty() && is_same_file(options.output, options.page)) {
    throw chunkio::Error(
        chunkio::ErrorCode::invalid_argument,
        cli::quote(options.page) + " is --output and --page; choose another name for one");
  }
}

void climb(Options options) {
  check_outputs(options);
  options.loading.limit = options.disk.limit();
  const auto begin = Clock::now();
  const chunkio::test::ScratchFolder scratch(options.scratch);
  std::fprintf(stderr, "%s\n", options.folder.empty() ? "drawing images" : "decoding images");
  const LadderImages images = prepare_images(
      options.folder.empty()
          ? draw_jpeg_folder(scratch.file("pictures"), {"drawn", options.height, options.width, 3},
                             options.images)
          : find_images(options.folder),
      options.chunk_bytes, scratch);
  cli::StopSignal::check();
  Results results = describe(options, images);
  for (const Variant& variant : variants()) check_variant(variant, images, options.loading);
  results.time.seconds_preparing = seconds_between(begin, Clock::now());
  print_head(options, results);

  std::optional<ResultsFiles> files;
  if (!options.output.empty()) files.emplace(options.output, "");
  const auto first = Clock::now();
  std::vector<std::vector<Trial>> trials(variants().size());
  for (std::int64_t round = 0; round < options.rounds; ++round) {
    LadderSettings settings = options.loading;
    settings.seed += static_cast<std::uint64_t>(round);
    for (std::size_t i = 0; i < variants().size(); ++i) {
      cli::StopSignal::check();
      const std::size_t variant = (i + static_cast<std::size_t>(round)) % variants().size();
      trials[variant].push_back(take_trial(variants()[variant], images, options, settings));
      results.time.seconds_measured += trials[variant].back().seconds;
    }
    results.time.seconds_total = seconds_between(first, Clock::now());
    results.ladder = ladder_of(trials);
    results.complete = round + 1 == options.rounds;
    if (files) files->save(results);
  }
  print_table(results.ladder);
  if (!options.page.empty()) write_report_page(results, options.page, options.force);
}

ExitCode run(Options options) {
  const cli::StopSignal stop(
      "scratch files may be left; results hold the rounds that were finished");
  try {
    climb(std::move(options));
    return ExitCode::ok;
  } catch (const chunkio::Error&) {
    const int signal = cli::StopSignal::received();
    if (signal == 0) throw;
    // The files are gone; results hold the rounds that were finished.
    return static_cast<ExitCode>(128 + signal);
  }
}

ExitCode parse_and_run(int argc, char** argv) {
  Options options;
  CLI::App app("The ladder from one file per image to echoed batches, on the same images.",
               "ladder");
  using cli::add_integer;
  app.add_option("--folder", options.folder,
                 "JPEG images of one size in class folders, instead of drawn ones")
      ->type_name("DIR");
  add_integer(app, "--pictures", options.images, 1, "Images to draw");
  add_integer(app, "--height", options.height, 1, "Of drawn images");
  add_integer(app, "--width", options.width, 1, "Of drawn images");
  cli::add_byte_size(app, "--chunk-bytes", options.chunk_bytes,
                     "Chunk of the chunked file; what fits libhdf5's default cache of 1 MiB "
                     "shows what that costs");
  cli::add_byte_size(app, "--window-bytes", options.loading.window_bytes,
                     "Bytes mixed together by the chunk-ordered shuffle");
  add_integer(app, "--batch", options.loading.batch_size, 1, "Images in a batch");
  add_integer(app, "--threads", options.loading.threads, 1, "Workers");
  add_integer(app, "--prefetch", options.loading.prefetch_depth, 1, "Batches ready ahead");
  cli::add_seed(app, "--seed", options.loading.seed, "Seed of the orders");
  cli::add_milliseconds(app, "--step-ms", options.step_ms, "Length of the simulated step")
      ->default_str("4");
  app.add_flag("--busy-step", options.busy_step,
               "The step computes instead of sleeping, as training on the CPU does");
  add_integer(app, "--rounds", options.rounds, 1, "Trials of each variant");
  app.add_option("--trial-seconds", options.trial_seconds, "Length of a trial at most")
      ->check(CLI::Range(0.01, 3600.0))
      ->type_name("S")
      ->capture_default_str();
  cli::add_disk_limit(app, options.disk);
  app.add_option("--scratch", options.scratch, "Folder for files, which are removed at the end")
      ->type_name("DIR");
  app.add_option("--output", options.output,
                 "Also write the results to FILE, for chunkbench report")
      ->type_name("FILE");
  app.add_option("--page", options.page,
                 "Also draw them as one HTML page, as chunkbench report does")
      ->type_name("PAGE.html");
  app.add_flag("--force", options.force, "Replace --output and --page");
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    cli::print(app.help());
    return ExitCode::ok;
  } catch (const CLI::ParseError& error) {
    cli::print_error(std::string(error.what()) + "; see 'ladder --help'", "ladder");
    return ExitCode::usage;
  }
  return run(std::move(options));
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  cli::run_main(
      [&] { return bench::parse_and_run(argc, argv); },
      {.program = "ladder", .less_memory = "smaller --pictures, --chunk-bytes or --window-bytes"});
}
