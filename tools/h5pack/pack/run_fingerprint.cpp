#include "h5pack/pack/run_fingerprint.hpp"

#include <optional>
#include <utility>

#include <chunkio/dataset.hpp>
#include <chunkio/error.hpp>

#include "cli/escape.hpp"
#include "cli/json_text.hpp"
#include "cli/quote.hpp"
#include "h5pack/sources/file_stamps.hpp"

namespace h5pack {

namespace {

using chunkio::Error;
using chunkio::ErrorCode;
using json = nlohmann::ordered_json;

// Of the identity: what one run of several that make a dataset has for itself.
constexpr const char* kSourceKey = "source";
// Before the digest of all, what a person can look up.
constexpr const char* kNewestKey = "newest of the source files";
constexpr const char* kBytesKey = "bytes of the source files";
constexpr const char* kNamesKey = "digest of the names of the source files";
constexpr const char* kFilesKey = "digest of names, sizes and times of the source files";
constexpr const char* kShardKey = "--shard";
constexpr const char* kStoreKey = "--store";

const char* color_name(ColorMode color) { return color == ColorMode::rgb ? "rgb" : "gray"; }
const char* orientation_name(OrientationMode mode) {
  return mode == OrientationMode::apply ? "apply" : "ignore";
}

/// What tells the run that wrote a file from this one: "--resize is '64' there and '32' here";
/// absent if nothing does.
/// \param stored_options  of the file.
std::optional<std::string> difference(const std::string& stored_options, const json& identity) {
  const json stored = json::parse(stored_options, nullptr, false);
  if (!stored.is_object() || !stored.contains("identity") || !stored["identity"].is_object()) {
    return "it does not say how it was packed";
  }
  const json& other = stored["identity"];
  // Numbers that JSON wrote and read may have changed their type, not their text.
  const auto text_of = [](const json& members, const std::string& key) {
    return members.contains(key) ? cli::escape(cli::json_text(members[key])) : "not given";
  };
  // Options that only one of them has count, too.
  for (const json* members : {&identity, &other}) {
    for (const auto& [key, unused] : members->items()) {
      const std::string there = text_of(other, key);
      const std::string here = text_of(identity, key);
      if (there == here) continue;
      return "\"" + key + "\" is " + there + " there and " + here + " here";
    }
  }
  return std::nullopt;
}

}  // namespace

json run_fingerprint(const PackRequest& command, const Listing& listing, const Split& split) {
  const PackOptions& options = command.options;
  const ImageOptions& image = options.image;
  const SourceFiles& files = split.images->files();
  const auto or_none = [](const std::string& text) { return text.empty() ? "none" : text; };
  json identity = {{"command", command.name},
                   {kSourceKey, cli::escape(listing.source.at("path").get<std::string>())},
                   {"split", split.name}};
  // First, since what is behind them may differ for the same reason.
  split.images->add_fingerprint(identity);
  const json rest = {{"pictures", split.images->count()},
                     {kNewestKey, cli::escape(newest_file(files))},
                     {kBytesKey, files_bytes(files)},
                     {kNamesKey, names_digest(files.paths)},
                     {kFilesKey, files_digest(files)},
                     {"labels and fields", fields_digest(listing, split)},
                     {"--color", color_name(image.color)},
                     {"--layout", std::string(to_string(image.layout))},
                     {"--orientation", orientation_name(image.orientation)},
                     {"--resize", or_none(command.resize)},
                     {"--interpolation", to_string(image.interpolation)},
                     {"--center-crop", or_none(command.center_crop)},
                     {"--pad", or_none(command.pad)},
                     {"--shrink-on-load", image.shrink_on_load},
                     {"--max-pixels", image.max_pixels},
                     {"--order", options.shuffled ? "shuffled" : "source"},
                     {"--seed", options.seed},
                     {"--chunk", options.writer.chunk_samples},
                     {"--chunk-bytes", options.writer.chunk_bytes},
                     {kShardKey, options.shard ? options.shard->text() : "none"}};
  for (const auto& [name, value] : rest.items()) identity[name] = value;
  // Not of raw images, whose identities are older than the option.
  if (options.store == Store::encoded) identity[kStoreKey] = "encoded";
  if (options.limit.max_side > 0) {
    identity["--max-side"] = options.limit.max_side;
    identity["--quality"] = options.limit.quality;
  }
  return identity;
}

std::string shard_set(const json& identity) {
  json common = identity;
  for (const char* of_one_machine : {kSourceKey, kNewestKey, kFilesKey, kShardKey}) {
    common.erase(of_one_machine);
  }
  // Of encoded images, bytes decide where shards begin.
  if (!identity.contains(kStoreKey)) common.erase(kBytesKey);
  return text_digest(cli::json_text(common));
}

std::string options_json(const PackRequest& command, const Listing& listing, const json& identity) {
  const PackOptions& options = command.options;
  const ImageOptions& image = options.image;
  json stored = {{"command", command.name},
                 {"source", listing.source},
                 {"color", color_name(image.color)},
                 {"layout", std::string(to_string(image.layout))},
                 {"orientation", orientation_name(image.orientation)},
                 {"order", options.shuffled ? "shuffled" : "source"}};
  if (options.shuffled) stored["seed"] = options.seed;
  if (image.resize) {
    stored["resize"] = command.resize;
    stored["interpolation"] = to_string(image.interpolation);
    stored["shrink_on_load"] = image.shrink_on_load;
  }
  if (image.center_crop) stored["center_crop"] = to_string(*image.center_crop);
  if (image.pad) stored["pad"] = to_string(*image.pad);
  stored["max_pixels"] = image.max_pixels;
  if (options.store == Store::encoded) stored["store"] = "encoded";
  if (options.limit.max_side > 0) {
    stored["max_side"] = options.limit.max_side;
    stored["quality"] = options.limit.quality;
  }
  if (options.writer.chunk_samples > 0) {
    stored["chunk"] = options.writer.chunk_samples;
  } else {
    stored["chunk_bytes"] = options.writer.chunk_bytes;
  }
  stored = listing.splits.front().images->with_stored_options(std::move(stored));
  stored["identity"] = identity;
  return cli::json_text(stored);
}

bool is_complete(const std::string& path, bool overwrite, const json& identity) {
  if (!chunkio::DatasetWriter::is_published(path)) return false;
  const auto other = difference(chunkio::Dataset::open(path).info().options_json, identity);
  if (other && !overwrite) {
    throw Error(ErrorCode::output_exists, cli::quote(path) + " is complete, but of another run: " +
                                              *other + "; --force replaces it");
  }
  return !other;
}

}  // namespace h5pack
