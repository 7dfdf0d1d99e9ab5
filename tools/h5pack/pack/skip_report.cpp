#include "h5pack/pack/skip_report.hpp"

#include <cstring>
#include <fstream>
#include <optional>
#include <span>
#include <utility>

#include <nlohmann/json.hpp>

#include <chunkio/error.hpp>
#include <chunkio/statistics.hpp>

#include "cli/atomic_file.hpp"
#include "cli/json_text.hpp"
#include "cli/quote.hpp"
#include "h5pack/dataset/class_labels.hpp"

namespace h5pack {

namespace {

using json = nlohmann::ordered_json;

std::optional<std::int64_t> label_of(const Split& split, std::int64_t row) {
  const chunkio::FieldData* labels = find_field(split.fields, "labels");
  if (labels == nullptr || !are_classes(labels->info)) return std::nullopt;
  std::int64_t label = 0;
  std::memcpy(&label, labels->values.data() + static_cast<std::size_t>(row) * sizeof label,
              sizeof label);
  return label;
}

std::string hex_bytes(const std::string& text) {
  std::string digits;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    digits += "0123456789abcdef"[byte >> 4];
    digits += "0123456789abcdef"[byte & 15];
  }
  return digits;
}

bool is_utf8(const std::string& text) {
  try {
    static_cast<void>(json(text).dump());
    return true;
  } catch (const json::type_error&) {
    return false;
  }
}

}  // namespace

SkipReport::SkipReport(std::string path, bool overwrite)
    : path_(std::move(path)), overwrite_(overwrite) {
  if (path_.empty()) return;
  cli::check_atomic_file(path_, overwrite_);
  // Something else of that name is a slip of the keyboard.
  std::ifstream existing(path_);
  const int first = existing.get();
  if (existing && first != '{') {
    throw chunkio::Error(chunkio::ErrorCode::output_exists,
                         cli::quote(path_) + " exists and is no report: name another --report");
  }
}

void SkipReport::keep(const std::string& output) {
  if (path_.empty()) return;
  const json name = json::parse(cli::json_text(json(output)));  // as add() writes it
  std::ifstream existing(path_);
  for (std::string line; std::getline(existing, line);) {
    const json stored = json::parse(line, nullptr, false);
    if (stored.is_object() && stored.value("output", json()) == name) lines_ += line + "\n";
  }
}

void SkipReport::add(const std::string& output, const Listing& listing, const Split& split,
                     const std::vector<SkippedImage>& skipped) {
  for (const SkippedImage& image : skipped) {
    const std::string path = split.images->name(image.row);
    const std::optional<std::int64_t> label = label_of(split, image.row);
    const std::optional<std::string> name =
        label ? class_name(listing.class_names, *label) : std::nullopt;
    json line = {{"output", output}, {"split", split.name}, {"path", path}};
    if (!is_utf8(path)) line["path_hex"] = hex_bytes(path);
    line["row"] = image.row;
    line["label"] = label ? json(*label) : json(nullptr);
    line["class"] = name ? json(*name) : json(nullptr);
    line["code"] = to_string(image.code);
    line["reason"] = image.reason;
    lines_ += cli::json_text(line) + "\n";
  }
}

void SkipReport::write() {
  if (path_.empty()) return;
  const auto* bytes = reinterpret_cast<const unsigned char*>(lines_.data());
  cli::write_atomic_file(path_, std::span(bytes, lines_.size()), overwrite_);
  overwrite_ = true;  // From now on it is ours.
}

}  // namespace h5pack
