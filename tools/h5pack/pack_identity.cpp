#include "pack_identity.hpp"

#include "escape.hpp"
#include "sources/file_stamps.hpp"

namespace h5pack {

namespace {

using json = nlohmann::ordered_json;

/// Names of files need not be UTF-8; JSON must be.
std::string dump(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

const char* color_name(ColorMode color) { return color == ColorMode::rgb ? "rgb" : "gray"; }
const char* orientation_name(OrientationMode mode) {
  return mode == OrientationMode::apply ? "apply" : "ignore";
}

}  // namespace

json pack_identity(const PackCommand& command, const Listing& listing, const Split& split) {
  const PackOptions& options = command.options;
  const PictureOptions& picture = options.picture;
  const auto or_none = [](const std::string& text) { return text.empty() ? "none" : text; };
  json identity = {{"command", command.name},
                   {"source", escape(listing.source.at("path").get<std::string>())},
                   {"split", split.name},
                   {"pictures", num_pictures(split.pictures)},
                   {"source files (names, sizes, times)", files_digest(split)},
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
                   {"--chunk-bytes", options.writer.chunk_bytes}};
  return identity;
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
  stored["identity"] = identity;
  return dump(stored);
}

std::optional<std::string> difference(const std::string& stored_options, const json& identity) {
  const json stored = json::parse(stored_options, nullptr, false);
  if (!stored.is_object() || !stored.contains("identity") || !stored["identity"].is_object()) {
    return "it does not say how it was packed";
  }
  const json& other = stored["identity"];
  for (const auto& [key, value] : identity.items()) {
    const json there = other.value(key, json());
    // Numbers that JSON wrote and read may have changed their type, not their text.
    if (dump(there) == dump(value)) continue;
    return key + " is " + escape(dump(there)) + " there and " + escape(dump(value)) + " here";
  }
  return std::nullopt;
}

}  // namespace h5pack
