// The ladder of the seed experiments: the same images loaded in ten ways, from one file per
// image to echoed batches, with a simulated training step behind each.
//
// Every rung is measured in every round, in rotating order; what a rung delivers is
// compared with the images before anything is timed. A turn is an epoch, or as much of one as
// fits in --turn-seconds, and at least two batches a worker. A rung starts with nothing of its own
// cached; the page cache is warm, and the disk is the one that --simulate-disk or --limit-... say,
// for all rungs alike.

#include <unistd.h>

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

#include "circumstances.hpp"
#include "command.hpp"
#include "disk_options.hpp"
#include "in_quotes.hpp"
#include "machine.hpp"
#include "new_file.hpp"
#include "options.hpp"
#include "output.hpp"
#include "pictures.hpp"
#include "program.hpp"
#include "report_page.hpp"
#include "results.hpp"
#include "results_files.hpp"
#include "rungs.hpp"
#include "scratch_folder.hpp"
#include "spread.hpp"
#include "stop_signal.hpp"
#include "story_pictures.hpp"

namespace bench {
namespace {

using Clock = std::chrono::steady_clock;
using h5pack::ExitCode;

struct Options {
  std::string folder;  ///< Empty: images are drawn.
  std::int64_t pictures = 6000;
  std::int64_t height = 128, width = 128;
  std::int64_t chunk_bytes = std::int64_t{1} << 20;
  std::int64_t rounds = 5;
  double step_ms = 4;
  bool busy_step = false;
  double turn_seconds = 3;
  StorySettings loading = {.window_bytes = std::int64_t{64} << 20};
  h5pack::DiskOptions disk;
  std::string scratch = std::filesystem::temp_directory_path().string();
  std::string output;
  std::string page;
  bool force = false;
};

constexpr Program kStory = {"story", "--pictures, --chunk-bytes or --window-bytes"};

double seconds_between(Clock::time_point start, Clock::time_point end) {
  return std::chrono::duration<double>(end - start).count();
}

/// One turn of one rung.
struct Turn {
  std::int64_t images = 0;
  double seconds = 0;
  double stall_seconds = 0;
  std::optional<double> read_amplification = {};
};

class PretendStep {
 public:
  explicit PretendStep(const Options& options)
      : duration_(options.step_ms), busy_(options.busy_step) {}
  void run() const {
    if (!busy_) {
      std::this_thread::sleep_for(duration_);
      return;
    }
    const auto end = Clock::now() + duration_;
    while (Clock::now() < end) {
    }
  }

