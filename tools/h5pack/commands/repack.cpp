/// h5pack repack: a dataset written again, in other chunks, another order, or in part.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <chunkio/dataset.hpp>
#include <chunkio/dataset_writer.hpp>
#include <chunkio/error.hpp>

#include "cli/chunk_filter.hpp"
#include "cli/command.hpp"
#include "cli/escape.hpp"
#include "cli/help.hpp"
#include "cli/interruptible.hpp"
#include "cli/json_text.hpp"
#include "cli/options.hpp"
#include "cli/output.hpp"
#include "cli/parse_number.hpp"
#include "cli/quote.hpp"
#include "cli/resume_hint.hpp"
#include "cli/stop_signal.hpp"
#include "cli/text_layout.hpp"
#include "h5pack/commands/commands.hpp"
#include "h5pack/commands/pack_options.hpp"
#include "h5pack/dataset/class_labels.hpp"
#include "h5pack/dataset/structure_check.hpp"
#include "h5pack/pack/encoded_repacker.hpp"
#include "h5pack/pack/output_files.hpp"
#include "h5pack/pack/repack_rows.hpp"
#include "h5pack/pack/repacker.hpp"
#include "h5pack/pack/run_fingerprint.hpp"
#include "h5pack/report/report.hpp"
#include "h5pack/sources/file_stamps.hpp"
#include "h5pack/sources/stored_rows.hpp"

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
  bool dry_run = false;
  std::optional<ImageFormat> encode = {};
  int quality = kDefaultJpegQuality;
};

/// What is read and what the outputs are called, in the words of the checks that packing has.
Listing as_listing(const RepackCommand& command, const chunkio::Dataset& dataset) {
  Listing listing;
  listing.source = {{"path", command.input}};
  listing.output_is_folder = !command.selection.split.empty();
  listing.splits.resize(listing.output_is_folder ? command.selection.split.size() : 1);
  for (Split& split : listing.splits) split.images = std::make_unique<StoredRows>(dataset);
  if (!listing.output_is_folder) return listing;
  const std::vector<std::string> names = split_names(listing.splits.size());
  for (std::size_t i = 0; i < names.size(); ++i) listing.splits[i].name = names[i];
  return listing;
}

/// "0:100,200:300".
std::string ranges_text(std::span<const chunkio::RowRange> ranges) {
  return cli::joined(ranges, ",", [](const chunkio::RowRange& range) {
    return std::to_string(range.begin) + ":" + std::to_string(range.end);
  });
}

/// The rows chosen, as text; of long lists the beginning, and a digest of the whole.
std::string rows_text(const std::optional<chunkio::RowSelection>& rows) {
  constexpr std::size_t kShown = 16;
  if (!rows) return "all";
  const std::span<const chunkio::RowRange> ranges = rows->ranges();
  if (ranges.size() <= kShown) return ranges_text(ranges);
  return ranges_text(ranges.first(kShown)) + " and " + std::to_string(ranges.size() - kShown) +
         " more, with digest " + text_digest(ranges_text(ranges));
}

template <class T>
std::string joined(const std::vector<T>& values, const char* between) {
  return cli::joined(values, between, [](const T& value) { return cli::json_text(Json(value)); });
}

/// "png", "jpeg:90", "as it was".
std::string encoding_text(const RepackOptions& options) {
  if (!options.encoding) return "as it was";
  if (options.encoding->format == ImageFormat::png) return "png";
  return "jpeg:" + std::to_string(options.encoding->quality);
}

/// Says how encoded images become pixels: "224x224 center".
std::string decode_text(const chunkio::DecodeOptions& decode) {
  return to_string(ImageSize{decode.height, decode.width}) + " " +
         std::string(to_string(decode.crop));
}

Json scale_json(const chunkio::PixelScale& scale) {
  return {{"black", scale.black}, {"white", scale.white}, {"clip", scale.clip}};
}

/// A..B. \throws Error invalid_argument.
chunkio::PixelScale parse_scale(const std::string& text) {
  const auto number = [&](const std::string& part) {
    const auto value = cli::parse_number<double>(part);
    if (value && std::isfinite(*value)) return *value;
    throw Error(ErrorCode::invalid_argument,
                "--scale must be two numbers such as 0..1 or -1..1, not " + cli::quote(text));
  };
  const std::size_t dots = text.find("..");
  const chunkio::PixelScale scale{
      .black = number(text.substr(0, dots)),
      .white = number(dots == std::string::npos ? "" : text.substr(dots + 2))};
  if (scale.black == scale.white) {
    throw Error(ErrorCode::invalid_argument,
                "--scale needs two different numbers, not " + cli::quote(text));
  }
  return scale;
}

