#include <algorithm>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <chunkio/error.hpp>
#include <chunkio/option_names.hpp>

#include "chunkbench/commands.hpp"
#include "chunkbench/confined.hpp"
#include "chunkbench/results.hpp"
#include "chunkbench/sweep.hpp"
#include "chunkbench/sweep_options.hpp"
#include "cli/byte_size.hpp"
#include "cli/chunk_filter.hpp"
#include "cli/disk_options.hpp"
#include "cli/escape.hpp"
#include "cli/image_shape.hpp"
#include "cli/options.hpp"
#include "cli/output.hpp"
#include "cli/parse_number.hpp"
#include "cli/quote.hpp"
#include "cli/stop_signal.hpp"
#include "harness/control_group.hpp"
#include "harness/device_throttle.hpp"
#include "harness/scratch_folder.hpp"

namespace bench {
namespace {

using chunkio::Error;
using chunkio::ErrorCode;
using chunkio::OrderMode;
using cli::ExitCode;
using cli::refuse;

/// Values separated by commas, each once.
template <class Value, class Parse>
void add_list(CLI::App& app, const std::string& name, std::vector<Value>& target,
              const std::string& by_default, const std::string& description, const Parse& parse) {
  const auto set = [&target, name, parse](const std::string& text) {
    target.clear();
    for (std::size_t at = 0; at <= text.size();) {
      const std::size_t end = std::min(text.find(',', at), text.size());
      Value value = parse(name, text.substr(at, end - at));
      if (std::find(target.begin(), target.end(), value) != target.end()) {
        refuse(name, "a list that names nothing twice", text);
      }
      target.push_back(std::move(value));
      at = end + 1;
    }
  };
  set(by_default);
  app.add_option_function<std::string>(name, set, description)
      ->type_name("LIST")
      ->default_str(by_default);
}

std::int64_t parse_size(const std::string& option, const std::string& text) {
  const std::int64_t bytes = cli::of_option(option, [&] { return cli::parse_byte_size(text); });
  if (bytes < 1) refuse(option, "at least 1 B each", text);
  return bytes;
}

std::int64_t parse_threads(const std::string& option, const std::string& text) {
  const std::optional<std::int64_t> threads = cli::parse_number<std::int64_t>(text);
  if (!threads || *threads < 1 || *threads > cli::kMaxThreads) {
    refuse(option, "whole numbers from 1 to " + std::to_string(cli::kMaxThreads), text);
  }
  return *threads;
}

OrderMode parse_order(const std::string& option, const std::string& text) {
  return cli::of_option(option, [&] { return chunkio::from_string<OrderMode>(text); });
}

std::string parse_source(const std::string& option, const std::string& text) {
  if (std::find(kSources.begin(), kSources.end(), text) != kSources.end()) return text;
  refuse(option, "of mapped, scatter, direct, hdf5 and h5dread", text);
}

void parse_synthetic(const std::string& text, SweepOptions& options) {
  const std::optional<cli::ImageShape> shape = cli::parse_image_shape(text);
  if (!shape) {
    refuse("--synthetic", "NxHxWxC with numbers of at least 1, such as 20000x64x64x3", text);
  }
  options.num_samples = shape->num_samples;
  options.height = shape->height;
  options.width = shape->width;
  options.channels = shape->channels;
}

/// What the command line says, before defaults that depend on it.
struct SweepCommand {
  SweepOptions options = {};
  std::string synthetic = {};
  bool cold = false;
  bool warm = false;
  cli::DiskOptions disk = {};
  std::int64_t memory_limit = 0;
  std::int64_t throttle = 0;
};

void finish(SweepCommand& command) {
  SweepOptions& options = command.options;
  if (options.file.empty() == command.synthetic.empty()) {
    throw Error(ErrorCode::invalid_argument,
                "name FILE, or --synthetic NxHxWxC for made-up images, and not both");
  }
  if (!command.synthetic.empty()) {
    if (options.num_samples > 0) {
      throw Error(ErrorCode::invalid_argument,
                  "--pictures is for FILE; --synthetic says how many there are");
    }
    parse_synthetic(command.synthetic, options);
  }
  if (command.cold && command.warm) {
    throw Error(ErrorCode::invalid_argument, "choose --cold or --warm");
  }
  options.trial.limit = command.disk.limit();
  // Memory that is mapped lies on no simulated disk.
  if (options.trial.limit) std::erase(options.sources, "mapped");
  // The disk that is simulated stands for the one that there is.
  options.trial.cold = command.cold || (!command.warm && !options.trial.limit);
  if (command.memory_limit > 0) options.trial.memory_limit = command.memory_limit;
  if (options.go_on && options.force) {
    throw Error(ErrorCode::invalid_argument,
                "--continue goes on from the results and --force replaces them; choose one");
  }
  std::error_code unknown;
  if (!std::filesystem::is_directory(options.scratch, unknown)) {
    throw Error(ErrorCode::not_found, "no folder '" + cli::escape(options.scratch) +
                                          "'; make it first, or choose another --scratch");
  }
}

ExitCode sweep(const SweepOptions& options, std::vector<std::string> notes) {
  const cli::StopSignal stop("scratch files may be left in " + cli::quote(options.scratch) +
                             "; the same command with --continue" +
                             (options.force ? " in place of --force" : "") +
                             " goes on from what was measured");
  try {
    const std::size_t failed = run_sweep(options, std::move(notes));
    return failed > 0 ? ExitCode::skipped : ExitCode::ok;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::cancelled || cli::StopSignal::received() == 0) throw;
    cli::print_error(error.what(), kChunkbench.program);
    return static_cast<ExitCode>(128 + cli::StopSignal::received());
  }
}

ExitCode run(SweepOptions options, std::int64_t throttle) {
  std::vector<std::string> notes;
  std::shared_ptr<ControlGroup> device;
  if (throttle > 0) {
    try {
      const DeviceThrottle made = throttle_device(device_of(options.scratch), throttle);
      device = made.group;
      options.throttled_device = made.description;
    } catch (const NoControlGroup& error) {
      notes.push_back(std::string("--throttle-device cannot be done (") + error.what() +
                      "); instead only what chunkio and H5Dread read is slowed down to the same "
                      "rate, as --limit-bandwidth does, and other programs are not");
      chunkio::DiskLimit limit = options.trial.limit.value_or(chunkio::DiskLimit());
      const auto rate = static_cast<double>(throttle);
      limit.bytes_per_second =
          limit.bytes_per_second > 0 ? std::min(limit.bytes_per_second, rate) : rate;
      options.trial.limit = limit;
    }
  }
  std::shared_ptr<ControlGroup> memory;
  if (options.trial.memory_limit) {
    try {
      memory = limit_memory(*options.trial.memory_limit, device);
    } catch (const NoControlGroup& error) {
      notes.push_back(std::string("no --memory-limit: ") + error.what() +
                      "; instead, the page cache may use all memory");
      options.trial.memory_limit.reset();
    }
  }
  const std::vector<Confinement> groups = confinements({device, memory});
  if (groups.empty()) return sweep(options, std::move(notes));
  // Made and removed out here, since the sweep may be killed.
  const chunkio::test::ScratchFolder scratch(options.scratch);
  options.scratch = scratch.path().string();
  const int code = run_confined(groups, [&] {
    return static_cast<int>(cli::run_or_report([&] { return sweep(options, notes); }, kChunkbench));
  });
  if (code == 128 + SIGKILL && options.trial.memory_limit) {
    throw Error(ErrorCode::out_of_resources,
                "the sweep was killed, as the kernel does beyond a --memory-limit of " +
                    cli::format_bytes(*options.trial.memory_limit) +
                    "; raise it, or choose smaller --cache-bytes or --chunk-bytes, and begin anew "
                    "with --force");
  }
  return static_cast<ExitCode>(code);
}

}  // namespace

