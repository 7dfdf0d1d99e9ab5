#include "h5pack/sources/source_provenance.hpp"

#include <algorithm>
#include <exception>
#include <span>
#include <utility>

#include <nlohmann/json.hpp>

#include <chunkio/error.hpp>

#include "cli/quote.hpp"
#include "h5pack/sources/source_kind.hpp"

namespace h5pack {
namespace {

using chunkio::Error;
using chunkio::ErrorCode;
using Json = nlohmann::json;

/// \param options  of a file, or of what was appended to it.
Listing list_again(const chunkio::DatasetInfo& info, const Json& options, const std::string& path) {
  RecordedOrigin origin{.file = info.path,
                        .source = options.is_object() ? options.value("source", Json()) : Json(),
                        .path = path,
                        .moved = !path.empty()};
  if (!origin.source.is_object()) origin.source = Json::object();
  const SourceKind* const kind = find_source_kind(recorded_text(origin.source, "kind"));
  if (kind == nullptr) {
    std::string kinds;
    for (const SourceKind* each : source_kinds()) {
      const bool last = each == source_kinds().back();
      kinds += (kinds.empty() ? "" : last ? " and " : ", ") + std::string(each->name);
    }
    throw Error(ErrorCode::unsupported,
                cli::quote(info.path) +
                    " does not say what it was packed from; only files of h5pack " + kinds + " do");
  }
  if (!origin.moved) origin.path = recorded_text(origin.source, "path");
  return kind->list_again(origin);
}

}  // namespace

ImageOptions recorded_image_options(const chunkio::DatasetInfo& info) {
  const Json options = Json::parse(info.options_json, nullptr, false);
  ImageOptions image;
  try {
    image.color = options.at("color") == "gray" ? ColorMode::gray : ColorMode::rgb;
    image.orientation =
        options.at("orientation") == "apply" ? OrientationMode::apply : OrientationMode::ignore;
    if (options.contains("resize")) {
      image.resize = parse_resize(options.at("resize"));
      const auto& choices = interpolations();
      const auto found = std::find_if(choices.begin(), choices.end(), [&](const auto& choice) {
        return choice.first == options.at("interpolation").get<std::string>();
      });
      if (found == choices.end()) throw Error(ErrorCode::unsupported, "unknown interpolation");
      image.interpolation = found->second;
      image.shrink_on_load = options.value("shrink_on_load", false);
    }
    if (options.contains("center_crop")) {
      image.center_crop = parse_image_size(options.at("center_crop"));
    }
    if (options.contains("pad")) image.pad = parse_image_size(options.at("pad"));
    image.max_pixels = options.value("max_pixels", kDefaultMaxPixels);
  } catch (const std::exception&) {
    throw Error(ErrorCode::unsupported,
                cli::quote(info.path) +
                    " does not say how its images were made, or this version cannot read it; "
                    "leave out --against");
  }
  image.layout = info.layout;
  return image;
}

std::optional<chunkio::FieldInfo> find_source_index(const chunkio::Dataset& dataset) {
  const std::string folder = dataset.info().sparse ? "obs/" : "";  // as AnnData has it
  std::optional<chunkio::FieldInfo> field = dataset.find_field(folder + kSourceIndex);
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

SourceProvenance::SourceProvenance(const chunkio::DatasetInfo& info, const std::string& path) {
  const Json options = Json::parse(info.options_json, nullptr, false);
  Listing first = list_again(info, options, path);
  std::string split =
      first.splits.size() > 1 ? recorded_text(options["source"], "split") : first.splits[0].name;
  if (first.splits.size() > 1 && split.empty()) split = info.split;
  add_part(info, std::move(first), split, 0);
  if (!options.is_object() || !options.contains("appended")) return;
  for (const Json& step : options["appended"]) {
    Listing listing = list_again(info, step, "");
    const bool splits = listing.splits.size() > 1;
    const std::string part =
        splits ? recorded_text(step["source"], "split") : listing.splits[0].name;
    const Json first_row = step.value("first_source_row", Json());
    add_part(info, std::move(listing), part,
             first_row.is_number_integer() ? first_row.get<std::int64_t>() : -1);
  }
}

void SourceProvenance::add_part(const chunkio::DatasetInfo& info, Listing listing,
                                const std::string& split, std::int64_t first_row) {
  const auto found = std::find_if(listing.splits.begin(), listing.splits.end(),
                                  [&](const Split& other) { return other.name == split; });
  if (found == listing.splits.end()) {
    throw Error(ErrorCode::not_found, "the source of " + cli::quote(info.path) + " has no split " +
                                          cli::quote(split) +
                                          " any more; give the folder that was packed");
  }
  if (!parts_.empty() && first_row <= parts_.back().first_row) {
    throw Error(ErrorCode::unsupported,
                cli::quote(info.path) + " contradicts itself about what was appended to it");
  }
  const auto index = static_cast<std::size_t>(found - listing.splits.begin());
  parts_.push_back({.first_row = first_row, .listing = std::move(listing), .split = index});
}

std::optional<std::string> SourceProvenance::name(std::int64_t row) const {
  const auto next = std::find_if(parts_.begin(), parts_.end(),
                                 [&](const Part& part) { return part.first_row > row; });
  if (next == parts_.begin()) return std::nullopt;
  const Part& part = *(next - 1);
  const Images& images = *part.listing.splits[part.split].images;
  const std::int64_t index = row - part.first_row;
  if (index >= images.count()) return std::nullopt;
  return images.name(index);
}

}  // namespace h5pack
