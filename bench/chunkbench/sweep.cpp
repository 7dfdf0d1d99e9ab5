#include "chunkbench/sweep.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <map>
#include <new>
#include <set>
#include <utility>

#include <chunkio/error.hpp>

#include "base/stopwatch.hpp"
#include "chunkbench/ceilings.hpp"
#include "chunkbench/cells.hpp"
#include "chunkbench/continuation.hpp"
#include "chunkbench/pruning.hpp"
#include "chunkbench/ranking.hpp"
#include "chunkbench/results_files.hpp"
#include "chunkbench/trial.hpp"
#include "chunkbench/window_quality.hpp"
#include "cli/atomic_file.hpp"
#include "cli/byte_size.hpp"
#include "cli/escape.hpp"
#include "cli/output.hpp"
#include "cli/progress.hpp"
#include "cli/progress_text.hpp"
#include "cli/quote.hpp"
#include "cli/stop_signal.hpp"
#include "harness/drawn_images.hpp"
#include "harness/machine.hpp"

namespace bench {
namespace {

using chunkio::Error;
using chunkio::ErrorCode;
using chunkio::OrderMode;
using cli::format_bytes;

void say(const std::string& note) {
  std::fputs(("chunkbench: note: " + cli::escape(note) + "\n").c_str(), stderr);
}

/// What was not asked for.
void set_defaults(TrialSettings& trial, std::int64_t largest_window, std::int64_t sample_bytes) {
  if (trial.images == 0) {
    trial.images =
        std::max((2 * largest_window + sample_bytes - 1) / sample_bytes, trial.batch_size);
  }
  if (trial.random_images == 0) {
    trial.random_images = std::min(8 * trial.batch_size, trial.images);
  }
}

Results describe(const Images& images, std::span<const ChunkSize> chunks,
                 const SweepOptions& options) {
  const TrialSettings& settings = options.trial;
  Results results;
  results.created = now_text();
  results.versions = {
      {"chunkio", CHUNKBENCH_VERSION}, {"hdf5", hdf5_version()}, {"h5pack", CHUNKBENCH_VERSION}};
  results.machine = machine_json(options.scratch);
  results.dataset = images.description();
  results.options = {.rounds = options.rounds,
                     .cold = settings.cold,
                     .batch_size = settings.batch_size,
                     .seed = settings.seed,
                     .images_per_trial = settings.images,
                     .random_images = settings.random_images,
                     .trial_seconds = settings.seconds,
                     .limit = shaped(settings.limit),
                     .memory_limit = settings.memory_limit};
  if (!options.throttled_device.empty()) {
    results.options.throttled_device = options.throttled_device;
  }
  results.cells = make_cells(chunks, options);
  return results;
}

void add_to_ceiling(Results& results, const std::string& name, double rate) {
  auto ceiling = std::find_if(results.ceilings.begin(), results.ceilings.end(),
                              [&](const Ceiling& other) { return other.name == name; });
  if (ceiling == results.ceilings.end()) {
    ceiling = results.ceilings.insert(ceiling, {.name = name});
  }
  ceiling->rounds.push_back(rate);
  ceiling->bytes_per_second = {spread_of(ceiling->rounds),
                               static_cast<std::int64_t>(ceiling->rounds.size())};
}

/// What a cell's error says without the path of a file that is gone by the time it is read.
std::string reason_of(const std::exception& error, const ChunkFile& file) {
  std::string reason = error.what();
  for (std::size_t at = reason.find(file.path); at != std::string::npos;
       at = reason.find(file.path)) {
    reason.replace(at, file.path.size(), "the file");
  }
  return reason;
}

/// No output may be one of the files that are read, nor the other output.
void refuse_same_files(const SweepOptions& options, std::span<const std::string> files) {
  const auto refuse = [](const std::string& name, const std::string& path,
                         const std::string& other) {
    throw Error(ErrorCode::invalid_argument, name + " " + cli::quote(path) + " is " + other +
                                                 " as well; choose another " + name);
  };
  for (const std::string& file : files) {
    if (is_same_file(options.output, file)) refuse("--output", options.output, "FILE");
    if (!options.csv.empty() && is_same_file(options.csv, file)) {
      refuse("--csv", options.csv, "FILE");
    }
  }
  if (!options.csv.empty() && is_same_file(options.csv, options.output)) {
    refuse("--csv", options.csv, "--output");
  }
}

/// The rest of a sweep, once its files are there.
class Sweep {
 public:
  Sweep(const SweepOptions& options, std::span<const ChunkSize> chunks, const ScratchFiles& scratch,
        Results& results, ResultsFiles& outputs)
      : options_(options),
        settings_(options.trial),
        chunks_(chunks),
        files_(scratch.files()),
        results_(results),
        outputs_(outputs),
        times_first_(results.cells.size()) {}

