#include "pipeline/run_description.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <string_view>

#include <nlohmann/json.hpp>

#include <chunkio/error.hpp>

#include "base/digest.hpp"

namespace chunkio::pipeline {
namespace {

// Members keep their order, so that the caller decides which difference is told first.
using json = nlohmann::ordered_json;

// On-disk names: never change.
constexpr const char* kIdentity = "identity";
constexpr const char* kSpecification = "specification";

std::string digest_of(const std::vector<std::string>& texts) {
  base::RunningDigest digest;
  for (const std::string& text : texts) {
    digest.add(std::as_bytes(std::span(text.c_str(), text.size() + 1)));
  }
  return std::to_string(digest.value());
}

/// Names from files need not be UTF-8.
std::string dump(const json& value) {
  return value.dump(-1, ' ', true, json::error_handler_t::replace);
}

json parse_identity(const std::string& text) {
  json identity = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!identity.is_object() || std::any_of(identity.begin(), identity.end(), [](const json& value) {
        return !value.is_string() && !value.is_number() && !value.is_boolean();
      })) {
    throw Error(ErrorCode::invalid_argument,
                "the identity of a run must be a JSON object of strings, numbers and booleans");
  }
  return identity;
}

std::string shown(const json& object, const std::string& name) {
  constexpr std::size_t kShown = 100;
  const auto value = object.find(name);
  if (value == object.end()) return "not there";
  std::string text = dump(*value);
  if (text.size() > kShown) text = text.substr(0, kShown) + "...";
  return text;
}

std::optional<std::string> difference_of_members(const json& before, const json& now) {
  // First what there is now, in its order, then what is there no more.
  for (const json* run : {&now, &before}) {
    for (const auto& [name, unused] : run->items()) {
      const auto was = before.find(name);
      const auto is = now.find(name);
      if (was != before.end() && is != now.end() && *was == *is) continue;
      return dump(name) + " was " + shown(before, name) + " and is now " + shown(now, name);
    }
  }
  return std::nullopt;
}

}  // namespace

FieldDigests digest_fields(const std::vector<FieldData>& fields) {
  FieldDigests digests;
  for (const FieldData& field : fields) {
    base::RunningDigest digest;
    field.for_each_block([&](std::span<const std::byte> rows) { digest.add(rows); });
    digests[field.info.name] = digest.value();
  }
  return digests;
}

std::string describe_run(const std::string& identity, const DatasetSpec& spec,
                         const FieldDigests& fields, std::int64_t chunk_samples,
                         const std::string& filter) {
  json specification = {{"num_samples", spec.num_samples},
                        {"height", spec.height},
                        {"width", spec.width},
                        {"channels", spec.channels},
                        {"layout", std::string(to_string(spec.layout))},
                        {"channel_order", spec.channel_order},
                        {"chunk_samples", chunk_samples},
                        {"split", spec.split},
                        {"order", spec.order},
                        {"seed", spec.seed},
                        {"options", spec.options_json},
                        {"class_names", digest_of(spec.class_names)},
                        {"attribute_names", digest_of(spec.attribute_names)}};
  // Journals from before there were filters do not have it.
  if (filter != "none") specification["filter"] = filter;
  if (spec.shard) {
    specification["shard"] = std::to_string(spec.shard->index) + "/" +
                             std::to_string(spec.shard->count) + " of " + spec.shard->set;
  }
  for (const FieldData& field : spec.fields) {
    specification["field " + field.info.name] = std::string(to_string(field.info.dtype)) + " " +
                                                field.info.row_shape.to_string() + " " +
                                                std::to_string(fields.at(field.info.name));
  }
  return dump({{kIdentity, parse_identity(identity)}, {kSpecification, specification}});
}

std::optional<std::string> first_difference(const std::string& before, const std::string& now) {
  const json old_run = json::parse(before, nullptr, /*allow_exceptions=*/false);
  const json new_run = json::parse(now);
  for (const char* part : {kIdentity, kSpecification}) {
    if (!old_run.is_object() || !old_run.contains(part) || !old_run[part].is_object()) {
      throw Error(ErrorCode::corrupt_data,
                  std::string("the journal does not have the run's ") + part);
    }
    if (auto difference = difference_of_members(old_run[part], new_run[part])) return difference;
  }
  return std::nullopt;
}

}  // namespace chunkio::pipeline
