/// The four packing commands: folder, cifar, celeba, csv.
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <chunkio/error.hpp>

#include "byte_size.hpp"
#include "command.hpp"
#include "decode.hpp"
#include "in_quotes.hpp"
#include "options.hpp"
#include "output.hpp"
#include "output_files.hpp"
#include "packer.hpp"
#include "picture_transform.hpp"
#include "render_json.hpp"
#include "sources/celeba_source.hpp"
#include "sources/cifar_source.hpp"
#include "sources/csv_source.hpp"
#include "sources/folder_source.hpp"
#include "stop_signal.hpp"

namespace h5pack {

namespace {

using chunkio::Error;
using chunkio::ErrorCode;
using json = nlohmann::ordered_json;

/// What the command line said; one for each packing command.
struct PackCommand {
  std::string name;   // Of the subcommand.
  std::string input;  // DIR or FILE.
  CsvOptions csv;
  std::string output;
  std::string resize, center_crop, pad;  // As written.
  PackOptions options;
  std::int64_t threads = 0;
  bool dry_run = false;
  std::function<Listing(const PackCommand&)> list;
};

const std::vector<std::pair<std::string, Interpolation>>& interpolations() {
  static const std::vector<std::pair<std::string, Interpolation>> kChoices = {
      {"nearest", Interpolation::nearest},
      {"bilinear", Interpolation::bilinear},
      {"bicubic", Interpolation::bicubic},
      {"area", Interpolation::area},
      {"lanczos", Interpolation::lanczos}};
  return kChoices;
}

std::string interpolation_name(Interpolation interpolation) {
  for (const auto& [name, value] : interpolations()) {
    if (value == interpolation) return name;
  }
  return "";
}

void add_common_options(CLI::App& app, PackCommand& command) {
  PackOptions& options = command.options;
  PictureOptions& picture = options.picture;
  const std::string pictures = "Pictures";
  app.add_option("--resize", command.resize, "Shorter side S, aspect ratio kept, or exactly HxW")
      ->type_name("S|HxW")
      ->group(pictures);
  app.add_option("--center-crop", command.center_crop, "Cut HxW from the middle, after --resize")
      ->type_name("HxW")
      ->group(pictures);
  app.add_option("--pad", command.pad, "Centre on a black HxW picture, after --resize")
      ->type_name("HxW")
      ->group(pictures);
  add_choice(app, "--interpolation", picture.interpolation, interpolations(),
             "How --resize samples")
      ->group(pictures);
  add_choice<ColorMode>(app, "--color", picture.color,
                        {{"rgb", ColorMode::rgb}, {"gray", ColorMode::gray}},
                        "What all pictures become")
      ->group(pictures);
  add_choice<OrientationMode>(
      app, "--orientation", picture.orientation,
      {{"ignore", OrientationMode::ignore}, {"apply", OrientationMode::apply}},
      "The orientation a camera noted (EXIF)")
      ->group(pictures);
  add_choice<chunkio::Layout>(app, "--layout", picture.layout,
                              {{"nhwc", chunkio::Layout::nhwc}, {"nchw", chunkio::Layout::nchw}},
                              "Axis order in the file")
      ->group(pictures);

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
  app.add_flag("--force", options.writer.overwrite, "Replace existing output files")->group(file);
  add_integer(app, "--threads", command.threads, 1, "Threads that decode (default: all CPUs)")
      ->default_str("")
      ->group(file);
  app.add_flag("--dry-run", command.dry_run, "Show what would be packed; write nothing")
      ->group(file);
}

/// Turns texts into options and finds contradictions; nothing has been touched yet.
/// \throws Error invalid_argument.
void finish_options(PackCommand& command) {
  PictureOptions& picture = command.options.picture;
  const auto parse = [](const std::string& option, const std::string& text, const auto& parser) {
    try {
      return parser(text);
    } catch (const Error& error) {
      throw Error(error.code(), option + ": " + error.what());
    }
  };
  if (!command.resize.empty()) picture.resize = parse("--resize", command.resize, parse_resize);
  if (!command.center_crop.empty()) {
    picture.center_crop = parse("--center-crop", command.center_crop, parse_picture_size);
  }
  if (!command.pad.empty()) picture.pad = parse("--pad", command.pad, parse_picture_size);
  const PictureTransform checked(picture);
  if (command.threads > kMaxThreads) {
    throw Error(ErrorCode::invalid_argument,
                "--threads must be at most " + std::to_string(kMaxThreads));
  }
  if (command.output.empty()) throw Error(ErrorCode::invalid_argument, "-o must not be empty");
  command.options.threads = static_cast<int>(command.threads);
}

/// Names of files need not be UTF-8; JSON must be.
std::string dump(const json& value, int indent = -1) {
  return value.dump(indent, ' ', false, json::error_handler_t::replace);
}

/// Packing options and source, as stored in the file.
std::string options_json(const PackCommand& command, const Listing& listing) {
  const PackOptions& options = command.options;
  const PictureOptions& picture = options.picture;
  json stored = {
      {"command", command.name},
      {"source", listing.source},
      {"color", picture.color == ColorMode::rgb ? "rgb" : "gray"},
      {"layout", std::string(to_string(picture.layout))},
      {"orientation", picture.orientation == OrientationMode::apply ? "apply" : "ignore"},
      {"order", options.shuffled ? "shuffled" : "source"}};
  if (options.shuffled) stored["seed"] = options.seed;
  if (picture.resize) {
    stored["resize"] = command.resize;
    stored["interpolation"] = interpolation_name(picture.interpolation);
  }
  if (picture.center_crop) stored["center_crop"] = to_string(*picture.center_crop);
  if (picture.pad) stored["pad"] = to_string(*picture.pad);
  if (options.writer.chunk_samples > 0) {
    stored["chunk"] = options.writer.chunk_samples;
  } else {
    stored["chunk_bytes"] = options.writer.chunk_bytes;
  }
  return dump(stored);
}

std::string shape_text(const PackPlan& plan) {
  return to_string(plan.size) + "x" + std::to_string(plan.channels);
}

std::string counted(std::int64_t count, const std::string& singular, const std::string& plural) {
  return std::to_string(count) + " " + (count == 1 ? singular : plural);
}

std::string plan_text(const std::string& path, const PackPlan& plan) {
  return escape(path) + ": " + counted(plan.num_samples, "image", "images") + " of " +
         shape_text(plan) + " in " + counted(plan.num_chunks, "chunk", "chunks") + " of " +
         std::to_string(plan.chunk_samples) + " (" + format_bytes(plan.chunk_bytes) + ")";
}

json plan_json(const std::string& path, const Split& split, const PackPlan& plan) {
  return {{"path", path},
          {"split", split.name},
          {"images", plan.num_samples},
          {"height", plan.size.height},
          {"width", plan.size.width},
          {"channels", plan.channels},
          {"chunk_samples", plan.chunk_samples},
          {"chunk_bytes", plan.chunk_bytes},
          {"chunks", plan.num_chunks},
          {"threads", plan.threads},
          {"buffer_bytes", plan.memory_bytes()}};
}

/// "  airplane: 5000" for each class.
std::string classes_text(const std::vector<std::string>& names,
                         const std::vector<std::int64_t>& counts) {
  constexpr std::size_t kShown = 50;
  std::string text;
  for (std::size_t i = 0; i < counts.size() && i < kShown; ++i) {
    text += "  " + (i < names.size() ? escape(names[i]) : "label " + std::to_string(i)) + ": " +
            std::to_string(counts[i]) + "\n";
  }
  if (counts.size() > kShown) text += "  and " + std::to_string(counts.size() - kShown) + " more\n";
  return text;
}

class PackRun {
 public:
  PackRun(PackCommand& command, const GlobalOptions& global)
      : command_(command), global_(global), listing_(command.list(command)) {
    command_.options.options_json = options_json(command_, listing_);
    command_.options.quiet = global.quiet;
    paths_ = output_paths(listing_, command_.output);
    result_ = {{"command", command_.name},
               {"dry_run", command_.dry_run},
               {"class_names", listing_.class_names},
               {"attribute_names", listing_.attribute_names},
               {"notes", listing_.notes},
               {"outputs", json::array()}};
    for (const std::string& note : listing_.notes) say("note: " + note);
  }