  void run() {
    try {
      check_sources();
      measure_shuffle_quality();
      // Quiet in logs, where nobody waits.
      cli::Progress progress("measuring", "trials", std::max<std::int64_t>(open_trials(), 1),
                             options_.quiet || ::isatty(STDERR_FILENO) != 1);
      for (std::int64_t round = 0; round < options_.rounds; ++round) {
        measure_round(round, progress);
      }
    } catch (...) {
      keep_time();
      try {
        outputs_.save(results_);
      } catch (const std::exception&) {  // What came first is what is to be known.
      }
      throw;
    }
    results_.complete = true;
    keep_time();
    outputs_.save(results_);
  }

 private:
  const ChunkFile& file_of(const Cell& cell) const {
    const auto found = std::find_if(chunks_.begin(), chunks_.end(), [&](const ChunkSize& chunk) {
      return chunk.samples == cell.chunk_samples;
    });
    return files_[static_cast<std::size_t>(found - chunks_.begin())];
  }

  void keep_time() { results_.time.seconds_total += watch_.lap(); }

  /// What is timed delivers the same images, whatever the source and the chunks.
  void check_sources() {
    constexpr std::int64_t kBytes = std::int64_t{16} << 20;
    constexpr std::int64_t kMostRows = 4096;
    const chunkio::DatasetInfo& info = files_[0].info;
    const std::int64_t rows = std::clamp<std::int64_t>(kBytes / info.sample_bytes(), 1,
                                                       std::min(kMostRows, info.num_samples));
    std::set<std::pair<std::string, std::int64_t>> checked;
    std::optional<std::uint64_t> expected;
    for (Cell& cell : results_.cells) {
      if (!is_open(cell)) continue;
      if (!checked.emplace(cell.source, cell.chunk_samples).second) continue;
      cli::StopSignal::check();
      std::optional<std::uint64_t> digest;
      const std::string reason = reason_against(
          [&] { digest = digest_of_first_rows(cell, file_of(cell), rows); }, &file_of(cell));
      if (!digest) {
        fail_all(cell.source, cell.chunk_samples, reason);
        continue;
      }
      if (!expected) expected = digest;
      if (*digest != *expected) {
        throw Error(ErrorCode::digest_mismatch,
                    "source " + cell.source + " delivers from chunks of " +
                        format_bytes(cell.chunk_bytes) + " other images than the rest");
      }
    }
  }

  void measure_shuffle_quality() {
    const bool asked =
        std::count(options_.orders.begin(), options_.orders.end(), OrderMode::chunk_shuffled) > 0;
    if (!asked || !results_.shuffle.empty()) return;
    std::vector<ShufflePoint> points;
    for (std::size_t i = 0; i < chunks_.size(); ++i) {
      for (const std::int64_t window : options_.cache_bytes) {
        points.push_back(measure_window_quality(files_[i], chunks_[i], window, settings_.batch_size,
                                                settings_.seed));
      }
    }
    results_.shuffle = std::move(points);
  }

  void measure_ceilings() {
    const std::int64_t threads =
        *std::max_element(options_.threads.begin(), options_.threads.end());
    const auto largest = std::max_element(
        chunks_.begin(), chunks_.end(),
        [](const ChunkSize& a, const ChunkSize& b) { return a.samples < b.samples; });
    const ChunkFile& file = files_[static_cast<std::size_t>(largest - chunks_.begin())];
    measure_ceiling(
        kStorageCeiling, [&] { return measure_storage(file, threads, settings_); }, &file);
    measure_ceiling(MemoryCeiling::kName, [&]() -> std::optional<double> {
      if (!memory_) {
        memory_.emplace(files_[0].info.sample_bytes(), threads, settings_.seed,
                        settings_.memory_limit.value_or(this_machine().memory_bytes));
      }
      return memory_->measure();
    });
  }

