#include "render_json.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "digest_text.hpp"
#include "disk_options.hpp"
#include "json_text.hpp"

namespace h5pack {
namespace {

using Json = nlohmann::ordered_json;

std::string line(const Json& json) { return json_text(json) + "\n"; }

Json shape_json(const chunkio::Shape& shape) {
  Json json = Json::array();
  for (const std::int64_t dim : shape.dims()) json.push_back(dim);
  return json;
}

Json field_json(const chunkio::FieldInfo& field) {
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

Json why_no_labels_json(const chunkio::DatasetInfo& info) {
  return info.why_no_labels.empty() ? Json(nullptr) : Json(info.why_no_labels);
}

Json source_sizes_json(const chunkio::SourceSizes& sizes) {
  Json most_frequent = Json::array();
  for (const auto& [height, width, pictures] : sizes.most_frequent) {
    most_frequent.push_back({{"height", height}, {"width", width}, {"pictures", pictures}});
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

Json skipped_json(const std::vector<chunkio::SkippedRows>& skipped) {
  Json json = Json::array();
  for (const chunkio::SkippedRows& rows : skipped) {
    json.push_back({{"first_row", rows.first_row},
                    {"num_rows", rows.num_rows},
                    {"num_selected", rows.num_selected},
                    {"reason", rows.reason}});
  }
  return json;
}

/// What cannot be opened.
Json damaged_objects_json(const chunkio::DatasetInfo& info) {
  Json json = Json::array();
  for (const chunkio::DamagedObject& object : info.damaged_objects) {
    json.push_back({{"name", object.name}, {"reason", object.reason}});
  }
  return json;
}

Json shuffle_json(const ShuffleQuality& quality) {
  return {{"label_entropy", or_null(quality.label_entropy)},
          {"global_label_entropy", or_null(quality.global_label_entropy)},
          {"label_entropy_ratio", or_null(quality.entropy_ratio())},
          {"same_chunk_pair_rate", or_null(quality.pair_rate)},
          {"global_same_chunk_pair_rate", quality.global_pair_rate},
          {"sorted_by_class", quality.sorted_by_class}};
}

}  // namespace

std::string error_json(std::string_view code, std::string_view message) {
  return line({{"error", {{"code", code}, {"message", message}}}});
}

std::string info_json(const InfoReport& report) {
  const chunkio::DatasetInfo& info = report.dataset;
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
  for (const chunkio::ShardFile& shard : info.shards) {
    json["shards"].push_back(
        {{"path", shard.path}, {"first_row", shard.first_row}, {"num_samples", shard.num_samples}});
  }
  json["split"] = info.split;
  json["order"] = info.order;
  json["seed"] = or_null(info.seed);
  json["images"] = info.images_path;
  json["num_samples"] = info.num_samples;
  json["shape"] = shape_json(info.sample_shape().with_first_axis(info.num_samples));
  json["dtype"] = to_string(info.stored.dtype);
  json["layout"] = to_string(info.layout);
  json["height"] = info.height;
  json["width"] = info.width;
  json["channels"] = info.channels;
  json["channel_order"] = info.channel_order;
  json["labels"] = info.labels ? field_json(*info.labels) : Json(nullptr);
  json["why_no_labels"] = why_no_labels_json(info);
  // Counts go with the attributes where those exist, else with the classes.
  const bool attributes = !info.attribute_names.empty();
  json["classes"] = named_counts_json(
      info.class_names, attributes ? std::vector<std::int64_t>() : report.class_counts);
  json["attributes"] = named_counts_json(
      info.attribute_names, attributes ? report.class_counts : std::vector<std::int64_t>());
  json["fields"] = Json::array();
  for (const chunkio::FieldInfo& field : info.fields) json["fields"].push_back(field_json(field));
  json["left_out"] = info.left_out;
  json["damaged_objects"] = damaged_objects_json(info);
  json["storage"] = {{"shape", shape_json(info.stored.shape)},
                     {"chunked", info.stored.chunked},
                     {"chunk_shape", shape_json(info.stored.chunk_shape)},
                     {"chunk_bytes", report.chunk_bytes},
                     {"num_chunks", info.num_chunks},
                     {"filters", info.stored.filters},
                     {"stored_bytes", info.stored_bytes},
                     {"raw_bytes", info.num_samples * info.sample_bytes()}};
  json["statistics"] = info.statistics ? Json{{"mean", info.statistics->mean},
                                              {"std", info.statistics->std},
                                              {"mean_picture_std", info.mean_picture_std}}
                                       : Json(nullptr);
  json["source_sizes"] = info.source_sizes ? source_sizes_json(*info.source_sizes) : Json(nullptr);
  json["recommended_cache"] = {{"rdcc_nslots", report.cache.rdcc_nslots},
                               {"rdcc_nbytes", report.cache.rdcc_nbytes},
                               {"rdcc_w0", report.cache.rdcc_w0}};
  json["advice"] = report.advice;
  json["options"] = Json::parse(info.options_json, nullptr, false).is_object()
                        ? Json::parse(info.options_json, nullptr, false)
                        : Json(nullptr);
  return line(json);
}

std::string epoch_json(const StreamSetup& setup, const EpochReport& report) {
  const chunkio::LoaderStats& stats = report.stats;
  const chunkio::LoaderOptions& options = setup.options;
  Json json;
  json["epoch"] = report.epoch;
  json["rank"] = options.rank;
  json["world_size"] = options.world_size;
  json["images"] = stats.images;
  json["batches"] = stats.batches;
  json["seconds"] = report.seconds;
  json["images_per_second"] = report.images_per_second();
  json["bytes_per_second"] = report.bytes_per_second();
  json["bytes_delivered"] = stats.bytes_delivered;
  json["bytes_read"] = stats.bytes_read;
  json["read_amplification"] = stats.read_amplification();
  json["row_groups"] = setup.num_groups;
  json["chunk_loads"] = stats.chunk_loads;
  json["loads_per_group"] = report.loads_per_group(setup);
  json["hit_rate"] = stats.hit_rate();
  json["stall_seconds"] = stats.stall_seconds;
  json["stall_fraction"] = report.stall_fraction();
  json["plan_seconds"] = stats.plan_seconds;
  json["read_seconds"] = stats.read_seconds;
  json["decode_seconds"] = stats.decode_seconds;
  json["copy_seconds"] = stats.copy_seconds;
  json["input_wait_seconds"] = stats.input_wait_seconds;
  json["output_wait_seconds"] = stats.output_wait_seconds;
  json["num_threads"] = options.num_threads;
  json["bound"] = to_string(stats.bound);
  json["advice"] = stats.advice;
  json["skipped_images"] = stats.skipped_images;
  json["skipped"] = skipped_json(report.skipped);
  json["damaged_objects"] = damaged_objects_json(setup.dataset);
  json["source"] = to_string(setup.source);
  json["source_reason"] = setup.source_reason;
  json["direct_io"] = options.direct_io;
  json["disk_limit"] = disk_json(options.disk_limit);
  json["resident"] = to_string(options.resident);
  json["verify"] = to_string(options.verify);
  json["on_error"] = to_string(options.on_error);
  json["order"] = to_string(options.order);
  json["seed"] = options.seed;
  json["samples"] = setup.num_samples;
  json["labels"] = setup.dataset.labels ? Json(setup.dataset.labels->name) : Json(nullptr);
  json["why_no_labels"] = why_no_labels_json(setup.dataset);
  json["batch_size"] = options.batch_size;
  json["drop_last"] = options.drop_last;
  json["lanes"] = options.lanes;
  json["uneven"] = to_string(options.uneven);
  json["group_samples"] = setup.group_samples;
  json["window_groups"] = setup.window_groups;
  json["memory_bytes"] = setup.memory_bytes;
  json["order_digest"] = hex(report.order_digest);
  if (report.pixel_digest) {
    json["pixel_digest"] = hex(*report.pixel_digest);
    json["field_digests"] = Json::object();
    for (const FieldDigest& field : report.field_digests) {
      json["field_digests"][field.name] = hex(field.digest);
    }
  }
  if (report.shuffle) json["shuffle_quality"] = shuffle_json(*report.shuffle);
  return line(json);
}

std::string preview_json(const PreviewReport& report) {
  return line({{"output", report.output},
               {"images", report.images},
               {"rows", report.rows},
               {"columns", report.columns},
               {"width", report.width},
               {"height", report.height}});
}

std::string verify_json(const VerifyReport& report) {
  Json damaged = Json::array();
  for (const DamageReport& damage : report.damaged) {
    const chunkio::DamagedChunk& chunk = damage.chunk;
    Json rows = Json::array();
    for (const auto& [begin, end] : chunk.damaged_rows) {
      for (std::int64_t row = begin; row < end; ++row) rows.push_back(row);
    }
    damaged.push_back({{"chunk", chunk.chunk},
                       {"first_row", chunk.rows.begin},
                       {"num_rows", chunk.rows.end - chunk.rows.begin},
                       {"rows", std::move(rows)},
                       {"code", to_string(chunk.code)},
                       {"reason", chunk.reason},
                       {"source_rows", damage.source_rows},
                       {"files", damage.files},
                       {"classes", damage.classes}});
  }
  Json source = nullptr;
  if (report.source) {
    Json different = Json::array();
    for (const SourceDifference& difference : report.source->different) {
      different.push_back({{"row", difference.row},
                           {"source_row", difference.source_row},
                           {"file", difference.file},
                           {"reason", difference.reason}});
    }
    source = {{"compared", report.source->compared}, {"different", std::move(different)}};
  }
  return line(
      {{"file", report.dataset.path},
       {"intact", report.intact()},
       {"foreign", !report.dataset.format_version.has_value()},
       {"num_samples", report.dataset.num_samples},
       {"not_compared", report.not_compared.empty() ? Json(nullptr) : Json(report.not_compared)},
       {"chunks_compared", report.num_chunks},
       {"bytes_read", report.bytes_read},
       {"seconds", report.seconds},
       {"problems", report.problems},
       {"damaged", std::move(damaged)},
       {"source", std::move(source)},
       {"files_unknown",
        report.files_unknown.empty() ? Json(nullptr) : Json(report.files_unknown)}});
}

std::string export_json(const ExportReport& report) {
  return line({{"output", report.output},
               {"images", report.images},
               {"folders", report.folders},
               {"left_out", report.left_out},
               {"notes", report.notes},
               {"seconds", report.seconds}});
}

std::string repack_json(const RepackReport& report) {
  Json outputs = Json::array();
  for (const RepackResult& output : report.outputs) {
    if (output.complete_already) {
      outputs.push_back(
          {{"path", output.path}, {"images", output.num_samples}, {"complete_already", true}});
      continue;
    }
    outputs.push_back({{"path", output.path},
                       {"images", output.num_samples},
                       {"resumed_images", output.num_resumed},
                       {"filter", output.filter.to_string()},
                       {"chunk_samples", output.chunk_samples},
                       {"chunk_bytes", output.chunk_bytes},
                       {"chunks", output.num_chunks},
                       {"bytes", output.file_bytes},
                       {"class_counts", output.statistics.class_counts},
                       {"mean", output.statistics.channels.mean},
                       {"std", output.statistics.channels.std},
                       {"mean_picture_std", output.statistics.mean_picture_std},
                       {"seconds", output.seconds},
                       {"read_back_seconds", output.read_back_seconds}});
  }
  return line({{"command", "repack"},
               {"input", report.input},
               {"notes", report.notes},
               {"outputs", std::move(outputs)}});
}

}  // namespace h5pack
