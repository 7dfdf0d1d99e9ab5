/// h5pack append: another source behind the rows of a file, in a new file.
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <chunkio/dataset.hpp>
#include <chunkio/error.hpp>

#include "cli/command.hpp"
#include "cli/help.hpp"
#include "cli/options.hpp"
#include "cli/quote.hpp"
#include "h5pack/commands/append_csr.hpp"
#include "h5pack/commands/commands.hpp"
#include "h5pack/commands/pack_options.hpp"
#include "h5pack/dataset/structure_check.hpp"
#include "h5pack/pack/pack_request.hpp"
#include "h5pack/sources/appended_source.hpp"
#include "h5pack/sources/source_kind.hpp"
#include "h5pack/sources/source_provenance.hpp"

namespace h5pack {
namespace {

using chunkio::Error;
using chunkio::ErrorCode;
using Json = nlohmann::json;

struct AppendCommand {
  std::shared_ptr<OldFile> before = {};  ///< Of the append command: its sources share it.
  std::string split = {};                ///< Of the source.
  PackRequest pack = {};
  // Whether these were given; what was not is as in the file.
  bool transform = false;
  bool orientation = false;
  bool chunk = false;
};

/// Settles what depends on a file of encoded images: new ones are stored as it records.
/// \throws Error unsupported.
void settle_encoded_options(AppendCommand& command, const chunkio::DatasetInfo& before) {
  if (before.has_images()) {
    throw Error(ErrorCode::unsupported,
                cli::quote(before.path) +
                    " holds encoded images, which append keeps encoded: leave out --decode, or "
                    "make raw ones first with h5pack repack --decode");
  }
  PackOptions& options = command.pack.options;
  options.store = Store::encoded;
  const Json recorded = Json::parse(before.options_json, nullptr, false);
  if (!recorded.is_object()) return;
  if (!command.orientation && recorded.contains("orientation")) {
    options.image.orientation =
        recorded["orientation"] == "ignore" ? OrientationMode::ignore : OrientationMode::apply;
  }
  // A file may say anything.
  const auto number = [&](const char* name, int highest) -> std::optional<int> {
    if (!recorded.contains(name) || !recorded[name].is_number_unsigned()) return std::nullopt;
    const auto value = recorded[name].get<std::uint64_t>();
    if (value < 1 || value > static_cast<std::uint64_t>(highest)) return std::nullopt;
    return static_cast<int>(value);
  };
  if (const auto most = number("max_side", static_cast<int>(kMaxJpegSide))) {
    options.limit.max_side = *most;
    options.limit.quality = number("quality", 100).value_or(options.limit.quality);
  }
}

/// Settles what depends on the file.
/// \throws Error unsupported.
void settle_options(AppendCommand& command, const chunkio::DatasetInfo& before) {
  PackOptions& options = command.pack.options;
  if (before.channels != 1 && before.channels != 3) {
    throw Error(ErrorCode::unsupported, cli::quote(before.path) + " has " +
                                            std::to_string(before.channels) +
                                            " channels; images can be appended to 1 or 3");
  }
  if (options.shuffled && !before.stored.filters.empty()) {
    throw Error(ErrorCode::unsupported,
                cli::quote(before.path) +
                    " is compressed, and its rows can only be copied in their order: leave out "
                    "--order shuffled, or undo that first with h5pack repack --filter none");
  }
  const Json recorded = Json::parse(before.options_json, nullptr, false);
  const auto records = [&](const char* name) {
    return recorded.is_object() && recorded.contains(name);
  };
  if (!command.transform && records("color")) {
    ImageOptions image = recorded_image_options(before);
    image.orientation = options.image.orientation;
    image.max_pixels = options.image.max_pixels;
    options.image = image;
    PackRequest& pack = command.pack;
    pack.resize = recorded.value("resize", "");
    pack.center_crop = recorded.value("center_crop", "");
    pack.pad = recorded.value("pad", "");
  }
  if (!command.orientation && records("orientation")) {
    options.image.orientation =
        recorded["orientation"] == "apply" ? OrientationMode::apply : OrientationMode::ignore;
  }
  options.image.color = before.channels == 1 ? ColorMode::gray : ColorMode::rgb;
  options.image.layout = before.layout;
  const bool whole_rows = before.stored.chunked && before.stored.chunk_shape.without_first_axis() ==
                                                       before.stored.shape.without_first_axis();
  if (!command.chunk && whole_rows) options.writer.chunk_samples = before.stored.chunk_shape[0];
}

/// What the loader will make of a file whose new rows are in the order of their source.
void add_note(Listing& listing, const chunkio::DatasetInfo& before, const PackOptions& options) {
  if (options.shuffled || before.order != "shuffled") return;
  listing.notes.push_back("the new rows follow those of " + cli::quote(before.path) +
                          " in the order of their source; --order shuffled mixes all");
}

cli::ExitCode run_append(AppendCommand& command, const cli::GlobalOptions& global) {
  const chunkio::Dataset before =
      chunkio::Dataset::open(command.before->path, command.before->open);
  refuse_damaged(before.info());
  if (before.info().sparse) {
    throw Error(ErrorCode::unsupported,
                cli::quote(command.before->path) +
                    " holds a sparse matrix, to which no images can be appended; h5pack append " +
                    cli::quote(command.before->path) + " csr SOURCE appends rows");
  }
  if (before.info().encoded) {
    settle_encoded_options(command, before.info());
  } else {
    require_images(before.info());
    settle_options(command, before.info());
  }
  PackRequest& pack = command.pack;
  pack.list = [&command, before, list = pack.list](const PackRequest& options) {
    Listing listing = append_to(before, list(options), command.split);
    add_note(listing, before.info(), options.options);
    return listing;
  };
  return run_pack(pack, global);
}

/// Adds the command that appends one kind of source to the file `before`.
void add_source(CLI::App& app, const SourceKind& kind, const cli::GlobalOptions& global,
                cli::Action& action, const std::shared_ptr<OldFile>& before) {
  CLI::App* const sub = app.add_subcommand(kind.name, std::string("Append ") + kind.what);
  const auto command = std::make_shared<AppendCommand>();
  command->before = before;
  PackRequest& pack = command->pack;
  pack.name = std::string("append ") + kind.name;
  pack.list = [&kind](const PackRequest& request) { return kind.list(request.source); };
  pack.options.shuffled = false;
  cli::add_required(*sub, kind.input_name, pack.source.input, kind.input);
  cli::add_required(*sub, "-o,--output", pack.output, "File to write", "OUT");
  add_pack_options(*sub, pack);
  // The file says the first two, raw images have none of the next three, and the last has other
  // choices here.
  for (const char* option :
       {"--out-layout", "--channels", "--quality", "--max-side", "--store", "--order"}) {
    sub->remove_option(sub->get_option(option));
  }
  cli::add_choice<bool>(
      *sub, "--order", pack.options.shuffled, {{"stored", false}, {"shuffled", true}},
      "Order of the samples: the rows of OLD, then the new ones as in the source; or "
      "all shuffled")
      ->group("File");
  sub->add_option("--split", command->split,
                  "Split of the source to append (default: its only one, or the one of OLD)")
      ->type_name("NAME");
  add_source_options(*sub, kind, pack.source);
  std::vector<std::string> common = {"--output", "--split", "--on-error", "--report",  "--order",
                                     "--seed",   "--force", "--resume",   "--threads", "--dry-run"};
  const std::vector<std::string> own = kind.flags();
  common.insert(common.begin() + 1, own.begin(), own.end());
  cli::set_help(*sub, {kind.append_examples.begin(), kind.append_examples.end()},
                std::move(common));
  sub->callback([command, sub, &global, &action] {
    const auto given = [sub](const char* option) { return sub->count(option) > 0; };
    command->transform = given("--resize") || given("--center-crop") || given("--pad") ||
                         given("--interpolation") || given("--shrink-on-load");
    command->orientation = given("--orientation");
    command->chunk = given("--chunk") || given("--chunk-bytes");
    finish_options(command->pack);
    action = [command, &global] { return run_append(*command, global); };
  });
}

}  // namespace

void add_append_command(CLI::App& app, const cli::GlobalOptions& global, cli::Action& action) {
  CLI::App* const append =
      app.add_subcommand("append", "Add images, or rows of a matrix, to a file: writes a new one");
  const auto before = std::make_shared<OldFile>();
  cli::add_required(*append, "OLD", before->path, "The file to add to, which is not changed");
  cli::add_open_options(*append, before->open, "The file");
  append->require_subcommand(1);
  cli::set_help(*append, {"h5pack append train.h5 folder more-photos/ -o larger.h5",
                          "h5pack append cells.h5 csr more.h5ad -o larger.h5"});
  for (const SourceKind* kind : source_kinds()) {
    add_source(*append, *kind, global, action, before);
  }
  add_append_csr(*append, global, action, before);
}

}  // namespace h5pack