  ExitCode run() {
    if (!command_.dry_run)
      check_outputs(listing_, command_.output, command_.options.writer.overwrite);
    // All plans first: what is wrong with the last split should not show after hours of packing the
    // first.
    std::vector<PackPlan> plans;
    for (const Split& split : listing_.splits) plans.push_back(plan_pack(split, command_.options));
    if (command_.dry_run) {
      for (std::size_t i = 0; i < plans.size(); ++i) add_dry(i, plans[i]);
    } else {
      std::optional<OutputFolder> folder;
      if (listing_.output_is_folder) folder.emplace(command_.output);
      for (std::size_t i = 0; i < plans.size(); ++i) pack_split(i, plans[i]);
    }
    print(global_.json ? dump(result_) + "\n" : text_);
    return ExitCode::ok;
  }

  /// What has been written before a failure.
  [[nodiscard]] std::string written() const {
    std::vector<std::string> done;
    for (const json& output : result_["outputs"]) done.push_back(output["path"]);
    return done.empty() ? "" : "; already finished: " + first_few(done);
  }

 private:
  void say(const std::string& text) const {
    if (!global_.quiet) std::fputs(("h5pack: " + escape(text) + "\n").c_str(), stderr);
  }

  void add_dry(std::size_t index, const PackPlan& plan) {
    const Split& split = listing_.splits[index];
    const auto counts = count_classes(split, listing_.class_names);
    json output = plan_json(paths_[index], split, plan);
    output["estimated_bytes"] = plan.file_bytes;
    output["class_counts"] = counts;
    result_["outputs"].push_back(std::move(output));
    text_ += plan_text(paths_[index], plan) + ", about " + format_bytes(plan.file_bytes) + "\n" +
             classes_text(listing_.class_names, counts);
  }