/// What makes two runs write the same file, under the names of the command line.
/// \param part  of --split; else empty.
Json identity_of(const chunkio::DatasetInfo& info, const RepackCommand& command,
                 const std::string& part) {
  const RepackSelection& selection = command.selection;
  const RepackOptions& options = command.options;
  Json identity = {{"command", "repack"},
                   {"source", cli::escape(info.path)},
                   {"source file", file_identity(info)},
                   {"--images", cli::escape(info.leading.name)},
                   {"--label-field", info.labels ? cli::escape(info.labels->name) : "none"},
                   {"--layout", std::string(to_string(info.layout))},
                   {"--rows", rows_text(selection.rows)},
                   {"--labels", selection.labels.empty() ? "all" : joined(selection.labels, ",")},
                   {"--split", selection.split.empty() ? "none" : joined(selection.split, ":")},
                   {"--stratify", selection.stratify},
                   {"part", part.empty() ? "all" : part},
                   {"--fields", command.fields.empty() ? "all" : joined(command.fields, ",")},
                   {"--order", to_string(selection.order)},
                   {"--seed", selection.seed},
                   {"--out-layout", std::string(to_string(options.layout.value_or(info.layout)))},
                   {"--filter", options.writer.filter.to_string()},
                   {"--chunk", options.writer.chunk_samples},
                   {"--chunk-bytes", options.writer.chunk_bytes}};
  if (command.open.scale) {
    identity["--scale"] = scale_json(*command.open.scale).dump();
  }
  if (info.encoded && command.open.decode) {
    identity["--decode"] = decode_text(*command.open.decode);
  }
  // Not of files that are stored as pixels, whose identities are older than the option.
  if (becomes_encoded(info, options)) identity["--encode"] = encoding_text(options);
  return identity;
}

/// Options and source of the file, as they were, with what is different now.
std::string options_json(const chunkio::DatasetInfo& info, const RepackCommand& command,
                         const Json& identity) {
  Json stored = Json::parse(info.options_json, nullptr, false);
  if (!stored.is_object() || !stored.contains("source")) {
    stored = {{"command", "repack"},
              {"source", {{"kind", "hdf5"}, {"path", info.path}, {"images", info.images_path}}}};
  }
  // The parts of --split have names of their own.
  if (!command.selection.split.empty() && !info.split.empty() && stored["source"].is_object()) {
    stored["source"].emplace("split", info.split);
  }
  const RepackOptions& options = command.options;
  stored["layout"] = to_string(options.layout.value_or(info.layout));
  stored["order"] = options.order;
  if (command.open.scale) stored["scale"] = scale_json(*command.open.scale);
  // This run's identity replaces that of the run that packed the file.
  stored["identity"] = identity;
  stored.erase("seed");
  if (options.order == "shuffled") stored["seed"] = options.seed;
  stored.erase("chunk");
  stored.erase("chunk_bytes");
  if (options.writer.chunk_samples > 0) {
    stored["chunk"] = options.writer.chunk_samples;
  } else {
    stored["chunk_bytes"] = options.writer.chunk_bytes;
  }
  stored.erase("filter");
  if (options.writer.filter.deflate_level > 0) {
    stored["filter"] = options.writer.filter.to_string();
  }
  Json step = {{"from", info.path}, {"num_samples", info.num_samples}};
  stored.erase("store");
  if (becomes_encoded(info, options)) {
    stored["store"] = "encoded";
    stored.erase("chunk_bytes");
  }
  // The files that these made became pixels.
  for (const char* name : {"max_side", "quality", "encoded_as"}) {
    if (!info.has_images() || !stored.contains(name)) continue;
    step[name] = stored[name];
    stored.erase(name);
  }
  if (options.encoding) stored["encoded_as"] = encoding_text(options);
  Json& steps = stored["repacked"];
  if (!steps.is_array()) steps = Json::array();
  if (!info.uuid.empty()) step["uuid"] = info.uuid;
  if (!command.selection.split.empty()) {
    step["split"] = command.selection.split;
    step["stratify"] = command.selection.stratify;
    step["seed"] = command.selection.seed;
  }
  steps.push_back(std::move(step));
  return cli::json_text(stored);
}

/// Settles what depends on the file.
void settle_options(RepackCommand& command, const chunkio::DatasetInfo& info) {
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
  if (command.fields == std::vector<std::string>{"none"}) options.fields->clear();
}

