/// h5pack tune: which chunks, window, threads and memory to train with, and what to expect.
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <tbb/info.h>

#include <chunkio/disk_limit.hpp>
#include <chunkio/error.hpp>
#include <chunkio/tuning.hpp>

#include "cli/byte_size.hpp"
#include "cli/command.hpp"
#include "cli/help.hpp"
#include "cli/interruptible.hpp"
#include "cli/option_flags.hpp"
#include "cli/options.hpp"
#include "cli/output.hpp"
#include "cli/snippets.hpp"
#include "cli/text_layout.hpp"
#include "h5pack/commands/commands.hpp"
#include "h5pack/commands/pack_options.hpp"
#include "h5pack/report/tune_report.hpp"
#include "h5pack/tune/machine_meter.hpp"
#include "h5pack/tune/tuned_source.hpp"

namespace h5pack {
namespace {

using chunkio::Error;
using chunkio::ErrorCode;

/// Where nothing is known of the disk.
constexpr const char* kAssumedDisk = "sata-ssd";
/// Packing again costs time and space; a smaller factor, or less time of each epoch, is not worth
/// it.
constexpr double kWorthPacking = 1.1;
constexpr double kWorthSeconds = 1;
constexpr double kMeasuredSeconds = 2;

/// Decides whether to pack a file again, and says by what rule.
void compare_with_packed(TuneReport& report) {
  const auto samples = static_cast<double>(report.source.num_samples);
  const auto epoch_seconds = [&](const chunkio::Throughput& rate) {
    return samples / rate.images_per_second;
  };
  const auto is_better = [&](const chunkio::Throughput& packed, const chunkio::Throughput& stored) {
    return epoch_seconds(stored) > kWorthPacking * epoch_seconds(packed) &&
           epoch_seconds(stored) - epoch_seconds(packed) > kWorthSeconds;
  };
  const chunkio::Tuning& stored = *report.as_stored;
  const bool first = is_better(report.packed.first_epoch, stored.first_epoch);
  report.pack = first || is_better(report.packed.later_epochs, stored.later_epochs);
  const auto& [now, then] = first || !report.pack
                                ? std::pair(stored.first_epoch, report.packed.first_epoch)
                                : std::pair(stored.later_epochs, report.packed.later_epochs);
  const auto text = [&](const chunkio::Throughput& rate, const char* when) {
    return cli::decimals(epoch_seconds(rate), 3) + " s" + when +
           (report.step_seconds > 0 ? " (stall " + cli::percent(rate.stall, 1) + ")" : "");
  };
  report.notes.push_back(
      (first || !report.pack ? "the first epoch takes " : "a later epoch takes ") +
      text(now, " as the file is") + ", " + text(then, " packed again") +
      ", which is advised where it saves a tenth of an epoch and more than " +
      cli::decimals(kWorthSeconds, 1) + " s");
}

/// What else there is to say of a file of encoded images.
void compare_with_pixels(TuneReport& report) {
  const TunedSource& source = report.source;
  const std::int64_t pixel_bytes = source.num_samples * source.sample_bytes();
  report.notes.push_back("as pixels of this size the images take " +
                         cli::format_bytes(pixel_bytes) + ", encoded " +
                         cli::format_bytes(source.encoded_bytes));
  if (!source.random_crops()) return;
  report.pack = report.pack && !report.as_stored;
  report.notes.emplace_back(
      "packed images would have one part of each image, not another one each epoch: so they are "
      "not advised");
}

struct TuneOptions {
  PackRequest source = {};
  std::string kind = {};
  chunkio::OpenOptions open = {};
  std::int64_t memory = std::int64_t{4} << 30;
  std::int64_t page_cache = 0;  // 0: half_of_memory()
  std::int64_t cpus = 0;        // 0: those this process may use
  std::int64_t batch = 256;
  double step_ms = 0;
  std::string profile = {};
  bool measure = false;
  std::string scratch = ".";
};

/// 0 if it is not known. The loader and the page cache get one half each.
std::int64_t half_of_memory() {
  const std::int64_t available = chunkio::available_memory();
  return available == std::numeric_limits<std::int64_t>::max() ? 0 : available / 2;
}

void settle_disk(const TuneOptions& options, const OpenedSource& opened, TuneReport& report) {
  if (options.measure) {
    // The files of a dataset of several lie on one disk, or the first stands for all.
    const MeteredFile file =
        opened.dataset ? MeteredFile::existing(opened.dataset->info().shards.empty()
                                                   ? opened.source.path
                                                   : opened.dataset->info().shards.front().path)
                       : MeteredFile::scratch(options.scratch);
    const MeasuredDisk measured = measure_disk(file, kMeasuredSeconds);
    report.disk_origin = "measured";
    report.disk_method = measured.method;
    report.rates.disk = measured.limit;
    if (!opened.dataset) {
      report.notes.push_back(
          "the disk of the folder --scratch was measured (default: the current one): pack to that "
          "disk");
    }
    return;
  }
  report.disk_origin = options.profile.empty() ? "assumed" : "profile";
  report.disk_name = options.profile.empty() ? kAssumedDisk : options.profile;
  for (const chunkio::DiskProfile& profile : chunkio::disk_profiles()) {
    if (profile.name != report.disk_name) continue;
    report.rates.disk = profile.limit;
    report.disk_method = profile.source;
  }
}

/// How fast encoded images are decoded depends on their files, so it is always measured.
void settle_processors(const TuneOptions& options, const OpenedSource& opened, TuneReport& report) {
  if (!opened.dataset || !(options.measure || opened.source.encoded_bytes > 0)) return;
  try {
    report.rates = measure_rates(*opened.dataset, report.rates);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::cancelled) throw;
    report.notes.push_back(std::string("copying and decoding could not be measured (") +
                           error.what() + "): figures of another machine are assumed");
  }
}

/// FILE.h5 and FILE-*-of-00008.h5 to FILE-tuned.h5.
std::string tuned_name(const std::string& path) {
  const std::filesystem::path file(path);
  const std::string stem = file.stem().string();
  return (file.parent_path() / (stem.substr(0, stem.rfind("-*-of-")) + "-tuned.h5")).string();
}

/// An expression that makes the options.
std::string decode_text(const chunkio::DecodeOptions& decode, bool python) {
  const std::string crop(to_string(decode.crop));
  const bool is_default = decode.crop == chunkio::CropMode::center;
  const std::string height = std::to_string(decode.height);
  const std::string width = std::to_string(decode.width);
  if (python) {
    return "chunkio.Decode(" + height + (decode.width == decode.height ? "" : ", " + width) +
           (is_default ? "" : ", crop=" + cli::string_literal(crop)) + ")";
  }
  return "chunkio::DecodeOptions{.height = " + height + ", .width = " + width +
         (is_default ? "" : ", .crop = chunkio::CropMode::" + crop) + "}";
}

/// The options that are not those by default: keywords of Python, or members of a braced list.
std::string open_text(const chunkio::OpenOptions& open, bool python) {
  std::vector<std::string> options;
  const auto add = [&](const std::string& name, const std::string& value) {
    options.push_back(python ? name + "=" + value : "." + name + " = " + value);
  };
  if (!open.images.empty()) add("images", cli::string_literal(open.images));
  if (!open.labels.empty()) add("labels", cli::string_literal(open.labels));
  if (open.layout) {
    const std::string name(to_string(*open.layout));
    add("layout", python ? cli::string_literal(name) : "chunkio::Layout::" + name);
  }
  if (open.decode) add("decode", decode_text(*open.decode, python));
  if (open.allow_external) add("allow_external", python ? "True" : "true");
  return cli::joined(options, ", ");
}

void add_lines(TuneReport& report) {
  const TunedSource& source = report.source;
  const chunkio::Tuning& advice = report.advice();
  std::string file = source.path;
  if (report.pack) {
    const bool packed_before = source.kind == "hdf5";
    const std::string output = packed_before             ? tuned_name(source.path)
                               : source.output_is_folder ? "packed"
                                                         : "train.h5";
    file = source.output_is_folder ? "packed/" + source.split + ".h5" : output;
    const bool planned = source.kind == "planned";
    if (planned && source.channels != 1 && source.channels != 3) {
      report.notes.emplace_back(
          "h5pack packs images of 1 or 3 channels: write others with chunkio::DatasetWriter");
    } else {
      report.pack_line = "h5pack " +
                         (packed_before ? "repack"
                          : planned     ? "folder"
                                        : source.kind) +
                         " " + (planned ? "DIR" : cli::shell_word(source.path)) + " -o " +
                         cli::shell_word(source.output_is_folder ? "packed/" : output) +
                         source.options + " --chunk " + std::to_string(advice.chunk_samples);
    }
  }
  // What was packed by then opens without.
  const std::string open = report.pack ? "" : open_text(source.open, false);
  const std::string keywords = report.pack ? "" : open_text(source.open, true);
  report.cpp_line =
      "chunkio::Loader loader(chunkio::Dataset::open(" + cli::string_literal(file) +
      (open.empty() ? "" : ", {" + open + "}") +
      "), {.batch_size = " + std::to_string(report.batch_size) +
      ", .order = {.window_bytes = " + std::to_string(advice.window_bytes) +
      "}, .memory = {.budget = " + std::to_string(advice.memory_budget) +
      ", .prefetch_depth = " + std::to_string(advice.prefetch_depth) +
      (advice.resident == chunkio::Resident::host ? ", .resident = chunkio::Resident::host" : "") +
      "}, .io = {.num_threads = " + std::to_string(advice.num_threads) + "}});";
  report.python_line = "loader = chunkio.Loader(chunkio.Dataset(" + cli::string_literal(file) +
                       (keywords.empty() ? "" : ", " + keywords) +
                       "), batch_size=" + std::to_string(report.batch_size) +
                       ", window_bytes=" + std::to_string(advice.window_bytes) +
                       ", num_threads=" + std::to_string(advice.num_threads) +
                       ", prefetch_depth=" + std::to_string(advice.prefetch_depth) +
                       ", memory_budget=" + std::to_string(advice.memory_budget) +
                       (advice.resident == chunkio::Resident::host ? ", resident=\"host\"" : "") +
                       ")";
  if (source.encoded_bytes > 0 && !report.pack) return;
  const bool chunked = report.pack || source.random_h5py.has_value();
  if (chunked && !(source.several_files && !report.pack)) {
    report.h5py_line = cli::h5py_line(file, advice.cache);
  } else if (source.several_files) {
    report.notes.emplace_back("h5pack link makes one file of the shards for h5py");
  } else {
    report.notes.emplace_back(
        "the images are not chunked, so HDF5 has nothing to cache: in h5py, read thousands of "
        "neighbouring rows at once");
  }
}

TuneReport tune_for(const TuneOptions& options) {
  const OpenedSource opened = open_tuned_source(options.source, options.kind, options.open);
  TuneReport report;
  report.source = opened.source;
  report.memory_bytes = options.memory;
  report.cache_bytes = options.page_cache > 0 ? options.page_cache : half_of_memory();
  report.batch_size = options.batch;
  report.step_seconds = options.step_ms / 1e3;
  report.rates.num_cpus =
      options.cpus > 0 ? options.cpus : std::max(1, tbb::info::default_concurrency());
  settle_disk(options, opened, report);
  settle_processors(options, opened, report);

  chunkio::TuningTask task{.num_samples = opened.source.num_samples,
                           .sample_bytes = opened.source.sample_bytes(),
                           .row_bytes = opened.source.row_bytes,
                           .memory_bytes = report.memory_bytes,
                           .cache_bytes = report.cache_bytes,
                           .batch_size = report.batch_size,
                           .step_seconds = report.step_seconds};
  report.packed = chunkio::tune(task, report.rates);
  if (opened.source.stored) {
    task.stored = opened.source.stored;
    task.can_be_resident = !opened.source.random_crops();
    try {
      report.as_stored = chunkio::tune(task, report.rates);
    } catch (const Error& error) {
      // Its chunks are too large for this memory; those of a new file would not be.
      if (error.code() != ErrorCode::out_of_resources) throw;
      report.notes.push_back(std::string("as it is: ") + error.what());
    }
  }
  if (report.as_stored) compare_with_packed(report);
  if (opened.source.encoded_bytes > 0) compare_with_pixels(report);
  add_lines(report);
  if (opened.dataset && !opened.dataset->info().labels) {
    report.notes.push_back("labels: " + cli::no_labels_text(opened.dataset->info()));
  }
  return report;
}

}  // namespace

