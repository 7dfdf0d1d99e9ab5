/// h5pack repack: a dataset written again, in other chunks, another order, or in part.
#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <chunkio/dataset.hpp>
#include <chunkio/error.hpp>

#include "byte_size.hpp"
#include "class_labels.hpp"
#include "command.hpp"
#include "copy_loader.hpp"
#include "options.hpp"
#include "output.hpp"
#include "output_files.hpp"
#include "render_json.hpp"
#include "render_text.hpp"
#include "repack_rows.hpp"
#include "repacker.hpp"
#include "stoppable.hpp"

namespace h5pack {
namespace {

using chunkio::Error;
using chunkio::ErrorCode;
using Json = nlohmann::ordered_json;

struct RepackCommand {
  std::string input = {};
  std::string output = {};
  chunkio::OpenOptions open = {};
  RepackSelection selection = {};
  std::vector<std::string> labels = {};
  std::vector<std::string> fields = {};
  RepackOptions options = {};
  std::int64_t threads = 0;
};

/// What the outputs are called, in the words of the checks that packing has.
Listing as_listing(const RepackCommand& command) {
  Listing listing;
  listing.source = {{"path", command.input}};
  listing.output_is_folder = !command.selection.split.empty();
  listing.splits.resize(listing.output_is_folder ? command.selection.split.size() : 1);
  if (!listing.output_is_folder) return listing;
  const std::vector<std::string> names = split_names(listing.splits.size());
  for (std::size_t i = 0; i < names.size(); ++i) listing.splits[i].name = names[i];
  return listing;
}

/// Options and source of the file, as they were, with what is different now.
std::string options_json(const chunkio::DatasetInfo& info, const RepackCommand& command) {
  Json stored = Json::parse(info.options_json, nullptr, false);
  if (!stored.is_object() || !stored.contains("source")) {
    stored = {{"command", "repack"},
              {"source", {{"kind", "hdf5"}, {"path", info.path}, {"images", info.images_path}}}};
  }
  const RepackOptions& options = command.options;
  stored["layout"] = to_string(options.layout.value_or(info.layout));
  stored["order"] = options.order;
  // Of the run that packed it: what it would have gone on with is another file.
  stored.erase("identity");
  stored.erase("seed");
  if (options.order == "shuffled") stored["seed"] = options.seed;
  stored.erase("chunk");
  stored.erase("chunk_bytes");
  if (options.writer.chunk_samples > 0) {
    stored["chunk"] = options.writer.chunk_samples;
  } else {
    stored["chunk_bytes"] = options.writer.chunk_bytes;
  }
  Json& steps = stored["repacked"];
  if (!steps.is_array()) steps = Json::array();
  Json step = {{"from", info.path}, {"num_samples", info.num_samples}};
  if (!info.uuid.empty()) step["uuid"] = info.uuid;
  if (!command.selection.split.empty()) {
    step["split"] = command.selection.split;
    step["stratify"] = command.selection.stratify;
    step["seed"] = command.selection.seed;
  }
  steps.push_back(std::move(step));
  return stored.dump(-1, ' ', false, Json::error_handler_t::replace);
}

/// Settles what depends on the file.
void finish_options(RepackCommand& command, const chunkio::DatasetInfo& info) {
  RepackOptions& options = command.options;
  RepackSelection& selection = command.selection;
  if (!command.labels.empty()) selection.labels = labels_of(info, command.labels);
  if (selection.order == RepackOrder::shuffled) {
    options.order = "shuffled";
    options.seed = selection.seed;
  } else if (selection.order == RepackOrder::stored && info.order == "shuffled") {
    options.order = "shuffled";
    options.seed = info.seed.value_or(0);
  }
  if (!command.fields.empty()) options.fields = command.fields;
  options.options_json = options_json(info, command);
}

RepackReport repack_file(RepackCommand& command, bool quiet) {
  const chunkio::Dataset dataset = chunkio::Dataset::open(command.input, command.open);
  const Listing listing = as_listing(command);
  check_outputs(listing, command.output, "", command.options.writer.overwrite);
  finish_options(command, dataset.info());
  command.options.quiet = quiet;
  command.options.threads = static_cast<int>(command.threads);
  const std::vector<std::vector<std::int64_t>> rows = choose_rows(dataset, command.selection);
  const std::vector<std::string> paths = output_paths(listing, command.output);

  RepackReport report{.input = command.input};
  std::optional<OutputFolder> folder;
  if (listing.output_is_folder) folder.emplace(command.output);
  for (std::size_t i = 0; i < paths.size(); ++i) {
    command.options.split = listing.splits[i].name;
    try {
      report.outputs.push_back(repack(dataset, rows[i], paths[i], command.options));
    } catch (const Error& error) {
      if (report.outputs.empty()) throw;
      std::vector<std::string> done(paths.begin(), paths.begin() + static_cast<std::ptrdiff_t>(i));
      throw Error(error.code(), error.what() + ("; already finished: " + first_few(done)));
    }
  }
  return report;
}

void add_selection(CLI::App& app, RepackCommand& command, std::string& split) {
  const std::string group = "What goes into the new file";
  add_rows(app, command.selection.rows)->group(group);
  add_names(app, "--labels", command.labels,
            "Only samples of these classes: names of the file, or numbers", "LIST")
      ->group(group);
  auto* const parts =
      app.add_option("--split", split,
                     "Several files with these proportions: 0.9:0.1 gives train.h5 and test.h5, "
                     "8:1:1 train.h5, val.h5 and test.h5");
  parts->type_name("A:B")->group(group);
  app.add_flag("--stratify", command.selection.stratify, "Split each class in these proportions")
      ->needs(parts)
      ->group(group);
  add_names(app, "--fields", command.fields,
            "Carry along only these fields beside labels and source rows (default: all)", "NAMES")
      ->group(group);
}

void add_file(CLI::App& app, RepackCommand& command) {
  const std::string group = "The new file";
  RepackOptions& options = command.options;
  auto* chunk = add_integer(app, "--chunk", options.writer.chunk_samples, 1, "Samples in a chunk");
  chunk->default_str("")->group(group);
  add_byte_size(app, "--chunk-bytes", options.writer.chunk_bytes, "Size of a chunk")
      ->group(group)
      ->excludes(chunk);
  add_choice<RepackOrder>(app, "--order", command.selection.order,
                          {{"stored", RepackOrder::stored},
                           {"source", RepackOrder::source},
                           {"shuffled", RepackOrder::shuffled}},
                          "Order of the samples: as they are, as in the source, or mixed")
      ->group(group);
  add_seed(app, "--seed", command.selection.seed, "Seed of the shuffled order and of --split")
      ->group(group);
  add_choice<std::optional<chunkio::Layout>>(
      app, "--out-layout", options.layout,
      {{"nhwc", chunkio::Layout::nhwc}, {"nchw", chunkio::Layout::nchw}},
      "Axis order in the new file (default: as it is)")
      ->group(group);
  app.add_flag("--force", options.writer.overwrite, "Replace existing output files")->group(group);
  add_integer(app, "--threads", command.threads, 1, "Threads that copy (default: all CPUs)")
      ->default_str("")
      ->group(group);
  add_memory_budget(app, options.memory_budget)->group(group);
}

}  // namespace

void add_repack_command(CLI::App& app, const GlobalOptions& global, Action& action) {
  CLI::App* const sub = app.add_subcommand(
      "repack", "Write any HDF5 image dataset again: other chunks, another order, a part, splits");
  const auto command = std::make_shared<RepackCommand>();
  const auto split = std::make_shared<std::string>();
  sub->add_option("IN", command->input, "An HDF5 file")->required()->type_name("");
  sub->add_option("-o,--output", command->output, "File to write; a folder with --split")
      ->required()
      ->type_name("OUT");
  const std::string group = "The file";
  add_open_options(*sub, command->open, group);
  sub->add_option("--label-field", command->open.labels,
                  "Path of the label dataset in the file (default: labels or label)")
      ->type_name("PATH")
      ->group(group);
  add_selection(*sub, *command, *split);
  add_file(*sub, *command);
  sub->callback([command, split, &global, &action] {
    check_threads(command->threads);
    if (command->output.empty()) throw Error(ErrorCode::invalid_argument, "-o must not be empty");
    if (!split->empty()) command->selection.split = parse_split(*split);
    action = [command, &global] {
      return run_stoppable(global, "the unfinished file was removed", [&] {
        const RepackReport report = repack_file(*command, global.quiet);
        print(global.json ? repack_json(report) : repack_text(report));
        return ExitCode::ok;
      });
    };
  });
}

}  // namespace h5pack