RepackResult complete_already(const std::string& path) {
  const chunkio::DatasetInfo info = chunkio::Dataset::open(path).info();
  return {.path = path,
          .num_samples = info.num_samples,
          .encoded = info.encoded.has_value(),
          .num_chunks = info.num_chunks,
          .file_bytes = static_cast<std::int64_t>(std::filesystem::file_size(path)),
          .complete_already = true};
}

RepackResult repack_part(const chunkio::Dataset& dataset, const std::vector<std::int64_t>& rows,
                         const std::string& path, RepackCommand& command) {
  RepackOptions& options = command.options;
  const bool encoded = becomes_encoded(dataset.info(), options);
  if (command.dry_run) {
    return (encoded ? plan_repack_encoded : plan_repack)(dataset, rows, path, options);
  }
  const Json identity = identity_of(dataset.info(), command, options.split);
  if (options.writer.resume && is_complete(path, options.writer.overwrite, identity))
    return complete_already(path);
  if (options.writer.resume && !encoded && options.writer.filter.deflate_level > 0) {
    cli::note_restart(path, "a file with a filter", options.quiet);
  }
  options.writer.identity = cli::json_text(identity);
  options.options_json = options_json(dataset.info(), command, identity);
  return (encoded ? repack_encoded : repack)(dataset, rows, path, options);
}

/// Which files IN points to only libhdf5 knows.
void check_replaces_nothing(const std::vector<std::string>& outputs) {
  for (const std::string& path : outputs) {
    if (!std::filesystem::exists(path)) continue;
    throw chunkio::Error(chunkio::ErrorCode::output_exists,
                         cli::quote(path) +
                             " exists, and with --allow-external it may be what the input points "
                             "to: choose another -o, or remove it first");
  }
}

RepackReport repack_file(RepackCommand& command, bool quiet) {
  const chunkio::Dataset dataset = chunkio::Dataset::open(command.input, command.open);
  if (dataset.info().sparse) {
    throw Error(
        ErrorCode::unsupported,
        cli::quote(command.input) +
            " holds a sparse matrix; csr writes it again, in another order or type, or some "
            "of its rows: h5pack csr SOURCE -o OUT");
  }
  if (!dataset.info().encoded) require_images(dataset.info());
  // Who names what to carry along gets that, and an error if it is among what is damaged.
  if (command.fields.empty()) refuse_damaged(dataset.info());
  const Listing listing = as_listing(command, dataset);
  const chunkio::WriterOptions& writer = command.options.writer;
  if (!command.dry_run) {
    check_outputs(listing, command.output, "", writer.overwrite || writer.resume);
  }
  if (command.open.allow_external && !command.dry_run)
    check_replaces_nothing(output_paths(listing, command.output));
  settle_options(command, dataset.info());
  const cli::StopSignalToken stopping;
  command.options.writer.stop = stopping.token();
  command.options.quiet = quiet;
  command.options.threads = static_cast<int>(command.threads);
  const std::vector<std::vector<std::int64_t>> rows = choose_rows(dataset, command.selection);
  const std::vector<std::string> paths = output_paths(listing, command.output);

  RepackReport report{.input = command.input,
                      .notes = notes_on_fields(dataset.info(), command.options)};
  std::optional<OutputFolder> folder;
  if (listing.output_is_folder && !command.dry_run) folder.emplace(command.output);
  for (std::size_t i = 0; i < paths.size(); ++i) {
    command.options.split = listing.splits[i].name;
    try {
      report.outputs.push_back(repack_part(dataset, rows[i], paths[i], command));
    } catch (const Error& error) {
      if (report.outputs.empty()) throw;
      std::vector<std::string> done(paths.begin(), paths.begin() + static_cast<std::ptrdiff_t>(i));
      throw error.with_message(error.what() + ("; already finished: " + first_few(done)));
    }
  }
  return report;
}

void add_selection(CLI::App& app, RepackCommand& command, std::string& split) {
  const cli::Heading heading(app, "What goes into the new file");
  cli::add_rows(app, command.selection.rows);
  cli::add_names(app, "--labels", command.labels,
                 "Only samples of these classes: names of the file, or numbers", "LIST");
  auto* const parts = app.add_option(
      "--split", split,
      "Write several files in these proportions: 0.9:0.1 gives train.h5 and test.h5, "
      "8:1:1 train.h5, val.h5 and test.h5");
  parts->type_name("A:B");
  app.add_flag("--stratify", command.selection.stratify, "Split each class in these proportions")
      ->needs(parts);
  cli::add_names(app, "--fields", command.fields,
                 "Copy only these fields besides labels and source rows, or none (default: all)",
                 "NAMES");
}

