#include "sweep.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <iterator>
#include <map>
#include <new>
#include <set>
#include <utility>

#include <hdf5.h>

#include <chunkio/error.hpp>

#include "base/keyed_permutation.hpp"
#include "base/philox.hpp"
#include "byte_size.hpp"
#include "ceilings.hpp"
#include "circumstances.hpp"
#include "escape.hpp"
#include "in_quotes.hpp"
#include "machine.hpp"
#include "mixing.hpp"
#include "new_file.hpp"
#include "output.hpp"
#include "pictures.hpp"
#include "progress.hpp"
#include "progress_text.hpp"
#include "results_files.hpp"
#include "settle.hpp"
#include "stop_signal.hpp"
#include "turn.hpp"

namespace bench {
namespace {

using chunkio::Error;
using chunkio::ErrorCode;
using chunkio::OrderMode;
using h5pack::format_bytes;
using h5pack::in_quotes;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

void say(const std::string& note) {
  std::fputs(("chunkbench: note: " + h5pack::escape(note) + "\n").c_str(), stderr);
}

TurnSettings turn_settings(const SweepOptions& options, std::int64_t sample_bytes) {
  const std::int64_t largest =
      *std::max_element(options.cache_bytes.begin(), options.cache_bytes.end());
  TurnSettings settings = {.cold = options.cold,
                           .batch_size = options.batch_size,
                           .seed = options.seed,
                           .images = options.images_per_turn,
                           .random_images = options.random_images,
                           .seconds = options.turn_seconds,
                           .limit = options.limit,
                           .memory_limit = options.memory_limit};
  if (settings.images == 0) {
    settings.images = std::max((2 * largest + sample_bytes - 1) / sample_bytes, options.batch_size);
  }
  if (settings.random_images == 0) {
    settings.random_images = std::min(8 * options.batch_size, settings.images);
  }
  return settings;
}

Results describe(const Pictures& pictures, std::span<const ChunkSize> chunks,
                 const SweepOptions& options, const TurnSettings& settings) {
  Results results;
  results.created = now_text();
  results.versions = {
      {"chunkio", CHUNKBENCH_VERSION}, {"hdf5", hdf5_version()}, {"h5pack", CHUNKBENCH_VERSION}};
  results.machine = machine_json(options.scratch);
  results.dataset = pictures.description();
  results.options = {.rounds = options.rounds,
                     .cold = settings.cold,
                     .batch_size = settings.batch_size,
                     .seed = settings.seed,
                     .images_per_turn = settings.images,
                     .random_images = settings.random_images,
                     .turn_seconds = settings.seconds,
                     .limit = shaped(options.limit),
                     .memory_limit = options.memory_limit};
  if (!options.throttled_device.empty()) {
    results.options.throttled_device = options.throttled_device;
  }
  results.cells = make_cells(chunks, options);
  return results;
}

template <class Value>
std::string text_of(const std::optional<Value>& value) {
  // As JSON has it: the shortest text that reads as the same number.
  return value ? nlohmann::json(*value).dump() : "none";
}

/// In the largest unit that divides it: two sizes with the same text are equal.
std::string exact_size(std::int64_t bytes) {
  constexpr std::array<const char*, 4> kUnits = {" B", " KiB", " MiB", " GiB"};
  std::size_t unit = 0;
  for (; unit + 1 < kUnits.size() && bytes != 0 && bytes % 1024 == 0; bytes /= 1024) ++unit;
  return std::to_string(bytes) + kUnits[unit];
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  std::set<std::string> seen;
  for (const std::string& word : words) {
    if (seen.insert(word).second) text += (text.empty() ? "" : ",") + word;
  }
  return text.empty() ? "none" : text;
}

/// What two runs must have in common to be one sweep, by the names a person knows it by.
std::vector<std::pair<std::string, std::string>> settings_of(const Results& results) {
  std::vector<std::string> chunks, caches, orders, sources, threads, shape;
  for (const Cell& cell : results.cells) {
    chunks.push_back(exact_size(cell.chunk_bytes) + " (" + std::to_string(cell.chunk_samples) +
                     " images)");
    caches.push_back(exact_size(cell.cache_bytes));
    orders.push_back(cell.order);
    sources.push_back(cell.source);
    threads.push_back(std::to_string(cell.threads));
  }
  std::string size;
  for (const std::int64_t length : results.dataset.shape) {
    size += (size.empty() ? "" : "x") + std::to_string(length);
  }
  const SweepSettings& options = results.options;
  const std::optional<ShapedDisk>& limit = options.limit;
  const auto value = [&](const char* key) {
    return results.machine.contains(key) ? results.machine.at(key).dump() : std::string("unknown");
  };
  return {{"the images are", size + " of " + results.dataset.identity},
          {"--filter", joined(results.dataset.filters)},
          {"--chunk-bytes", joined(chunks)},
          {"--cache-bytes", joined(caches)},
          {"--orders", joined(orders)},
          {"--sources", joined(sources)},
          {"--threads", joined(threads)},
          {"--cold", options.cold ? "yes" : "no"},
          {"--rounds", std::to_string(options.rounds)},
          {"--batch-size", std::to_string(options.batch_size)},
          {"--seed", std::to_string(options.seed)},
          {"--turn-images", text_of(options.images_per_turn)},
          {"--random-turn-images", text_of(options.random_images)},
          {"--turn-seconds", text_of(options.turn_seconds)},
          {"the limit of the disk",
           limit ? limit->profile + " " + text_of(limit->bytes_per_second) + " " +
                       text_of(limit->request_seconds) + " " + text_of(limit->queue_depth)
                 : "none"},
          {"--memory-limit", text_of(options.memory_limit)},
          {"--throttle-device", options.throttled_device.value_or("none")},
          {"the processor", value("cpu") + " " + value("cpus")},
          {"the file system", value("data_on")}};
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

bool is_open(const Cell& cell) {
  return cell.status == CellStatus::pending || cell.status == CellStatus::measuring;
}

/// Counts of whole turns count, equal in all of them; those of a turn that was cut only until there
/// are any.
void count_in(const std::optional<double>& counted, bool cut, std::optional<double>& kept) {
  if (counted && !(cut && kept)) kept = counted;
}

bool is_same_file(const std::string& a, const std::string& b) {
  namespace fs = std::filesystem;
  std::error_code unknown;
  if (fs::equivalent(a, b, unknown)) return true;
  // What is not there yet, by its name.
  const fs::path first = fs::weakly_canonical(fs::absolute(a, unknown), unknown);
  return !first.empty() && first == fs::weakly_canonical(fs::absolute(b, unknown), unknown);
}

/// No output may be one of the files that are read, nor the other output.
void refuse_same_files(const SweepOptions& options, std::span<const std::string> files) {
  const auto refuse = [](const std::string& name, const std::string& path,
                         const std::string& other) {
    throw Error(ErrorCode::invalid_argument,
                name + " " + in_quotes(path) + " is " + other + " as well; choose another " + name);
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
  Sweep(const SweepOptions& options, const TurnSettings& settings,
        std::span<const ChunkSize> chunks, const ScratchFiles& scratch, Results& results,
        ResultsFiles& outputs)
      : options_(options),
        settings_(settings),
        chunks_(chunks),
        files_(scratch.files()),
        results_(results),
        outputs_(outputs),
        total_before_(results.seconds_total),
        times_first_(results.cells.size()) {}

  void run() {
    try {
      check_sources();
      measure_mixing_of_windows();
      // Quiet in logs, where nobody waits.
      h5pack::Progress progress("measuring", "turns", std::max<std::int64_t>(open_turns(), 1),
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

  void keep_time() { results_.seconds_total = total_before_ + seconds_since(begin_); }

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
      h5pack::StopSignal::check();
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

  void measure_mixing_of_windows() {
    const bool asked =
        std::count(options_.orders.begin(), options_.orders.end(), OrderMode::chunk_shuffled) > 0;
    if (!asked || !results_.shuffle.empty()) return;
    std::vector<ShufflePoint> points;
    for (std::size_t i = 0; i < chunks_.size(); ++i) {
      for (const std::int64_t window : options_.cache_bytes) {
        points.push_back(
            measure_mixing(files_[i], chunks_[i], window, settings_.batch_size, settings_.seed));
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
        StorageCeiling::kName, [&] { return StorageCeiling(file, threads, settings_).measure(); },
        &file);
    measure_ceiling(MemoryCeiling::kName, [&]() -> std::optional<double> {
      if (!memory_) {
        memory_.emplace(files_[0].info.sample_bytes(), threads, settings_.seed,
                        options_.memory_limit.value_or(this_machine().memory_bytes));
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

  /// Turns that will be taken unless more cells are settled.
  std::int64_t open_turns() const {
    std::int64_t turns = 0;
    for (const Cell& cell : results_.cells) {
      if (is_open(cell)) turns += options_.rounds - static_cast<std::int64_t>(cell.rounds.size());
    }
    return turns;
  }

  void measure_round(std::int64_t round, h5pack::Progress& progress) {
    std::vector<std::size_t> turns;
    for (std::size_t i = 0; i < results_.cells.size(); ++i) {
      const Cell& cell = results_.cells[i];
      if (is_open(cell) && static_cast<std::int64_t>(cell.rounds.size()) <= round) {
        turns.push_back(i);
      }
    }
    if (turns.empty()) return;
    measure_ceilings();
    for (const std::size_t i :
         order_of_round(std::move(turns), round, settings_.seed, times_first_)) {
      h5pack::StopSignal::check();
      const std::int64_t before = open_turns();
      measure(results_.cells[i]);
      progress.add(before - open_turns());
      mark_chosen(results_.cells, results_.shuffle);
      keep_time();
      outputs_.save_if_cheap(results_);
    }
    const std::int64_t before = open_turns();
    settle(results_.cells);
    progress.add(before - open_turns());
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
      const Turn turn = take_turn(cell, file, settings_);
      results_.seconds_measured += turn.round.seconds;
      add_turn(turn, cell);
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
  const TurnSettings& settings_;
  std::span<const ChunkSize> chunks_;
  std::span<const ChunkFile> files_;
  Results& results_;
  ResultsFiles& outputs_;
  double total_before_;
  Clock::time_point begin_ = Clock::now();
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
                results.seconds_measured > 0
                    ? 100 * (results.seconds_total / results.seconds_measured - 1)
                    : 0.0);
  std::string text = std::to_string(counts[CellStatus::measured]) + " cells measured, " +
                     std::to_string(counts[CellStatus::settled]) + " settled early, " +
                     std::to_string(counts[CellStatus::skipped]) + " skipped, " +
                     std::to_string(counts[CellStatus::failed]) + " failed; " +
                     h5pack::format_duration(results.seconds_total) + ", " + percent.data() +
                     " more than what was timed, and " +
                     h5pack::format_duration(results.seconds_preparing) + " for the files\n";
  std::map<std::string, const Cell*> best;
  for (const Cell& cell : results.cells) {
    if (!cell.images_per_second) continue;
    const Cell*& leader = best[cell.order];
    if (leader == nullptr ||
        cell.images_per_second->spread.median > leader->images_per_second->spread.median) {
      leader = &cell;
    }
  }
  for (const auto& [order, cell] : best) {
    text +=
        "best in order " + order + ": " +
        h5pack::format_count(static_cast<std::int64_t>(cell->images_per_second->spread.median)) +
        " images/s with chunks of " + format_bytes(cell->chunk_bytes) + " and " +
        format_bytes(cell->cache_bytes) + (cell->source == "h5dread" ? " of cache" : " windows") +
        ", source " + cell->source + ", " + std::to_string(cell->threads) +
        (cell->threads == 1 ? " thread\n" : " threads\n");
  }
  return text + "results: " + h5pack::escape(output) + "\n";
}

}  // namespace

std::vector<Cell> make_cells(std::span<const ChunkSize> chunks, const SweepOptions& options) {
  const bool filtered = options.filter.deflate_level > 0;
  const std::int64_t largest =
      *std::max_element(options.cache_bytes.begin(), options.cache_bytes.end());
  std::vector<Cell> cells;
  for (const ChunkSize& chunk : chunks) {
    for (const std::int64_t cache : options.cache_bytes) {
      for (const OrderMode order : options.orders) {
        for (const std::string& source : options.sources) {
          const bool one_by_one = source == "h5dread";
          const std::vector<std::int64_t> one = {1};
          for (const std::int64_t threads : one_by_one ? one : options.threads) {
            Cell cell = {.chunk_bytes = chunk.bytes,
                         .chunk_samples = chunk.samples,
                         .cache_bytes = cache,
                         .order = std::string(to_string(order)),
                         .source = source,
                         .threads = threads};
            if (filtered && (source == "mapped" || source == "scatter")) {
              cell.status = CellStatus::skipped;
              cell.reason = "this source reads no filtered chunks";
            } else if (!one_by_one && order != OrderMode::chunk_shuffled && cache != largest) {
              cell.status = CellStatus::skipped;
              cell.reason =
                  "the window does not matter in this order; as with " + format_bytes(largest);
            }
            cells.push_back(std::move(cell));
          }
        }
      }
    }
  }
  return cells;
}

void continue_from(const Results& before, const std::string& name, Results& now) {
  const auto old = settings_of(before);
  const auto asked = settings_of(now);
  for (std::size_t i = 0; i < asked.size(); ++i) {
    if (old[i].second == asked[i].second) continue;
    throw Error(ErrorCode::invalid_argument,
                in_quotes(name) + " is of another sweep: " + asked[i].first + ": there " +
                    old[i].second + ", now " + asked[i].second +
                    "; ask for the same, or choose another --output");
  }
  std::vector<Cell> cells = before.cells;
  for (Cell& cell : cells) {
    if (cell.status != CellStatus::failed) continue;
    cell.status = CellStatus::pending;
    cell.reason.clear();
  }
  now.created = before.created;
  now.cells = std::move(cells);
  now.ceilings = before.ceilings;
  now.shuffle = before.shuffle;
  now.seconds_preparing = before.seconds_preparing;
  now.seconds_total = before.seconds_total;
  now.seconds_measured = before.seconds_measured;
}

void add_turn(const Turn& turn, Cell& cell) {
  cell.status = CellStatus::measuring;
  cell.rounds.push_back(turn.round);
  std::vector<double> images;
  std::vector<double> bytes;
  for (const Round& round : cell.rounds) {
    images.push_back(static_cast<double>(round.images) / round.seconds);
    bytes.push_back(static_cast<double>(round.bytes_read) / round.seconds);
  }
  count_in(turn.counted.chunk_loads, turn.cut, cell.chunk_loads.measured);
  count_in(turn.counted.hit_rate, turn.cut, cell.hit_rate.measured);
  count_in(turn.counted.read_amplification, turn.cut, cell.read_amplification.measured);
  const auto count = static_cast<std::int64_t>(cell.rounds.size());
  cell.images_per_second = {spread_of(images), count};
  cell.bytes_per_second = {spread_of(bytes), count};
  // The stages of the turn that is nearest to the median.
  const double median = cell.images_per_second->spread.median;
  const auto distance = [&](double rate) { return std::abs(rate - median); };
  const bool nearest = std::all_of(images.begin(), images.end(), [&](double rate) {
    return distance(images.back()) <= distance(rate);
  });
  if (turn.stages && (nearest || !cell.stages)) cell.stages = turn.stages;
}

std::vector<std::size_t> order_of_round(std::vector<std::size_t> cells, std::int64_t round,
                                        std::uint64_t seed,
                                        std::vector<std::int64_t>& times_first) {
  if (cells.empty()) return cells;
  using chunkio::base::high_word;
  using chunkio::base::low_word;
  chunkio::base::PhiloxStream stream({low_word(seed), high_word(seed)},
                                     static_cast<std::uint64_t>(round));
  chunkio::base::fisher_yates(cells.size(), stream, [&](std::uint64_t i, std::uint64_t j) {
    std::swap(cells[i], cells[j]);
  });
  const auto first = std::min_element(
      cells.begin(), cells.end(),
      [&](std::size_t a, std::size_t b) { return times_first[a] < times_first[b]; });
  std::iter_swap(cells.begin(), first);
  ++times_first[cells.front()];
  return cells;
}

std::size_t run_sweep(const SweepOptions& options, std::vector<std::string> notes) {
  refuse_same_files(options, std::vector<std::string>(options.file.empty() ? 0 : 1, options.file));
  const bool there = std::filesystem::exists(options.output);
  h5pack::check_new_file(options.output, options.force || options.go_on);
  if (!options.csv.empty()) h5pack::check_new_file(options.csv, options.force || options.go_on);
  std::optional<Results> before;
  if (options.go_on && there) before = read_results(options.output);

  const Pictures pictures(options);
  refuse_same_files(options, pictures.files());
  const std::vector<ChunkSize> chunks =
      choose_chunks(options.chunk_bytes, pictures.sample_bytes(), pictures.num_samples(),
                    options.filter.deflate_level > 0, notes);
  const TurnSettings settings = turn_settings(options, pictures.sample_bytes());
  Results results = describe(pictures, chunks, options, settings);
  for (const std::string& note : notes) say(note);
  if (before) {
    continue_from(*before, options.output, results);
    // Failed cells are tried again.
    if (before->complete && std::none_of(results.cells.begin(), results.cells.end(), is_open)) {
      if (!options.csv.empty()) ResultsFiles::save_csv(*before, options.csv);
      h5pack::print("nothing is left to do\n" + summary(*before, options.output));
      return 0;
    }
  }
  results.options.notes = std::move(notes);

  ResultsFiles outputs(options.output, options.csv);
  // Of this sweep; with --force there may be those of another one.
  bool kept = before.has_value();
  try {
    const Clock::time_point start = Clock::now();
    const ScratchFiles scratch(pictures, chunks, options);
    results.seconds_preparing += seconds_since(start);
    outputs.save(results);
    kept = true;
    Sweep(options, settings, chunks, scratch, results, outputs).run();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::cancelled) throw;
    const std::string name = in_quotes(options.output);
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
  h5pack::print(summary(results, options.output));
  if (failed > 0) say(std::to_string(failed) + " cells failed; the first: " + reason);
  return failed;
}

}  // namespace bench