  void pack_split(std::size_t index, const PackPlan& plan) {
    const Split& split = listing_.splits[index];
    say(plan_text(paths_[index], plan) + ", " + counted(plan.chunks_in_flight, "chunk", "chunks") +
        " in flight = " + format_bytes(plan.memory_bytes()) + " of buffers, " +
        counted(plan.threads, "thread", "threads"));
    const PackResult packed = pack(listing_, split, plan, paths_[index], command_.options);
    const double rate =
        packed.seconds > 0 ? static_cast<double>(plan.num_samples) / packed.seconds : 0;
    json output = plan_json(paths_[index], split, plan);
    output["bytes"] = packed.file_bytes;
    output["class_counts"] = packed.statistics.class_counts;
    output["mean"] = packed.statistics.channels.mean;
    output["std"] = packed.statistics.channels.std;
    output["seconds"] = packed.seconds;
    output["images_per_second"] = rate;
    result_["outputs"].push_back(std::move(output));
    char timing[64];
    std::snprintf(timing, sizeof timing, " in %.1f s (%.0f images/s)\n", packed.seconds, rate);
    text_ += plan_text(paths_[index], plan) + ", " + format_bytes(packed.file_bytes) + timing;
  }

  PackCommand& command_;
  const GlobalOptions& global_;
  Listing listing_;
  std::vector<std::string> paths_;
  json result_;
  std::string text_;
};

ExitCode run_pack(PackCommand& command, const GlobalOptions& global) {
  PackRun pack_run(command, global);
  const StopSignal stop;
  const OpenCvSilence silence;
  try {
    return pack_run.run();
  } catch (const Error& error) {
    const std::string message = error.what() + pack_run.written();
    if (error.code() != ErrorCode::cancelled) throw Error(error.code(), message);
    const std::string stopped = message + "; the unfinished file was removed";
    print_error(stopped);
    if (global.json) print(error_json(to_string(error.code()), stopped));
    return static_cast<ExitCode>(128 + StopSignal::received());
  }
}

/// Adds one packing command; `input` describes its argument.
CLI::App* add_pack_command(CLI::App& app, const GlobalOptions& global, Action& action,
                           const std::string& name, const std::string& description,
                           const std::pair<std::string, std::string>& input,
                           const std::string& output, const std::shared_ptr<PackCommand>& command) {
  CLI::App* sub = app.add_subcommand(name, description);
  command->name = name;
  sub->add_option(input.first, command->input, input.second)->required();
  sub->add_option("-o,--output", command->output, output)->required()->type_name("OUT");
  add_common_options(*sub, *command);
  sub->callback([command, &global, &action] {
    finish_options(*command);
    action = [command, &global] { return run_pack(*command, global); };
  });
  return sub;
}

}  // namespace

void add_pack_commands(CLI::App& app, const GlobalOptions& global, Action& action) {
  const auto folder = std::make_shared<PackCommand>();
  folder->list = [](const PackCommand& command) { return list_folder(command.input); };
  add_pack_command(app, global, action, "folder",
                   "Pack a folder of pictures; its class folders give the labels",
                   {"DIR", "Folder of class folders, of pictures, or of train/, val/ and test/"},
                   "File to write; a folder if DIR has splits", folder);

  const auto cifar = std::make_shared<PackCommand>();
  cifar->list = [](const PackCommand& command) { return list_cifar(command.input); };
  add_pack_command(app, global, action, "cifar", "Pack CIFAR-10 or CIFAR-100 (binary version)",
                   {"DIR", "Folder with the .bin files"}, "Folder for train.h5 and test.h5", cifar);

  const auto celeba = std::make_shared<PackCommand>();
  celeba->list = [](const PackCommand& command) { return list_celeba(command.input); };
  add_pack_command(app, global, action, "celeba", "Pack CelebA with its attributes",
                   {"DIR", "Folder with img_align_celeba/ and list_attr_celeba.txt or .csv"},
                   "Folder for train.h5, val.h5 and test.h5", celeba);

  const auto csv = std::make_shared<PackCommand>();
  csv->list = [](const PackCommand& command) { return list_csv(command.input, command.csv); };
  CLI::App* sub = add_pack_command(
      app, global, action, "csv", "Pack the pictures that a CSV file lists",
      {"FILE", "CSV file whose first line names the columns"}, "File to write", csv);
  sub->add_option("--path-column", csv->csv.path_column,
                  "Column with the paths (default: path, else the first)")
      ->type_name("NAME");
  sub->add_option("--label-column", csv->csv.label_column,
                  "Column with class names or numbers (default: label, if there is one)")
      ->type_name("NAME");
  sub->add_option("--root", csv->csv.root,
                  "Where relative paths start (default: the folder of FILE)")
      ->type_name("DIR");
}

}  // namespace h5pack