  /// A sweep without a ceiling is still one.
  void measure_ceiling(const std::string& name,
                       const std::function<std::optional<double>()>& measured,
                       const ChunkFile* file = nullptr) {
    if (given_up_.contains(name)) return;
    std::optional<double> rate;
    const std::string reason = reason_against([&] { rate = measured(); }, file);
    if (rate) add_to_ceiling(results_, name, *rate);
    if (reason.empty()) return;
    given_up_.insert(name);
    results_.options.notes.push_back("no ceiling '" + name + "': " + reason);
    say(results_.options.notes.back());
  }

  /// Trials that will be taken unless more cells are pruned.
  std::int64_t open_trials() const {
    std::int64_t trials = 0;
    for (const Cell& cell : results_.cells) {
      if (is_open(cell)) trials += options_.rounds - static_cast<std::int64_t>(cell.rounds.size());
    }
    return trials;
  }

  void measure_round(std::int64_t round, cli::Progress& progress) {
    std::vector<std::size_t> trials;
    for (std::size_t i = 0; i < results_.cells.size(); ++i) {
      const Cell& cell = results_.cells[i];
      if (is_open(cell) && static_cast<std::int64_t>(cell.rounds.size()) <= round) {
        trials.push_back(i);
      }
    }
    if (trials.empty()) return;
    measure_ceilings();
    for (const std::size_t i :
         order_of_round(std::move(trials), round, settings_.seed, times_first_)) {
      cli::StopSignal::check();
      const std::int64_t before = open_trials();
      measure(results_.cells[i]);
      progress.add(before - open_trials());
      mark_chosen(results_.cells, results_.shuffle);
      keep_time();
      outputs_.save_if_cheap(results_);
    }
    const std::int64_t before = open_trials();
    prune(results_.cells);
    progress.add(before - open_trials());
  }

  void measure(Cell& cell) {
    const ChunkFile& file = file_of(cell);
    const auto measured = [&] {
      if (cell.rounds.empty()) {
        const Loads prediction = predict(cell, file, settings_);
        cell.chunk_loads.predicted = prediction.chunk_loads;
        cell.hit_rate.predicted = prediction.hit_rate;
        cell.read_amplification.predicted = prediction.read_amplification;
      }
      const Trial trial = take_trial(cell, file, settings_);
      results_.time.seconds_measured += trial.round.seconds;
      add_trial(trial, cell);
      if (static_cast<std::int64_t>(cell.rounds.size()) == options_.rounds) {
        cell.status = CellStatus::measured;
      }
    };
    const std::string reason = reason_against(measured, &file);
    if (!reason.empty()) fail(cell, reason);
  }

  /// Does it. \returns why it failed, or nothing. \throws chunkio::Error cancelled.
  static std::string reason_against(const std::function<void()>& work,
                                    const ChunkFile* file = nullptr) {
    try {
      work();
      return {};
    } catch (const Error& error) {
      if (error.code() == ErrorCode::cancelled) throw;
      return file != nullptr ? reason_of(error, *file) : error.what();
    } catch (const std::bad_alloc&) {
      return "out of memory";
    } catch (const std::exception& error) {
      return file != nullptr ? reason_of(error, *file) : error.what();
    }
  }

  void fail_all(const std::string& source, std::int64_t chunk_samples, const std::string& reason) {
    for (Cell& cell : results_.cells) {
      if (is_open(cell) && cell.source == source && cell.chunk_samples == chunk_samples) {
        fail(cell, reason);
      }
    }
  }

  static void fail(Cell& cell, const std::string& reason) {
    cell.status = CellStatus::failed;
    cell.reason = reason;
    // What was measured before is no figure of this cell any more.
    cell.rounds.clear();
    cell.images_per_second.reset();
    cell.bytes_per_second.reset();
    cell.hit_rate.measured.reset();
    cell.read_amplification.measured.reset();
    cell.chunk_loads.measured.reset();
    cell.stages.reset();
  }