void add_tune_command(CLI::App& app, const cli::GlobalOptions& global, cli::Action& action) {
  CLI::App* const command = app.add_subcommand(
      "tune", "Choose chunks, window, threads and memory, and predict the speed");
  const auto options = std::make_shared<TuneOptions>();
  if (const std::int64_t half = half_of_memory(); half > 0) {
    options->memory = std::min(options->memory, half);
  }
  PackRequest& source = options->source;
  cli::add_required(
      *command, "SOURCE", source.source.input,
      "What h5pack packs (a folder, CIFAR, CelebA, a CSV file), an HDF5 file, or NxHxWxC: N "
      "images that do not exist yet");
  std::vector<std::pair<std::string, std::string>> kinds;
  for (const SourceKind* kind : source_kinds()) kinds.emplace_back(kind->name, kind->name);
  kinds.emplace_back("hdf5", "hdf5");
  cli::add_choice<std::string>(*command, "--kind", options->kind, std::move(kinds),
                               "Kind of SOURCE, if h5pack cannot tell");
  cli::add_byte_size(*command, "--memory-budget", options->memory,
                     "Memory that the loader may use");
  cli::add_byte_size(
      *command, "--page-cache", options->page_cache,
      "Memory that can cache the file between epochs (default: half of what is available)")
      ->default_str("");
  cli::add_integer(*command, "-j,--threads", options->cpus, 1,
                   "Threads that the loader may use (default: the CPUs of this machine)")
      ->default_str("");
  cli::add_milliseconds(*command, "--step-ms", options->step_ms,
                        "Time of your training step for a batch; 0: not known");
  cli::add_integer(*command, "--batch", options->batch, 1, "Samples in a batch");
  auto* const measure = command->add_flag(
      "--measure", options->measure, "Measure the disk for two seconds, and copying and decoding");
  std::vector<std::pair<std::string, std::string>> profiles;
  for (const chunkio::DiskProfile& profile : chunkio::disk_profiles()) {
    profiles.emplace_back(profile.name, profile.name);
  }
  cli::add_choice<std::string>(*command, "--disk", options->profile, std::move(profiles),
                               "Kind of disk that will hold the file")
      ->excludes(measure);
  command
      ->add_option("--scratch", options->scratch,
                   "Folder on the disk to measure, if SOURCE is not packed yet")
      ->type_name("DIR")
      ->capture_default_str()
      ->needs(measure);
  {
    const cli::Heading heading(*command, "Images");
    command->add_option("--resize", source.resize, "As when packing")->type_name("S|HxW");
    command->add_option("--center-crop", source.center_crop, "As when packing")->type_name("HxW");
    command->add_option("--pad", source.pad, "As when packing")->type_name("HxW");
    cli::add_choice<ColorMode>(*command, "--channels", source.options.image.color,
                               {{"rgb", ColorMode::rgb}, {"gray", ColorMode::gray}},
                               "Channels of all images");
  }
  for (const SourceKind* kind : source_kinds()) {
    add_source_options(*command, *kind, source.source);
  }
  cli::add_open_options(*command, options->open, "HDF5 files");
  cli::set_help(*command,
                {"h5pack tune train.h5 --step-ms 12 --measure",
                 "h5pack tune photos/ --step-ms 12 --disk hdd --resize 64x64"},
                {"--step-ms", "--batch", "--memory-budget", "--measure", "--disk", "--kind",
                 "--resize", "--center-crop", "--images", "--label-field"});
  command->callback([&global, &action, options] {
    options->source.output = "train.h5";  // of what finish_options() checks, unused here
    finish_options(options->source);
    action = [&global, options] {
      return cli::run_interruptible(global, {"nothing was written", "nothing was written"}, [&] {
        const TuneReport report = tune_for(*options);
        cli::print(global.json ? tune_json(report) : tune_text(report, cli::use_colour(stdout)));
        return cli::ExitCode::ok;
      });
    };
  });
}

}  // namespace h5pack
