#include "recorded_source.hpp"

#include <algorithm>
#include <cstddef>
#include <exception>
#include <optional>
#include <span>
#include <utility>

#include <nlohmann/json.hpp>

#include <chunkio/error.hpp>

#include "in_quotes.hpp"
#include "sources/celeba_source.hpp"
#include "sources/cifar_source.hpp"
#include "sources/csv_source.hpp"
#include "sources/folder_source.hpp"

namespace h5pack {
namespace {

using chunkio::Error;
using chunkio::ErrorCode;
using Json = nlohmann::json;

/// Text under `name`; empty if there is none.
std::string text(const Json& json, const char* name) {
  const auto found = json.find(name);
  return found != json.end() && found->is_string() ? found->get<std::string>() : "";
}

/// \param options  of a file, or of what was appended to it.
Listing list_again(const chunkio::DatasetInfo& info, const Json& options, const std::string& path) {
  const Json source = options.is_object() ? options.value("source", Json()) : Json();
  const std::string kind = source.is_object() ? text(source, "kind") : "";
  const std::string place = !path.empty() ? path : (source.is_object() ? text(source, "path") : "");
  if (kind == "folder") return list_folder(place);
  if (kind == "cifar") return list_cifar(place);
  if (kind == "celeba") return list_celeba(place);
  if (kind == "csv") {
    if (path.empty() && place == kStandardInput) {
      throw Error(ErrorCode::not_found, in_quotes(info.path) +
                                            " was packed from a list on standard input; name that "
                                            "list with --against");
    }
    return list_csv(place, {.path_column = text(source, "path_column"),
                            .label_column = text(source, "label_column"),
                            .root = text(source, "root")});
  }
  throw Error(ErrorCode::unsupported, in_quotes(info.path) +
                                          " does not say what it was packed from; only files of "
                                          "h5pack folder, cifar, celeba and csv do");
}

}  // namespace

PictureOptions recorded_picture_options(const chunkio::DatasetInfo& info) {
  const Json options = Json::parse(info.options_json, nullptr, false);
  PictureOptions picture;
  try {
    picture.color = options.at("color") == "gray" ? ColorMode::gray : ColorMode::rgb;
    picture.orientation =
        options.at("orientation") == "apply" ? OrientationMode::apply : OrientationMode::ignore;
    if (options.contains("resize")) {
      picture.resize = parse_resize(options.at("resize"));
      const auto& choices = interpolations();
      const auto found = std::find_if(choices.begin(), choices.end(), [&](const auto& choice) {
        return choice.first == options.at("interpolation").get<std::string>();
      });
      if (found == choices.end()) throw Error(ErrorCode::unsupported, "unknown interpolation");
      picture.interpolation = found->second;
      picture.shrink_on_load = options.value("shrink_on_load", false);
    }
    if (options.contains("center_crop")) {
      picture.center_crop = parse_picture_size(options.at("center_crop"));
    }
    if (options.contains("pad")) picture.pad = parse_picture_size(options.at("pad"));
    picture.max_pixels = options.value("max_pixels", kDefaultMaxPixels);
  } catch (const std::exception&) {
    throw Error(ErrorCode::unsupported,
                in_quotes(info.path) +
                    " does not say how its images were made, or this version cannot read it; "
                    "leave out --against");
  }
  picture.layout = info.layout;
  return picture;
}

std::optional<chunkio::FieldInfo> find_source_index(const chunkio::Dataset& dataset) {
  std::optional<chunkio::FieldInfo> field = dataset.find_field(kSourceIndex);
  const bool usable =
      field && field->dtype == chunkio::DType::int64 && field->row_shape.rank() == 0;
  return usable ? field : std::nullopt;
}

std::vector<std::int64_t> source_rows(const chunkio::Dataset& dataset, chunkio::RowRange rows) {
  const std::optional<chunkio::FieldInfo> field = find_source_index(dataset);
  if (!field) return {};
  std::vector<std::int64_t> values(static_cast<std::size_t>(rows.end - rows.begin));
  dataset.read_field(field->name, rows.begin, rows.end - rows.begin,
                     std::as_writable_bytes(std::span(values)));
  return values;
}

RecordedSource::RecordedSource(const chunkio::DatasetInfo& info, const std::string& path) {
  const Json options = Json::parse(info.options_json, nullptr, false);
  Listing first = list_again(info, options, path);
  std::string split =
      first.splits.size() > 1 ? text(options["source"], "split") : first.splits[0].name;
  if (first.splits.size() > 1 && split.empty()) split = info.split;
  add_part(info, std::move(first), split, 0);
  if (!options.is_object() || !options.contains("appended")) return;
  for (const Json& step : options["appended"]) {
    Listing listing = list_again(info, step, "");
    const bool splits = listing.splits.size() > 1;
    const std::string part = splits ? text(step["source"], "split") : listing.splits[0].name;
    const Json first_row = step.value("first_source_row", Json());
    add_part(info, std::move(listing), part,
             first_row.is_number_integer() ? first_row.get<std::int64_t>() : -1);
  }
}

void RecordedSource::add_part(const chunkio::DatasetInfo& info, Listing listing,
                              const std::string& split, std::int64_t first_row) {
  const auto found = std::find_if(listing.splits.begin(), listing.splits.end(),
                                  [&](const Split& other) { return other.name == split; });
  if (found == listing.splits.end()) {
    throw Error(ErrorCode::not_found, "the source of " + in_quotes(info.path) + " has no split " +
                                          in_quotes(split) +
                                          " any more; give the folder that was packed");
  }
  if (!parts_.empty() && first_row <= parts_.back().first_row) {
    throw Error(ErrorCode::unsupported,
                in_quotes(info.path) + " contradicts itself about what was appended to it");
  }
  const auto index = static_cast<std::size_t>(found - listing.splits.begin());
  parts_.push_back({.first_row = first_row, .listing = std::move(listing), .split = index});
}

std::optional<std::string> RecordedSource::name(std::int64_t row) const {
  const auto next = std::find_if(parts_.begin(), parts_.end(),
                                 [&](const Part& part) { return part.first_row > row; });
  if (next == parts_.begin()) return std::nullopt;
  const Part& part = *(next - 1);
  const Pictures& pictures = part.listing.splits[part.split].pictures;
  const std::int64_t index = row - part.first_row;
  if (index >= h5pack::num_pictures(pictures)) return std::nullopt;
  return picture_name(pictures, index);
}

}  // namespace h5pack