  const SweepOptions& options_;
  const TrialSettings& settings_;
  std::span<const ChunkSize> chunks_;
  std::span<const ChunkFile> files_;
  Results& results_;
  ResultsFiles& outputs_;
  chunkio::base::Stopwatch watch_;
  std::optional<MemoryCeiling> memory_;
  std::set<std::string> given_up_;  // ceilings
  std::vector<std::int64_t> times_first_;
};

/// The end of a sweep in a few lines.
std::string summary(const Results& results, const std::string& output) {
  std::map<CellStatus, std::int64_t> counts;
  for (const Cell& cell : results.cells) ++counts[cell.status];
  std::array<char, 64> percent{};
  std::snprintf(percent.data(), percent.size(), "%.0f %%",
                results.time.seconds_measured > 0
                    ? 100 * (results.time.seconds_total / results.time.seconds_measured - 1)
                    : 0.0);
  std::string text = std::to_string(counts[CellStatus::measured]) + " cells measured, " +
                     std::to_string(counts[CellStatus::pruned]) + " pruned early, " +
                     std::to_string(counts[CellStatus::skipped]) + " skipped, " +
                     std::to_string(counts[CellStatus::failed]) + " failed; " +
                     cli::format_duration(results.time.seconds_total) + ", " + percent.data() +
                     " more than what was timed, and " +
                     cli::format_duration(results.time.seconds_preparing) + " for the files\n";
  std::set<std::string> orders;
  for (const Cell& cell : results.cells) orders.insert(cell.order);
  for (const std::string& order : orders) {
    const Cell* const cell =
        fastest(results.cells, [&](const Cell& other) { return other.order == order; });
    if (cell == nullptr) continue;
    text += "best in order " + order + ": " +
            cli::format_count(static_cast<std::int64_t>(median_speed(*cell))) +
            " images/s with chunks of " + format_bytes(cell->chunk_bytes) + " and " +
            format_bytes(cell->cache_bytes) +
            (cell->source == "h5dread" ? " of cache" : " windows") + ", source " + cell->source +
            ", " + std::to_string(cell->threads) +
            (cell->threads == 1 ? " thread\n" : " threads\n");
  }
  return text + "results: " + cli::escape(output) + "\n";
}

}  // namespace

std::size_t run_sweep(SweepOptions options, std::vector<std::string> notes) {
  refuse_same_files(options, std::vector<std::string>(options.file.empty() ? 0 : 1, options.file));
  const bool there = std::filesystem::exists(options.output);
  cli::check_atomic_file(options.output, options.force || options.go_on);
  if (!options.csv.empty()) cli::check_atomic_file(options.csv, options.force || options.go_on);
  std::optional<Results> before;
  if (options.go_on && there) before = read_results(options.output);

  const Images images(options);
  refuse_same_files(options, images.files());
  const std::vector<ChunkSize> chunks =
      choose_chunks(options.chunk_bytes, images.sample_bytes(), images.num_samples(),
                    options.filter.deflate_level > 0, notes);
  set_defaults(options.trial,
               *std::max_element(options.cache_bytes.begin(), options.cache_bytes.end()),
               images.sample_bytes());
  Results results = describe(images, chunks, options);
  for (const std::string& note : notes) say(note);
  if (before) {
    continue_from(*before, options.output, results);
    // Failed cells are tried again.
    if (before->complete && std::none_of(results.cells.begin(), results.cells.end(), is_open)) {
      if (!options.csv.empty()) ResultsFiles::save_csv(*before, options.csv);
      cli::print("nothing is left to do\n" + summary(*before, options.output));
      return 0;
    }
  }
  results.options.notes = std::move(notes);

  ResultsFiles outputs(options.output, options.csv);
  // Of this sweep; with --force there may be those of another one.
  bool kept = before.has_value();
  try {
    chunkio::base::Stopwatch watch;
    const ScratchFiles scratch(images, chunks, options);
    results.time.seconds_preparing += watch.lap();
    outputs.save(results);
    kept = true;
    Sweep(options, chunks, scratch, results, outputs).run();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::cancelled) throw;
    const std::string name = cli::quote(options.output);
    const std::string way_on = options.force ? "--continue in place of --force" : "--continue";
    throw Error(
        ErrorCode::cancelled,
        error.what() + (kept ? "; " + name + " keeps what was measured: the same command with " +
                                   way_on + " goes on"
                             : "; nothing was measured yet" +
                                   (there ? ", and " + name + " is as it was" : std::string())));
  }

  std::size_t failed = 0;
  std::string reason;
  bool any = false;
  for (const Cell& cell : results.cells) {
    any |= cell.images_per_second.has_value();
    if (cell.status != CellStatus::failed) continue;
    if (failed++ == 0) reason = cell.reason;
  }
  if (!any && failed > 0) {
    throw Error(ErrorCode::io_failed, "no cell could be measured: " + reason);
  }
  cli::print(summary(results, options.output));
  if (failed > 0) say(std::to_string(failed) + " cells failed; the first: " + reason);
  return failed;
}

}  // namespace bench
