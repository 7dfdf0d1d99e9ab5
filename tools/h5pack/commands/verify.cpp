/// h5pack verify: whether a file still is what was packed, and which images are lost if not.
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <chunkio/dataset.hpp>
#include <chunkio/error.hpp>
#include <chunkio/statistics.hpp>
#include <chunkio/verify.hpp>

#include "cli/command.hpp"
#include "cli/help.hpp"
#include "cli/interruptible.hpp"
#include "cli/options.hpp"
#include "cli/output.hpp"
#include "cli/parse_number.hpp"
#include "cli/progress.hpp"
#include "cli/quote.hpp"
#include "cli/stop_signal.hpp"
#include "h5pack/commands/commands.hpp"
#include "h5pack/dataset/class_labels.hpp"
#include "h5pack/dataset/structure_check.hpp"
#include "h5pack/image/decode.hpp"
#include "h5pack/pack/source_comparison.hpp"
#include "h5pack/report/report.hpp"
#include "h5pack/sources/source_provenance.hpp"

namespace h5pack {
namespace {

struct VerifyCommand {
  std::string file = {};
  chunkio::OpenOptions open = {};
  bool quick = false;
  std::int64_t threads = 0;
  std::string against = {};
  std::int64_t sample = 100;  // -1: all
  std::uint64_t seed = 0;
};

void add_damage(VerifyReport& report, std::vector<chunkio::DamagedChunk> chunks) {
  for (chunkio::DamagedChunk& chunk : chunks) report.damaged.push_back({.chunk = std::move(chunk)});
}

void add_damage(VerifyReport& report, const std::vector<chunkio::DamagedObject>& objects) {
  for (const chunkio::DamagedObject& object : objects) report.problems.push_back(object.reason);
}

std::vector<chunkio::DamagedObject> check_objects(const chunkio::Dataset& dataset) {
  const cli::StopSignalToken stopping;
  return chunkio::verify_objects(dataset, stopping.token());
}

void check_chunk_index(VerifyReport& report, const chunkio::Dataset& dataset, bool quiet) {
  // Most files have nothing to look up, and then nothing is to be shown.
  std::optional<cli::Progress> progress;
  const cli::StopSignalToken stopping;
  const auto count = [&](std::int64_t chunks) {
    if (!progress) {
      progress.emplace("looking up " + dataset.info().path, "chunks", dataset.info().num_chunks,
                       quiet);
    }
    progress->add(chunks);
  };
  add_damage(report, chunkio::verify_chunk_index(dataset, count, stopping.token()).damaged);
}

void check_chunks(VerifyReport& report, const chunkio::Dataset& dataset, std::int64_t threads,
                  bool quiet) {
  cli::Progress progress("verifying " + dataset.info().path, "chunks", dataset.info().num_chunks,
                         quiet);
  const auto start = std::chrono::steady_clock::now();
  const cli::StopSignalToken stopping;
  chunkio::VerifyResult result =
      chunkio::verify_chunks(dataset, {.num_threads = threads,
                                       .on_progress = [&](auto chunks) { progress.add(chunks); },
                                       .stop = stopping.token()});
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  report.num_chunks = result.num_chunks;
  report.bytes_read = result.bytes_read;
  // These say more of a chunk than its place in the index does.
  report.damaged.clear();
  add_damage(report, std::move(result.damaged));
}

/// What the damaged rows were: source rows if the file has them, files if the source is still
/// where it was.
void name_losses(VerifyReport& report, const chunkio::Dataset& dataset) {
  if (report.damaged.empty()) return;
  try {
    for (DamageReport& damage : report.damaged) {
      for (const chunkio::RowRange& rows : damage.chunk.damaged_rows) {
        const std::vector<std::int64_t> some = source_rows(dataset, rows);
        damage.source_rows.insert(damage.source_rows.end(), some.begin(), some.end());
      }
    }
    const SourceProvenance source(dataset.info(), "");
    for (DamageReport& damage : report.damaged) {
      for (const std::int64_t row : damage.source_rows) {
        const std::optional<std::string> name = source.name(row);
        if (!name) {
          throw chunkio::Error(chunkio::ErrorCode::not_found,
                               "the source has " + std::to_string(source.num_images()) +
                                   " images now, and no row " + std::to_string(row));
        }
        damage.files.push_back(*name);
      }
    }
  } catch (const chunkio::Error& error) {
    // The damage is the news; a source that is gone does not make it less.
    for (DamageReport& damage : report.damaged) damage.files.clear();
    report.files_unknown = error.what();
  }
}

/// Which classes the damaged rows are of, as the file says.
void name_classes(VerifyReport& report, const chunkio::Dataset& dataset) {
  const std::vector<std::string>& names = dataset.info().class_names;
  if (names.empty()) return;
  try {
    for (DamageReport& damage : report.damaged) {
      for (const chunkio::RowRange& rows : damage.chunk.damaged_rows) {
        for (const std::int64_t label : read_classes(dataset, rows)) {
          damage.classes.push_back(class_name(names, label).value_or(std::to_string(label)));
        }
      }
    }
  } catch (const chunkio::Error&) {
    // check_objects() reports labels that cannot be read.
    for (DamageReport& damage : report.damaged) damage.classes.clear();
  }
}

VerifyReport verify(const VerifyCommand& command, bool quiet) {
  const chunkio::Dataset dataset = chunkio::Dataset::open(command.file, command.open);
  // First, since it is what may be named wrongly.
  std::optional<SourceProvenance> source;
  if (!command.against.empty() && dataset.info().encoded) {
    throw chunkio::Error(chunkio::ErrorCode::unsupported,
                         dataset.info().path +
                             ": --against compares pixels of raw images; of encoded ones, digests "
                             "say whether they are as they were packed");
  }
  if (!command.against.empty()) require_images(dataset.info());
  if (!command.against.empty()) source.emplace(dataset.info(), command.against);
  VerifyReport report;
  report.dataset = dataset.info();
  check_chunk_index(report, dataset, quiet);
  report.problems = contradictions(dataset);
  report.not_compared =
      command.quick ? "--quick looks at the structure only" : why_not_verifiable(dataset);
  if (report.not_compared.empty()) {
    try {
      check_chunks(report, dataset, command.threads, quiet);
    } catch (const chunkio::Error& error) {
      // Digests may cover what cannot be opened, which is told below.
      const bool told = !report.dataset.damaged_objects.empty();
      if (error.code() != chunkio::ErrorCode::corrupt_data || !told) throw;
      report.not_compared = "its digests cover what cannot be opened";
    }
  }
  if (command.quick) {
    add_damage(report, dataset.info().damaged_objects);
  } else {
    add_damage(report, check_objects(dataset));
    if (!report.not_compared.empty()) {
      if (auto problem = unreadable_samples(dataset, quiet)) {
        report.problems.push_back(*std::move(problem));
      }
    }
  }
  name_losses(report, dataset);
  name_classes(report, dataset);
  if (source) {
    report.source = compare_with_source(dataset, *source,
                                        {.sample = command.sample, .seed = command.seed}, quiet);
  }
  return report;
}

cli::ExitCode run_verify(const VerifyCommand& command, const cli::GlobalOptions& global) {
  return cli::run_interruptible(global, {"nothing was changed", "nothing was changed"}, [&] {
    const OpenCvSilence silence;
    VerifyReport report;
    try {
      report = verify(command, global.quiet);
    } catch (const chunkio::Error& error) {
      // So damaged that it cannot even be opened; other errors say nothing about the file.
      if (error.code() != chunkio::ErrorCode::corrupt_data) throw;
      cli::print_failure(to_string(error.code()), error.what(), global.json);
      return cli::ExitCode::damaged;
    }
    cli::print(global.json ? verify_json(report) : verify_text(report));
    if (report.intact()) return cli::ExitCode::ok;
    cli::print_error(
        command.file +
        (report.problems.empty() && report.damaged.empty()
             ? " differs from its source; pack it again, or name the source that it was packed from"
             : " is damaged; restore it from an intact copy, or pack it again"));
    return cli::ExitCode::damaged;
  });
}

/// A number of images, or all of them.
CLI::Option* add_sample(CLI::App& app, std::int64_t& target) {
  const auto set = [&target](const std::string& text) {
    const auto value = cli::parse_number<std::int64_t>(text);
    if (text != "all" && (!value || *value < 1)) {
      throw chunkio::Error(
          chunkio::ErrorCode::invalid_argument,
          "--sample must be a whole number, 1 or more, or all, not " + cli::quote(text));
    }
    target = value.value_or(-1);
  };
  return app
      .add_option_function<std::string>("--sample", set, "How many images --against compares")
      ->type_name("N|all")
      ->default_str(std::to_string(target));
}

}  // namespace

void add_verify_command(CLI::App& app, const cli::GlobalOptions& global, cli::Action& action) {
  CLI::App* const command = app.add_subcommand(
      "verify", "Check a file: its structure, and every sample against its digest");
  const auto options = std::make_shared<VerifyCommand>();
  cli::add_file_or_shards(*command, options->file);
  command->add_flag("--quick", options->quick, "Check only the structure; read no images");
  cli::add_integer(*command, "-j,--threads", options->threads, 1, "Threads that read and compare")
      ->default_str("8");
  auto* const against = command->add_option(
      "--against", options->against,
      "Decode images of the source again and compare them (DIR, or FILE of h5pack csv)");
  against->type_name("SOURCE");
  add_sample(*command, options->sample)->needs(against);
  cli::add_seed(*command, "--seed", options->seed, "Seed that picks the images of --sample")
      ->needs(against);
  cli::add_open_options(*command, options->open);
  cli::set_help(*command, {"h5pack verify train.h5",
                           "h5pack verify train.h5 --against photos/ --sample all"});
  command->callback([&global, &action, options] {
    cli::check_threads(options->threads);
    action = [&global, options] { return run_verify(*options, global); };
  });
}

}  // namespace h5pack
