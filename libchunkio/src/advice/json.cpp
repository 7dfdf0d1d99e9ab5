#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <chunkio/bottleneck.hpp>
#include <chunkio/cuda/device_loader.hpp>
#include <chunkio/loader.hpp>
#include <chunkio/tuning.hpp>

namespace chunkio {
namespace {

using Json = nlohmann::ordered_json;

/// Names in files need not be UTF-8, JSON must be.
std::string text(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Json shape_json(const Shape& shape) {
  Json json = Json::array();
  for (const std::int64_t dim : shape.dims()) json.push_back(dim);
  return json;
}

Json field_json(const FieldInfo& field) {
  return {{"name", field.name},
          {"dtype", to_string(field.dtype)},
          {"row_shape", shape_json(field.row_shape)}};
}

/// Name and count of each class or attribute; what is unknown is null.
Json named_counts_json(const std::vector<std::string>& names,
                       const std::vector<std::int64_t>& counts) {
  Json json = Json::array();
  for (std::size_t i = 0; i < std::max(names.size(), counts.size()); ++i) {
    json.push_back({{"name", i < names.size() ? Json(names[i]) : Json(nullptr)},
                    {"count", i < counts.size() ? Json(counts[i]) : Json(nullptr)}});
  }
  return json;
}

Json source_sizes_json(const SourceSizes& sizes) {
  Json most_frequent = Json::array();
  for (const auto& [height, width, images] : sizes.most_frequent) {
    most_frequent.push_back({{"height", height}, {"width", width}, {"images", images}});
  }
  return {{"min_height", sizes.min_height},
          {"max_height", sizes.max_height},
          {"min_width", sizes.min_width},
          {"max_width", sizes.max_width},
          {"most_frequent", std::move(most_frequent)}};
}

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

/// What cannot be opened.
Json damaged_objects_json(const DatasetInfo& info) {
  Json json = Json::array();
  for (const DamagedObject& object : info.damaged_objects) {
    json.push_back({{"name", object.name}, {"reason", object.reason}});
  }
  return json;
}

Json facts_json(const LoaderFacts& facts) {
  return {{"source", to_string(facts.source)},    {"order", to_string(facts.order)},
          {"verify", to_string(facts.verify)},    {"resident", to_string(facts.resident)},
          {"filtered", facts.filtered},           {"encoded", facts.encoded},
          {"random_crops", facts.random_crops},   {"direct_io", facts.direct_io},
          {"reads_ahead", facts.reads_ahead},     {"num_cpus", facts.num_cpus},
          {"group_samples", facts.group_samples}, {"prefetch_depth", facts.prefetch_depth},
          {"image_bytes", facts.image_bytes},     {"spare_bytes", facts.spare_bytes}};
}

Json stats_json(const LoaderStats& stats) {
  const BottleneckReport found = stats.bottleneck();
  return {{"batches", stats.batches},
          {"copied_batches", stats.copied_batches},
          {"images", stats.images},
          {"bytes_delivered", stats.bytes_delivered},
          {"bytes_read", stats.bytes_read},
          {"read_amplification", stats.read_amplification()},
          {"chunk_loads", stats.chunk_loads},
          {"hit_rate", stats.hit_rate()},
          {"skipped_images", stats.skipped_images},
          {"num_threads", stats.num_threads},
          {"seconds", stats.seconds},
          {"stall_seconds", stats.stall_seconds},
          {"plan_seconds", stats.plan_seconds},
          {"read_seconds", stats.read_seconds},
          {"decode_seconds", stats.decode_seconds},
          {"copy_seconds", stats.copy_seconds},
          {"input_wait_seconds", stats.input_wait_seconds},
          {"output_wait_seconds", stats.output_wait_seconds},
          {"facts", facts_json(stats.facts)},
          {"bottleneck", to_string(found.bottleneck)},
          {"advice", found.summary()}};
}

}  // namespace

std::string to_json(const Inspection& inspection) {
  const DatasetInfo& info = inspection.dataset;
  Json json;
  json["file"] = info.path;
  json["format_version"] = or_null(info.format_version);
  json["foreign"] = !info.format_version.has_value();
  json["creator"] = info.creator;
  json["uuid"] = info.uuid;
  json["shard"] = info.shard ? Json{{"index", info.shard->index},
                                    {"count", info.shard->count},
                                    {"first_row", info.shard->first_row},
                                    {"total_rows", info.shard->total_rows},
                                    {"set", info.shard->set}}
                             : Json(nullptr);
  json["shards"] = Json::array();
  for (const ShardFile& shard : info.shards) {
    json["shards"].push_back(
        {{"path", shard.path}, {"first_row", shard.first_row}, {"num_samples", shard.num_samples}});
  }
  json["split"] = info.split;
  json["order"] = info.order;
  json["seed"] = or_null(info.seed);
  json["images"] = info.has_images() ? Json(info.images_path) : Json(nullptr);
  json["leading"] = info.leading.name;
  json["sparse"] = info.sparse ? Json{{"columns", info.sparse->columns},
                                      {"num_entries", info.sparse->num_entries},
                                      {"index_dtype", to_string(info.sparse->index_dtype)}}
                               : Json(nullptr);
  json["encoded"] = info.encoded ? Json{{"num_bytes", info.encoded->num_bytes},
                                        {"max_height", info.encoded->max_height},
                                        {"max_width", info.encoded->max_width},
                                        {"max_pixels", info.encoded->max_pixels}}
                                 : Json(nullptr);
  json["num_samples"] = info.num_samples;
  json["shape"] = shape_json(info.sample_shape().with_first_axis(info.num_samples));
  json["dtype"] = to_string(info.stored.dtype);
  const auto of_images = [&](const Json& value) {
    return info.has_images() ? value : Json(nullptr);
  };
  json["layout"] = of_images(to_string(info.layout));
  json["height"] = of_images(info.height);
  json["width"] = of_images(info.width);
  json["channels"] = of_images(info.channels);
  json["channel_order"] = info.channel_order;
  json["labels"] = info.labels ? field_json(*info.labels) : Json(nullptr);
  json["why_no_labels"] = info.why_no_labels.empty() ? Json(nullptr) : Json(info.why_no_labels);
  // Counts go with the attributes where those exist, else with the classes.
  const bool attributes = !info.attribute_names.empty();
  json["classes"] = named_counts_json(
      info.class_names, attributes ? std::vector<std::int64_t>() : inspection.class_counts);
  json["attributes"] = named_counts_json(
      info.attribute_names, attributes ? inspection.class_counts : std::vector<std::int64_t>());
  json["fields"] = Json::array();
  for (const FieldInfo& field : info.fields) json["fields"].push_back(field_json(field));
  json["left_out"] = info.left_out;
  json["damaged_objects"] = damaged_objects_json(info);
  json["storage"] = {{"shape", shape_json(info.stored.shape)},
                     {"chunked", info.stored.chunked},
                     {"chunk_shape", shape_json(info.stored.chunk_shape)},
                     {"chunk_bytes", inspection.chunk_bytes},
                     {"num_chunks", info.num_chunks},
                     {"filters", info.stored.filters},
                     {"stored_bytes", info.stored_bytes},
                     {"raw_bytes", info.num_samples * info.sample_bytes()}};
  json["statistics"] = info.statistics ? Json{{"mean", info.statistics->mean},
                                              {"std", info.statistics->std},
                                              {"mean_picture_std", info.mean_picture_std}}
                                       : Json(nullptr);
  json["source_sizes"] = info.source_sizes ? source_sizes_json(*info.source_sizes) : Json(nullptr);
  json["recommended_cache"] = {{"rdcc_nslots", inspection.cache.rdcc_nslots},
                               {"rdcc_nbytes", inspection.cache.rdcc_nbytes},
                               {"rdcc_w0", inspection.cache.rdcc_w0}};
  json["advice"] = inspection.advice;
  json["options"] = Json::parse(info.options_json, nullptr, false).is_object()
                        ? Json::parse(info.options_json, nullptr, false)
                        : Json(nullptr);
  return text(json);
}

std::string to_json(const LoaderStats& stats) { return text(stats_json(stats)); }

std::string cuda::to_json(const DeviceStats& stats) {
  const BottleneckReport found = stats.bottleneck();
  return text({{"loader", stats_json(stats.loader)},
               {"batches", stats.batches},
               {"images", stats.images},
               {"bytes_uploaded", stats.bytes_uploaded},
               {"seconds", stats.seconds},
               {"stall_seconds", stats.stall_seconds},
               {"device_stall_seconds", stats.device_stall_seconds},
               {"upload_seconds", stats.upload_seconds},
               {"kernel_seconds", stats.kernel_seconds},
               {"pinned", stats.pinned},
               {"resident", stats.resident},
               {"echo", stats.echo},
               {"dtype", to_string(stats.dtype)},
               {"dataset_bytes", stats.dataset_bytes},
               {"free_device_bytes", stats.free_device_bytes},
               {"bottleneck", to_string(found.bottleneck)},
               {"advice", found.summary()}});
}

std::string to_json(const BottleneckReport& report) {
  Json suggestions = Json::array();
  for (const Suggestion& suggestion : report.suggestions) {
    suggestions.push_back({{"option", suggestion.option},
                           {"text", suggestion.text},
                           {"images_per_second", suggestion.images_per_second},
                           {"stall", suggestion.stall}});
  }
  return text({{"bottleneck", to_string(report.bottleneck)},
               {"stall", report.stall},
               {"too_short", report.too_short},
               {"evidence", report.evidence},
               {"suggestions", std::move(suggestions)}});
}

std::string to_json(std::span<const SkippedRows> skipped) {
  Json json = Json::array();
  for (const SkippedRows& rows : skipped) {
    json.push_back({{"first_row", rows.first_row},
                    {"num_rows", rows.num_rows},
                    {"num_selected", rows.num_selected},
                    {"reason", rows.reason}});
  }
  return text(json);
}

}  // namespace chunkio
