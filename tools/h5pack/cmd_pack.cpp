/// The four packing commands: folder, cifar, celeba, csv. Their options; pack_run.cpp does the
/// rest.
#include <memory>
#include <string>

#include <chunkio/error.hpp>

#include "command.hpp"
#include "help.hpp"
#include "options.hpp"
#include "pack_command.hpp"
#include "pack_options.hpp"
#include "pack_run.hpp"
#include "picture_transform.hpp"
#include "source_kinds.hpp"

namespace h5pack {

namespace {

using chunkio::Error;
using chunkio::ErrorCode;

std::string interpolation_name(Interpolation interpolation) {
  for (const auto& [name, value] : interpolations()) {
    if (value == interpolation) return name;
  }
  return "";
}

}  // namespace

void add_common_options(CLI::App& app, PackCommand& command) {
  PackOptions& options = command.options;
  PictureOptions& picture = options.picture;
  const std::string pictures = "Images";
  app.add_option("--resize", command.resize, "Shorter side S, aspect ratio kept, or exactly HxW")
      ->type_name("S|HxW")
      ->group(pictures);
  app.add_option("--center-crop", command.center_crop, "Cut HxW from the centre, after --resize")
      ->type_name("HxW")
      ->group(pictures);
  app.add_option("--pad", command.pad, "Centre on a black HxW image, after --resize")
      ->type_name("HxW")
      ->group(pictures);
  add_choice(app, "--interpolation", picture.interpolation, interpolations(),
             "How --resize samples")
      ->group(pictures);
  add_choice<ColorMode>(app, "--channels", picture.color,
                        {{"rgb", ColorMode::rgb}, {"gray", ColorMode::gray}},
                        "Channels of all images")
      ->group(pictures);
  add_choice<OrientationMode>(
      app, "--orientation", picture.orientation,
      {{"ignore", OrientationMode::ignore}, {"apply", OrientationMode::apply}},
      "Ignore the EXIF orientation, or apply it")
      ->group(pictures);
  app.add_flag("--shrink-on-load", picture.shrink_on_load,
               "Let the JPEG decoder do part of --resize: faster, but pixels differ slightly")
      ->group(pictures);
  add_choice<chunkio::Layout>(app, "--out-layout", picture.layout,
                              {{"nhwc", chunkio::Layout::nhwc}, {"nchw", chunkio::Layout::nchw}},
                              "Axis order of the images in the file")
      ->group(pictures);

  const std::string bad = "Images that cannot be packed";
  add_choice<OnError>(app, "--on-error", options.on_error,
                      {{"fail", OnError::fail}, {"skip", OnError::skip}},
                      "On an image that cannot be packed: stop, or skip and count it")
      ->group(bad);
  add_integer(app, "--max-errors", command.max_errors, 0, "Skip at most N images, then fail")
      ->default_str("")
      ->group(bad);
  app.add_option("--report", command.report,
                 "File for a JSON line on each skipped image, with the reason")
      ->type_name("FILE")
      ->group(bad);
  add_integer(app, "--max-pixels", picture.max_pixels, 1, "Refuse images with more pixels")
      ->group(bad);

  const std::string file = "File";
  auto* chunk = add_integer(app, "--chunk", options.writer.chunk_samples, 1, "Samples in a chunk");
  chunk->default_str("")->group(file);
  add_byte_size(app, "--chunk-bytes", options.writer.chunk_bytes, "Size of a chunk")
      ->group(file)
      ->excludes(chunk);
  add_choice<bool>(app, "--order", options.shuffled, {{"shuffled", true}, {"source", false}},
                   "Order of the samples")
      ->group(file);
  add_seed(app, "--seed", options.seed, "Seed of the shuffled order")->group(file);
  app.add_flag("-f,--force", options.writer.overwrite, "Replace existing output files")
      ->group(file);
  app.add_flag("--resume", options.writer.resume,
               "Continue an interrupted run with the same options")
      ->group(file);
  add_integer(app, "-j,--threads", command.threads, 1, "Threads that decode (default: all CPUs)")
      ->default_str("")
      ->group(file);
  app.add_flag("-n,--dry-run", command.dry_run, "Show what would be packed; write nothing")
      ->group(file);
}

void add_csv_options(CLI::App& app, CsvOptions& csv) {
  app.add_option("--path-column", csv.path_column,
                 "Column with the paths (default: path, else the first)")
      ->type_name("NAME");
  app.add_option("--label-column", csv.label_column,
                 "Column with class names or numbers (default: label, if there is one)")
      ->type_name("NAME");
  app.add_option(
         "--root", csv.root,
         "Where relative paths start (default: the folder of FILE; with -, the current one)")
      ->type_name("DIR");
}

void finish_options(PackCommand& command) {
  PictureOptions& picture = command.options.picture;
  const auto parse = [](const std::string& option, const std::string& text, const auto& parser) {
    try {
      return parser(text);
    } catch (const Error& error) {
      throw error.with_message(option + ": " + error.what());
    }
  };
  if (!command.resize.empty()) picture.resize = parse("--resize", command.resize, parse_resize);
  if (!command.center_crop.empty()) {
    picture.center_crop = parse("--center-crop", command.center_crop, parse_picture_size);
  }
  if (!command.pad.empty()) picture.pad = parse("--pad", command.pad, parse_picture_size);
  const PictureTransform checked(picture);
  check_threads(command.threads);
  if (picture.max_pixels > kHighestMaxPixels) {
    throw Error(ErrorCode::invalid_argument,
                "--max-pixels must be at most " + std::to_string(kHighestMaxPixels));
  }
  if (command.options.on_error == OnError::fail &&
      (command.max_errors >= 0 || !command.report.empty())) {
    throw Error(ErrorCode::invalid_argument,
                "--max-errors and --report are for --on-error skip; add it");
  }
  if (picture.shrink_on_load && !picture.resize) {
    throw Error(ErrorCode::invalid_argument, "--shrink-on-load is a part of --resize; add that");
  }
  command.csv.keep_missing = command.options.on_error == OnError::skip;
  command.interpolation = interpolation_name(picture.interpolation);
  if (command.shard_from_env) command.options.shard = shard_from_environment();
  if (command.output.empty()) throw Error(ErrorCode::invalid_argument, "-o must not be empty");
  command.options.threads = static_cast<int>(command.threads);
}

namespace {

/// What append has no use for: there is one file that it adds to.
void add_shard_options(CLI::App& app, PackCommand& command) {
  auto* const shard = app.add_option_function<std::string>(
      "--shard", [&command](const std::string& text) { command.options.shard = parse_shard(text); },
      "Pack part I of N, from 0 to N - 1, into OUT-iiiii-of-nnnnn.h5: for parallel runs on any "
      "number of machines");
  shard->type_name("I/N")->group("File");
  app.add_flag("--shard-from-env", command.shard_from_env,
               "Take I and N from torchrun, Open MPI, PMI or Slurm")
      ->excludes(shard)
      ->group("File");
}

/// Adds the packing command of one kind of source.
void add_pack_command(CLI::App& app, const GlobalOptions& global, Action& action,
                      const SourceKind& kind) {
  CLI::App* const sub = app.add_subcommand(kind.name, std::string("Pack ") + kind.what);
  const auto command = std::make_shared<PackCommand>();
  command->name = kind.name;
  command->list = kind.list;
  sub->add_option(kind.input_name, command->input, kind.input)->required()->type_name("");
  sub->add_option("-o,--output", command->output, kind.output)->required()->type_name("OUT");
  add_common_options(*sub, *command);
  add_shard_options(*sub, *command);
  if (kind.is_csv()) add_csv_options(*sub, command->csv);
  std::vector<std::string> common = {
      "--output", "--resize", "--center-crop", "--pad",     "--on-error", "--report", "--order",
      "--seed",   "--force",  "--resume",      "--threads", "--dry-run",  "--shard"};
  if (kind.is_csv())
    common.insert(common.begin() + 1, {"--path-column", "--label-column", "--root"});
  set_help(*sub, {kind.examples.begin(), kind.examples.end()}, std::move(common));
  sub->callback([command, &global, &action] {
    finish_options(*command);
    action = [command, &global] { return run_pack(*command, global); };
  });
}

}  // namespace

void add_pack_commands(CLI::App& app, const GlobalOptions& global, Action& action) {
  for (const SourceKind& kind : source_kinds()) add_pack_command(app, global, action, kind);
}

}  // namespace h5pack