 private:
  std::chrono::duration<double, std::milli> duration_;
  bool busy_;
};

Turn take_turn(const RungKind& rung, const StoryPictures& pictures, const Options& options,
               const StorySettings& settings) {
  const std::unique_ptr<Epoch> epoch = rung.start(pictures, settings);
  const PretendStep step(options);
  Turn turn;
  const auto start = Clock::now();
  // Workers begin with a batch each, and the first of them come late and together.
  const std::int64_t least = 2 * settings.threads;
  for (std::int64_t batches = 0; turn.seconds < options.turn_seconds || batches < least;
       ++batches) {
    const auto asked = Clock::now();
    const std::optional<StoryBatch> batch = epoch->next();
    turn.stall_seconds += seconds_between(asked, Clock::now());
    if (!batch) break;
    turn.images += static_cast<std::int64_t>(batch->rows.size());
    step.run();
    turn.seconds = seconds_between(start, Clock::now());
  }
  if (const auto bytes = epoch->bytes_read()) {
    turn.read_amplification =
        static_cast<double>(*bytes) /
        (static_cast<double>(turn.images) * static_cast<double>(pictures.picture_bytes()));
  }
  turn.stall_seconds = std::min(turn.stall_seconds, turn.seconds);
  return turn;
}

/// Compares the first batches of a rung with the images.
void check_rung(const RungKind& rung, const StoryPictures& pictures,
                const StorySettings& settings) {
  constexpr int kBatches = 3;
  StorySettings fast = settings;
  fast.limit.reset();
  const std::unique_ptr<Epoch> epoch = rung.start(pictures, fast);
  const std::size_t bytes = pictures.picture_bytes();
  std::vector<float> values(bytes);
  for (int i = 0; i < kBatches; ++i) {
    const std::optional<StoryBatch> batch = epoch->next();
    if (!batch) break;
    for (std::size_t row = 0; row < batch->rows.size(); ++row) {
      const std::byte* const expected = pictures.picture(batch->rows[row]);
      bool equal = false;
      if (batch->values.empty()) {
        equal = std::memcmp(batch->pixels.data() + row * bytes, expected, bytes) == 0;
      } else {
        normalize_picture(pictures.files.size, expected, values.data());
        equal = std::memcmp(batch->values.data() + row * bytes, values.data(),
                            bytes * sizeof(float)) == 0;
      }
      if (!equal) {
        throw std::runtime_error("'" + rung.name + "' delivers wrong pixels for image " +
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

void print_table(const std::vector<Rung>& story) {
  std::printf("\n%-46s %22s %8s %7s %8s\n", "rung", "images/s, median (range)", "x first", "stall",
              "read/use");
  for (const Rung& rung : story) {
    const Spread& rate = rung.images_per_second.spread;
    const std::string range = number(rate.median, "%.0f") + " (" + number(rate.lowest, "%.0f") +
                              "-" + number(rate.highest, "%.0f") + ")";
    std::printf("%-46s %24s %8.1f %6.1f%% %8s\n", rung.name.c_str(), range.c_str(),
                rate.median / story.front().images_per_second.spread.median, 100 * rung.stall,
                rung.read_amplification ? number(*rung.read_amplification, "%.2f").c_str() : "-");
  }
}

std::vector<std::string> notes_of(const Options& options, const StoryPictures& pictures) {
  return {"simulated step: " + number(options.step_ms, "%g") + " ms for each batch, " +
              (options.busy_step ? "computing" : "sleeping, as a CPU does while a GPU computes"),
          "files with workers: threads of this program, not a PyTorch DataLoader",
          "chunks of " + std::to_string(pictures.chunk_samples) +
              " images; page cache warm; a disk that is set charges every read",
          "a turn ends with the epoch, or after " + number(options.turn_seconds, "%g") +
              " s and two batches a worker"};
}

Results describe(const Options& options, const StoryPictures& pictures) {
  Results results;
  results.created = now_text();
  results.versions = {{"chunkio", CHUNKBENCH_VERSION}, {"hdf5", hdf5_version()}};
  results.machine = machine_json(options.scratch);
  results.machine["threads"] = options.loading.threads;
  const PictureSize& size = pictures.files.size;
  results.dataset = {
      .name = options.folder.empty()
                  ? "synthetic"
                  : std::filesystem::path(options.folder).lexically_normal().filename().string(),
      .shape = {pictures.count(), size.height, size.width, size.channels},
      .bytes = pictures.count() * size.bytes(),
      .filters = {}};
  if (results.dataset.name.empty()) results.dataset.name = "folder";
  results.options = {.rounds = options.rounds,
                     .cold = false,
                     .batch_size = options.loading.batch_size,
                     .seed = options.loading.seed,
                     .limit = shaped(options.loading.limit),
                     .notes = notes_of(options, pictures)};
  return results;
}

/// What the turns so far say, rung by rung.
std::vector<Rung> story_of(const std::vector<std::vector<Turn>>& turns) {
  std::vector<Rung> story;
  for (std::size_t i = 0; i < turns.size(); ++i) {
    std::vector<double> rates;
    std::vector<double> stalls;
    std::vector<double> amplifications;
    for (const Turn& turn : turns[i]) {
      rates.push_back(static_cast<double>(turn.images) / turn.seconds);
      stalls.push_back(turn.stall_seconds / turn.seconds);
      if (turn.read_amplification) amplifications.push_back(*turn.read_amplification);
    }
    Rung rung{.name = rungs()[i].name,
              .images_per_second = sampled(rates),
              .stall = spread_of(stalls).median};
    if (!amplifications.empty()) rung.read_amplification = spread_of(amplifications).median;
    story.push_back(std::move(rung));
  }
  return story;
}

void print_head(const Options& options, const Results& results) {
  const std::vector<std::int64_t>& shape = results.dataset.shape;
  std::printf("%s: %lld images of %lldx%lldx%lld, batches of %lld, %lld threads, %s\n",
              h5pack::escape(results.dataset.name).c_str(), static_cast<long long>(shape[0]),
              static_cast<long long>(shape[1]), static_cast<long long>(shape[2]),
              static_cast<long long>(shape[3]), static_cast<long long>(options.loading.batch_size),
              static_cast<long long>(options.loading.threads),
              options.loading.limit ? h5pack::disk_text(*options.loading.limit).c_str()
                                    : "no slower disk than there is");
  for (const std::string& note : results.options.notes) std::printf("  %s\n", note.c_str());
  std::fflush(stdout);
}

/// Before anything is drawn: minutes later would be late.
void check_outputs(const Options& options) {
  if (!options.output.empty()) h5pack::check_new_file(options.output, options.force);
  if (!options.page.empty()) h5pack::check_new_file(options.page, options.force);
  if (options.output.empty() || options.page.empty()) return;
  const auto place = [](const std::string& path) {
    return std::filesystem::weakly_canonical(std::filesystem::absolute(path));
  };
  if (place(options.output) == place(options.page)) {
    throw chunkio::Error(
        chunkio::ErrorCode::invalid_argument,
        h5pack::in_quotes(options.page) + " is --output and --page; choose another name for one");
  }
}

void write_page(const Options& options, const Results& results) {
  const std::string page = report_page(results);
  h5pack::write_new_file(options.page,
                         {reinterpret_cast<const unsigned char*>(page.data()), page.size()},
                         options.force);
}

void climb(Options options) {
  check_outputs(options);
  options.loading.limit = options.disk.limit();
  const auto begin = Clock::now();
  const chunkio::test::ScratchFolder scratch(options.scratch);
  std::fprintf(stderr, "%s\n", options.folder.empty() ? "drawing images" : "decoding images");
  const StoryPictures pictures = prepare_pictures(
      options.folder.empty()
          ? draw_jpeg_folder(scratch.file("pictures"), {"drawn", options.height, options.width, 3},
                             options.pictures)
          : find_pictures(options.folder),
      options.chunk_bytes, scratch);
  h5pack::StopSignal::check();
  Results results = describe(options, pictures);
  for (const RungKind& rung : rungs()) check_rung(rung, pictures, options.loading);
  results.seconds_preparing = seconds_between(begin, Clock::now());
  print_head(options, results);

  std::optional<ResultsFiles> files;
  if (!options.output.empty()) files.emplace(options.output, "");
  const auto first = Clock::now();
  std::vector<std::vector<Turn>> turns(rungs().size());
  for (std::int64_t round = 0; round < options.rounds; ++round) {
    StorySettings settings = options.loading;
    settings.seed += static_cast<std::uint64_t>(round);
    for (std::size_t i = 0; i < rungs().size(); ++i) {
      h5pack::StopSignal::check();
      const std::size_t rung = (i + static_cast<std::size_t>(round)) % rungs().size();
      turns[rung].push_back(take_turn(rungs()[rung], pictures, options, settings));
      results.seconds_measured += turns[rung].back().seconds;
    }
    results.seconds_total = seconds_between(first, Clock::now());
    results.story = story_of(turns);
    results.complete = round + 1 == options.rounds;
    if (files) files->save(results);
  }
  print_table(results.story);
  if (!options.page.empty()) write_page(options, results);
}

ExitCode run(Options options) {
  const h5pack::StopSignal stop(
      "scratch files may be left; results hold the rounds that were finished");
  try {
    climb(std::move(options));
    return ExitCode::ok;
  } catch (const chunkio::Error&) {
    const int signal = h5pack::StopSignal::received();
    if (signal == 0) throw;
    // The files are gone; results hold the rounds that were finished.
    return static_cast<ExitCode>(128 + signal);
  }
}

ExitCode parse_and_run(int argc, char** argv) {
  Options options;
  CLI::App app("The ladder from one file per image to echoed batches, on the same images.",
               "story");
  using h5pack::add_integer;
  app.add_option("--folder", options.folder,
                 "JPEG images of one size in class folders, instead of drawn ones")
      ->type_name("DIR");
  add_integer(app, "--pictures", options.pictures, 1, "Images to draw");
  add_integer(app, "--height", options.height, 1, "Of drawn images");
  add_integer(app, "--width", options.width, 1, "Of drawn images");
  h5pack::add_byte_size(app, "--chunk-bytes", options.chunk_bytes,
                        "Chunk of the chunked file; what fits libhdf5's default cache of 1 MiB "
                        "shows what that costs");
  h5pack::add_byte_size(app, "--window-bytes", options.loading.window_bytes,
                        "Bytes mixed together by the chunk-ordered shuffle");
  add_integer(app, "--batch", options.loading.batch_size, 1, "Images in a batch");
  add_integer(app, "--threads", options.loading.threads, 1, "Workers");
  add_integer(app, "--prefetch", options.loading.prefetch_depth, 1, "Batches ready ahead");
  h5pack::add_seed(app, "--seed", options.loading.seed, "Seed of the orders");
  h5pack::add_milliseconds(app, "--step-ms", options.step_ms, "Length of the simulated step")
      ->default_str("4");
  app.add_flag("--busy-step", options.busy_step,
               "The step computes instead of sleeping, as training on the CPU does");
  add_integer(app, "--rounds", options.rounds, 1, "Turns of each rung");
  app.add_option("--turn-seconds", options.turn_seconds, "Length of a turn at most")
      ->check(CLI::Range(0.01, 3600.0))
      ->type_name("S")
      ->capture_default_str();
  h5pack::add_disk_limit(app, options.disk);
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
    h5pack::print(app.help());
    return ExitCode::ok;
  } catch (const CLI::ParseError& error) {
    print_error(std::string(error.what()) + "; see 'story --help'", kStory);
    return ExitCode::usage;
  }
  return run(std::move(options));
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  h5pack::prepare_standard_streams();
  const int code =
      bench::run_or_report([&] { return bench::parse_and_run(argc, argv); }, bench::kStory);
  // As h5pack: libhdf5's exit handler is not to be trusted after an error of the disk.
  std::fflush(nullptr);
  ::_exit(code);
}
