#include "h5pack/sources/appended_source.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include <chunkio/error.hpp>
#include <chunkio/statistics.hpp>

#include "cli/quote.hpp"
#include "h5pack/sources/source_provenance.hpp"
#include "h5pack/sources/stored_rows.hpp"

namespace h5pack {
namespace {

using chunkio::Error;
using chunkio::ErrorCode;

constexpr const char* kLabels = "labels";

/// Both sources, as they are named in messages.
struct Names {
  std::string before;
  std::string added;
};

[[noreturn]] void refuse(const std::string& what) { throw Error(ErrorCode::unsupported, what); }

Split take_split(const chunkio::DatasetInfo& before, Listing& added, const std::string& wanted,
                 const Names& names) {
  const std::string& name = wanted.empty() ? before.split : wanted;
  if (added.splits.size() == 1 && wanted.empty()) return std::move(added.splits.front());
  std::vector<std::string> there;
  for (Split& split : added.splits) {
    if (split.name == name) return std::move(split);
    there.push_back(split.name);
  }
  throw Error(ErrorCode::invalid_argument,
              names.added + " has " +
                  (added.splits.size() == 1 ? "no splits" : "the splits " + first_few(there)) +
                  (wanted.empty() ? ", and " + names.before +
                                        " is of none of them: choose one with "
                                        "--split"
                                  : ", and none called " + cli::quote(wanted)));
}

/// Labels by the names that the file has for them.
void translate_classes(chunkio::FieldData& labels, const chunkio::DatasetInfo& before,
                       const std::vector<std::string>& class_names, const Names& names) {
  std::vector<std::int64_t> values(labels.values.size() / sizeof(std::int64_t));
  std::memcpy(values.data(), labels.values.data(), labels.values.size());
  const std::vector<std::string>& known = before.class_names;
  if (class_names.empty()) {
    for (const std::int64_t label : values) {
      if (known.empty() || (label >= 0 && std::cmp_less(label, known.size()))) continue;
      refuse("label " + std::to_string(label) + " of " + names.added + " is none of the " +
             std::to_string(known.size()) + " classes of " + names.before);
    }
    return;
  }
  std::vector<std::int64_t> translated(class_names.size(), -1);
  for (std::size_t i = 0; i < class_names.size(); ++i) {
    const auto found = std::find(known.begin(), known.end(), class_names[i]);
    if (found != known.end()) translated[i] = found - known.begin();
  }
  for (std::int64_t& label : values) {
    const auto index = static_cast<std::size_t>(label);
    if (translated[index] < 0) {
      refuse("class " + cli::quote(class_names[index]) + " of " + names.added + " is none of " +
             names.before +
             (known.empty() ? ", whose classes have no names" : ", which has " + first_few(known)) +
             ": rename or remove it, or pack both sources together");
    }
    label = translated[index];
  }
  std::memcpy(labels.values.data(), values.data(), labels.values.size());
}

/// Columns of a table of attributes in the order of the file.
void translate_attributes(chunkio::FieldData& table, const chunkio::DatasetInfo& before,
                          const std::vector<std::string>& attribute_names, const Names& names) {
  const std::vector<std::string>& known = before.attribute_names;
  for (const std::string& name : attribute_names) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    refuse("attribute " + cli::quote(name) + " of " + names.added + " is none of " + names.before);
  }
  std::vector<std::size_t> columns;
  for (const std::string& name : known) {
    const auto found = std::find(attribute_names.begin(), attribute_names.end(), name);
    if (found == attribute_names.end()) {
      refuse("attribute " + cli::quote(name) + " of " + names.before + " is none of " +
             names.added);
    }
    columns.push_back(static_cast<std::size_t>(found - attribute_names.begin()));
  }
  std::vector<std::byte> values(table.values.size());
  for (std::size_t at = 0; at < values.size(); at += columns.size()) {
    for (std::size_t i = 0; i < columns.size(); ++i) values[at + i] = table.values[at + columns[i]];
  }
  table.values = std::move(values);
}

void translate_labels(Split& split, const chunkio::DatasetInfo& before, const Listing& added,
                      const Names& names) {
  const auto labels = std::find_if(split.fields.begin(), split.fields.end(),
                                   [](const auto& field) { return field.info.name == kLabels; });
  if (labels == split.fields.end()) {
    if (before.labels) refuse(names.added + " has no labels, and " + names.before + " has them");
    return;
  }
  if (!before.labels) {
    refuse(names.before + " has no labels, and " + names.added +
           " has them: give images without class folders or label column");
  }
  if (are_classes(labels->info) != are_classes(*before.labels)) {
    const char* const table = " has a table of attributes, and ";
    refuse((are_classes(labels->info) ? names.before + table + names.added
                                      : names.added + table + names.before) +
           " has classes");
  }
  if (are_classes(labels->info)) {
    translate_classes(*labels, before, added.class_names, names);
  } else {
    translate_attributes(*labels, before, added.attribute_names, names);
  }
}

/// The fields of the file, each with the rows of `added` behind its own.
std::vector<chunkio::FieldData> join_fields(const chunkio::Dataset& before,
                                            std::vector<chunkio::FieldData> added,
                                            const Names& names) {
  const chunkio::DatasetInfo& info = before.info();
  std::vector<chunkio::FieldInfo> fields = info.fields;
  std::erase_if(fields, [](const auto& field) { return field.name == kSourceIndex; });
  if (info.labels) {
    fields.push_back(*info.labels);
    fields.back().name = kLabels;
  }
  const auto without = [](const std::string& file) {
    return "; h5pack repack " + file + " --fields leaves fields out";
  };
  for (const chunkio::FieldData& field : added) {
    if (std::none_of(fields.begin(), fields.end(),
                     [&](const auto& known) { return known.name == field.info.name; })) {
      refuse("field " + cli::quote(field.info.name) + " of " + names.added + " is none of " +
             names.before);
    }
  }
  std::vector<chunkio::FieldData> joined;
  for (const chunkio::FieldInfo& field : fields) {
    const chunkio::FieldData* more = find_field(added, field.name);
    if (more == nullptr) {
      refuse("field " + cli::quote(field.name) + " of " + names.before + " is none of " +
             names.added + without(names.before));
    }
    if (more->info.dtype != field.dtype || more->info.row_shape != field.row_shape) {
      refuse("field " + cli::quote(field.name) + " is " + field.row_shape.to_string() + " " +
             std::string(to_string(field.dtype)) + " in " + names.before + " and " +
             more->info.row_shape.to_string() + " " + std::string(to_string(more->info.dtype)) +
             " in " + names.added + without(names.before));
    }
    const std::size_t own =
        static_cast<std::size_t>(before.size()) * chunkio::Dataset::row_bytes(field);
    chunkio::FieldData data{field, std::vector<std::byte>(own + more->values.size()), {}};
    const bool labels = field.name == kLabels;
    before.read_field(labels ? info.labels->name : field.name, 0, before.size(),
                      std::span(data.values).first(own));
    std::copy(more->values.begin(), more->values.end(),
              data.values.begin() + static_cast<std::ptrdiff_t>(own));
    joined.push_back(std::move(data));
  }
  return joined;
}

/// \throws Error unsupported if no numbers are left for the new rows.
std::vector<std::int64_t> join_source_rows(const chunkio::Dataset& before, std::int64_t added) {
  std::vector<std::int64_t> rows = source_rows(before, {0, before.size()});
  if (rows.empty()) {
    rows.resize(static_cast<std::size_t>(before.size()));
    std::iota(rows.begin(), rows.end(), std::int64_t{0});
  }
  const std::int64_t highest = *std::max_element(rows.begin(), rows.end());
  if (highest >= INT64_MAX - added) {
    refuse("source_index of " + cli::quote(before.info().path) + " goes up to " +
           std::to_string(highest) + ", which leaves no numbers for further rows; write it anew");
  }
  const std::int64_t first = highest + 1;
  for (std::int64_t row = 0; row < added; ++row) rows.push_back(first + row);
  return rows;
}

}  // namespace

Listing append_to(const chunkio::Dataset& before, Listing added, const std::string& split) {
  const chunkio::DatasetInfo& info = before.info();
  const Names names{cli::quote(info.path), cli::quote(added.source.at("path").get<std::string>())};
  Split joined = take_split(info, added, split, names);
  translate_labels(joined, info, added, names);
  joined.fields = join_fields(before, std::move(joined.fields), names);
  std::vector<std::int64_t> rows = join_source_rows(before, joined.images->count());
  joined.images = std::make_unique<StoredRows>(before, std::move(rows), std::move(joined.images));
  if (!joined.name.empty()) added.source["split"] = joined.name;
  joined.name = info.split;
  Listing listing;
  listing.splits.push_back(std::move(joined));
  listing.class_names = info.class_names;
  listing.attribute_names = info.attribute_names;
  listing.source = std::move(added.source);
  listing.notes = std::move(added.notes);
  return listing;
}

}  // namespace h5pack