void add_sweep_command(CLI::App& app, cli::Action& action) {
  CLI::App* const command = app.add_subcommand(
      "sweep", "Measure every combination of chunk size, cache size, order, source and threads");
  const auto chosen = std::make_shared<SweepCommand>();
  SweepOptions& options = chosen->options;
  options.scratch = std::filesystem::temp_directory_path().string();

  command->add_option("FILE", options.file, "HDF5 file whose images are measured")->type_name("");
  command->add_option("--synthetic", chosen->synthetic, "Measure made-up images instead")
      ->type_name("NxHxWxC");
  cli::add_integer(*command, "--pictures", options.num_samples, 1,
                   "Only the first N images of FILE (default: all)");
  cli::add_open_options(*command, options.open);
  cli::add_filter(*command, options.filter);

  add_list(*command, "--chunk-bytes", options.chunk_bytes, "256KiB,1MiB,4MiB,16MiB",
           "Chunk sizes, rounded down to whole images", parse_size);
  add_list(*command, "--cache-bytes", options.cache_bytes, "16MiB,64MiB,256MiB",
           "Memory for mixing: windows of chunkio's sources, rdcc_nbytes of h5dread", parse_size);
  add_list(*command, "--orders", options.orders, "chunk_shuffled,random,sequential",
           "Orders of an epoch", parse_order);
  add_list(
      *command, "--sources", options.sources, "mapped,scatter,direct,hdf5,h5dread",
      "Ways of reading; h5dread is one H5Dread an image through libhdf5's chunk cache, as h5py "
      "reads",
      parse_source);
  add_list(*command, "--threads", options.threads, "1,2", "Worker threads; h5dread has one",
           parse_threads);

  command->add_flag("--cold", chosen->cold,
                    "Nothing of a file in the page cache when it is read (default)");
  command->add_flag(
      "--warm", chosen->warm,
      "All of it in the page cache, as far as it has room (default with --simulate-disk and "
      "--limit-...)");
  cli::add_disk_limit(*command, chosen->disk);
  cli::add_integer(*command, "--rounds", options.rounds, 1,
                   "Trials of each cell; 5 or more for a figure to quote");
  cli::add_integer(*command, "--batch-size", options.trial.batch_size, 1, "Images a batch");
  cli::add_seed(*command, "--seed", options.trial.seed, "Of the orders");
  cli::add_integer(*command, "--trial-images", options.trial.images, 1,
                   "Images an epoch of a trial delivers (default: two of the largest windows)");
  cli::add_integer(*command, "--random-trial-images", options.trial.random_images, 1,
                   "The same in random order (default: 8 batches)");
  cli::add_seconds(*command, "--trial-seconds", options.trial.seconds,
                   "Timed seconds of a trial at least, in whole epochs; 0: one epoch", 0);
  cli::add_throttle_device(
      *command, chosen->throttle,
      "Let the disk of --scratch itself read so many bytes a second at most (a control group)");
  cli::add_byte_size(*command, "--memory-limit", chosen->memory_limit,
                     "Run in a control group with so much memory, page cache included")
      ->default_str("");

  command
      ->add_option("--scratch", options.scratch,
                   "Folder, on the disk to measure, for a file for each chunk size; they are "
                   "removed at the end")
      ->type_name("DIR")
      ->capture_default_str();
  command->add_option("--output,-o", options.output, "The results, as JSON")
      ->type_name("FILE")
      ->required();
  command->add_option("--csv", options.csv, "The results also as CSV")->type_name("FILE");
  command->add_flag("--continue", options.go_on,
                    "Go on from --output if it is there; all options must be the same");
  command->add_flag("--force", options.force, "Replace --output and --csv");
  command->add_flag("--quiet,-q", options.quiet, "Show no progress");
  command->callback([&action, chosen] {
    finish(*chosen);
    action = [chosen] { return run(chosen->options, chosen->throttle); };
  });
}

}  // namespace bench
