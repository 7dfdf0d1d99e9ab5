#include "pack_identity.hpp"

#include <cstddef>
#include <optional>
#include <utility>

#include <chunkio/dataset.hpp>
#include <chunkio/error.hpp>

#include "escape.hpp"
#include "file_identity.hpp"
#include "in_quotes.hpp"
#include "json_text.hpp"
#include "sources/file_stamps.hpp"

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

const char* color_name(ColorMode color) { return color == ColorMode::rgb ? "rgb" : "gray"; }
const char* orientation_name(OrientationMode mode) {
  return mode == OrientationMode::apply ? "apply" : "ignore";
}

/// Options and source of a file with what was appended to it: those of the file before, and a step.
/// \param step  options and source of the new images.
json appended_options(const Split& split, json step) {
  const chunkio::DatasetInfo& before = split.before->info();
  json stored = json::parse(before.options_json, nullptr, false);
  if (!stored.is_object() || !stored.contains("source")) {
    stored = {{"command", "append"}, {"source", {{"kind", "hdf5"}, {"path", before.path}}}};
  }
  // These are of the new file as a whole.
  for (const char* name : {"layout", "order", "seed", "chunk", "chunk_bytes"}) {
    stored.erase(name);
    if (!step.contains(name)) continue;
    stored[name] = step[name];
    step.erase(name);
  }
  stored.erase("filter");
  step["from"] = before.path;
  if (!before.uuid.empty()) step["uuid"] = before.uuid;
  step["num_samples"] = before.num_samples;
  step["first_source_row"] = split.source_rows[static_cast<std::size_t>(before.num_samples)];
  json& steps = stored["appended"];
  if (!steps.is_array()) steps = json::array();
  steps.push_back(std::move(step));
  return stored;
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
  for (const auto& [key, value] : identity.items()) {
    const json there = other.value(key, json());
    // Numbers that JSON wrote and read may have changed their type, not their text.
    if (json_text(there) == json_text(value)) continue;
    return "\"" + key + "\" is " + escape(json_text(there)) + " there and " +
           escape(json_text(value)) + " here";
  }
  return std::nullopt;
}

}  // namespace

json pack_identity(const PackCommand& command, const Listing& listing, const Split& split) {
  const PackOptions& options = command.options;
  const PictureOptions& picture = options.picture;
  const auto or_none = [](const std::string& text) { return text.empty() ? "none" : text; };
  json identity = {{"command", command.name},
                   {kSourceKey, escape(listing.source.at("path").get<std::string>())},
                   {"split", split.name}};
  // First, since what is behind them may differ for the same reason.
  if (split.before) {
    identity["appended to"] = escape(split.before->info().path);
    identity["file appended to"] = file_identity(split.before->info());
  }
  const json rest = {{"pictures", split.num_rows()},
                     {kNewestKey, escape(newest_file(split))},
                     {kBytesKey, files_bytes(split)},
                     {kNamesKey, names_digest(split)},
                     {kFilesKey, files_digest(split)},
                     {"labels and fields", fields_digest(listing, split)},
                     {"--color", color_name(picture.color)},
                     {"--layout", std::string(to_string(picture.layout))},
                     {"--orientation", orientation_name(picture.orientation)},
                     {"--resize", or_none(command.resize)},
                     {"--interpolation", command.interpolation},
                     {"--center-crop", or_none(command.center_crop)},
                     {"--pad", or_none(command.pad)},
                     {"--shrink-on-load", picture.shrink_on_load},
                     {"--max-pixels", picture.max_pixels},
                     {"--order", options.shuffled ? "shuffled" : "source"},
                     {"--seed", options.seed},
                     {"--chunk", options.writer.chunk_samples},
                     {"--chunk-bytes", options.writer.chunk_bytes},
                     {kShardKey, options.shard ? options.shard->text() : "none"}};
  for (const auto& [name, value] : rest.items()) identity[name] = value;
  return identity;
}

std::string shard_set(const json& identity) {
  json common = identity;
  for (const char* of_one_machine : {kSourceKey, kNewestKey, kBytesKey, kFilesKey, kShardKey}) {
    common.erase(of_one_machine);
  }
  return text_digest(json_text(common));
}

std::string options_json(const PackCommand& command, const Listing& listing, const json& identity) {
  const PackOptions& options = command.options;
  const PictureOptions& picture = options.picture;
  json stored = {{"command", command.name},
                 {"source", listing.source},
                 {"color", color_name(picture.color)},
                 {"layout", std::string(to_string(picture.layout))},
                 {"orientation", orientation_name(picture.orientation)},
                 {"order", options.shuffled ? "shuffled" : "source"}};
  if (options.shuffled) stored["seed"] = options.seed;
  if (picture.resize) {
    stored["resize"] = command.resize;
    stored["interpolation"] = command.interpolation;
    stored["shrink_on_load"] = picture.shrink_on_load;
  }
  if (picture.center_crop) stored["center_crop"] = to_string(*picture.center_crop);
  if (picture.pad) stored["pad"] = to_string(*picture.pad);
  stored["max_pixels"] = picture.max_pixels;
  if (options.writer.chunk_samples > 0) {
    stored["chunk"] = options.writer.chunk_samples;
  } else {
    stored["chunk_bytes"] = options.writer.chunk_bytes;
  }
  const Split& split = listing.splits.front();
  if (split.before) stored = appended_options(split, std::move(stored));
  stored["identity"] = identity;
  return json_text(stored);
}

bool is_complete(const std::string& path, const chunkio::WriterOptions& writer,
                 const json& identity) {
  if (!writer.resume || !chunkio::DatasetWriter::is_published(path)) return false;
  const auto other = difference(chunkio::Dataset::open(path).info().options_json, identity);
  if (other && !writer.overwrite) {
    throw Error(ErrorCode::output_exists, in_quotes(path) + " is complete, but of another run: " +
                                              *other + "; --force replaces it");
  }
  return !other;
}

}  // namespace h5pack