void add_file(CLI::App& app, RepackCommand& command) {
  const cli::Heading heading(app, "The new file");
  RepackOptions& options = command.options;
  add_chunk_options(app, options.writer);
  cli::add_choice<RepackOrder>(app, "--order", command.selection.order,
                               {{"stored", RepackOrder::stored},
                                {"source", RepackOrder::source},
                                {"shuffled", RepackOrder::shuffled}},
                               "Order of the samples: as in IN, as in its source, or shuffled");
  cli::add_seed(app, "--seed", command.selection.seed, "Seed of the shuffled order and of --split");
  cli::add_choice<std::optional<chunkio::Layout>>(
      app, "--out-layout", options.layout,
      {{"nhwc", chunkio::Layout::nhwc}, {"nchw", chunkio::Layout::nchw}},
      "Axis order in the new file (default: as in IN)");
  cli::add_filter(app, options.writer.filter);
  auto* const encode = cli::add_choice<std::optional<ImageFormat>>(
      app, "--encode", command.encode, {{"png", ImageFormat::png}, {"jpeg", ImageFormat::jpeg}},
      "Store raw images as files: PNG without loss, or JPEG");
  cli::add_jpeg_quality(app, command.quality)->needs(encode);
  app.add_flag("-f,--force", options.writer.overwrite, "Replace existing output files");
  app.add_flag("--resume", options.writer.resume,
               "Continue an interrupted run with the same options (with --filter: start over)");
  cli::add_integer(app, "-j,--threads", command.threads, 1, "Threads that copy (default: all CPUs)")
      ->default_str("");
  cli::add_memory_budget(app, options.memory_budget);
  app.add_flag("-n,--dry-run", command.dry_run, "Show what would be written; write nothing");
}

void add_old_file(CLI::App& app, RepackCommand& command, bool& clip) {
  const cli::Heading heading(app, "The file");
  cli::add_open_options(app, command.open, "The file");
  auto* const scale =
      app.add_option_function<std::string>(
             "--scale",
             [&command](const std::string& text) { command.open.scale = parse_scale(text); },
             "Convert floating-point pixels or wider integers to uint8: A becomes 0, B becomes "
             "255, and pixels outside are an error")
          ->type_name("A..B");
  app.add_flag("--clip", clip, "Clip pixels outside of --scale to 0 or 255")->needs(scale);
}

}  // namespace

void add_repack_command(CLI::App& app, const cli::GlobalOptions& global, cli::Action& action) {
  CLI::App* const sub = app.add_subcommand(
      "repack", "Rewrite an HDF5 image dataset: other chunks, another order, a part, or splits");
  const auto command = std::make_shared<RepackCommand>();
  const auto split = std::make_shared<std::string>();
  cli::add_required(*sub, "IN", command->input, "An HDF5 file");
  cli::add_required(*sub, "-o,--output", command->output, "File to write; a folder with --split",
                    "OUT");
  const auto clip = std::make_shared<bool>(false);
  add_old_file(*sub, *command, *clip);
  add_selection(*sub, *command, *split);
  add_file(*sub, *command);
  cli::set_help(
      *sub,
      {"h5pack repack slow.h5 -o train.h5 --images imgs --label-field y",
       "h5pack repack train.h5 -o parts/ --split 0.9:0.1 --stratify"},
      {"--output", "--images", "--label-field", "--scale", "--rows", "--labels", "--split",
       "--stratify", "--chunk-bytes", "--order", "--filter", "--force", "--dry-run"});
  sub->callback([command, sub, split, clip, &global, &action] {
    cli::check_threads(command->threads);
    if (command->open.scale) command->open.scale->clip = *clip;
    if (command->encode) {
      if (sub->count("--quality") > 0 && command->encode == ImageFormat::png) {
        throw Error(ErrorCode::invalid_argument,
                    "--quality is for --encode jpeg; PNG loses nothing");
      }
      command->options.encoding = Encoding{.format = *command->encode, .quality = command->quality};
    }
    cli::check_output(command->output);
    if (!split->empty()) command->selection.split = parse_split(*split);
    action = [command, &global] {
      return cli::run_interruptible(global, cli::leaves_partial_file(), [&] {
        const RepackReport report = repack_file(*command, global.quiet);
        cli::print(global.json ? repack_json(report) : repack_text(report));
        return cli::ExitCode::ok;
      });
    };
  });
}

}  // namespace h5pack
