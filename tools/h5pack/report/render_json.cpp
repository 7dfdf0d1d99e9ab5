#include <algorithm>
#include <string>

#include <nlohmann/json.hpp>

#include <chunkio/loader.hpp>

#include "cli/disk_options.hpp"
#include "cli/json_text.hpp"
#include "cli/text_layout.hpp"
#include "h5pack/report/report.hpp"

namespace h5pack {
namespace {

using Json = nlohmann::ordered_json;

std::string line(const Json& json) { return cli::json_text(json) + "\n"; }

Json why_no_labels_json(const chunkio::DatasetInfo& info) {
  return info.why_no_labels.empty() ? Json(nullptr) : Json(info.why_no_labels);
}

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
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

std::string epoch_json(const StreamSetup& setup, const EpochReport& report) {
  const chunkio::LoaderStats& stats = report.stats;
  const chunkio::LoaderOptions& options = setup.options;
  Json json;
  json["epoch"] = report.epoch;
  json["rank"] = options.ranks.rank;
  json["world_size"] = options.ranks.world_size;
  json.update(Json::parse(chunkio::to_json(stats)));
  json.erase("facts");
  json["seconds"] = report.seconds;
  json["images_per_second"] = report.images_per_second();
  json["bytes_per_second"] = report.bytes_per_second();
  json["row_groups"] = setup.num_groups;
  json["loads_per_group"] = report.loads_per_group(setup);
  json["stall_fraction"] = report.stall_fraction();
  json["num_threads"] = options.io.num_threads;
  json["skipped"] = Json::parse(chunkio::to_json(report.skipped));
  json["damaged_objects"] = damaged_objects_json(setup.dataset);
  json["source"] = to_string(setup.source);
  json["source_reason"] = setup.source_reason;
  json["direct_io"] = options.io.direct_io;
  json["disk_limit"] = cli::disk_json(options.io.disk_limit);
  json["resident"] = to_string(options.memory.resident);
  json["verify"] = to_string(options.io.verify);
  json["on_error"] = to_string(options.io.on_error);
  json["order"] = to_string(options.order.mode);
  json["seed"] = options.seed;
  json["samples"] = setup.num_samples;
  json["labels"] = setup.dataset.labels ? Json(setup.dataset.labels->name) : Json(nullptr);
  json["why_no_labels"] = why_no_labels_json(setup.dataset);
  json["batch_size"] = options.batch_size;
  json["drop_last"] = options.order.drop_last;
  json["lanes"] = options.order.lanes;
  json["uneven"] = to_string(options.order.uneven);
  json["group_samples"] = setup.group_samples;
  json["window_groups"] = setup.window_groups;
  json["memory_bytes"] = setup.memory_bytes;
  json["order_digest"] = cli::hex(report.order_digest);
  if (report.pixel_digest) {
    json["pixel_digest"] = cli::hex(*report.pixel_digest);
    json["field_digests"] = Json::object();
    for (const FieldDigest& field : report.field_digests) {
      json["field_digests"][field.name] = cli::hex(field.digest);
    }
  }
  if (report.shuffle) json["shuffle_quality"] = shuffle_json(*report.shuffle);
  return line(json);
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
  if (!report.matrix.empty()) {
    return line({{"output", report.output},
                 {"matrix", report.matrix},
                 {"rows", report.rows},
                 {"columns", report.columns},
                 {"entries", report.entries},
                 {"left_out", report.left_out},
                 {"seconds", report.seconds}});
  }
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
    Json json = {{"path", output.path}, {"images", output.num_samples}};
    if (output.complete_already) {
      json["complete_already"] = true;
      outputs.push_back(std::move(json));
      continue;
    }
    if (!output.planned) json["resumed_images"] = output.num_resumed;
    json["store"] = output.encoded ? "encoded" : "raw";
    json["filter"] = output.filter.to_string();
    json["chunk_samples"] = output.chunk_samples;
    json["chunk_bytes"] = output.chunk_bytes;
    json["chunks"] = output.num_chunks;
    json[output.planned ? "estimated_bytes" : "bytes"] = output.file_bytes;
    json["class_counts"] = output.statistics.class_counts;
    if (!output.planned) {
      json["mean"] = output.statistics.channels.mean;
      json["std"] = output.statistics.channels.std;
      json["mean_picture_std"] = output.statistics.mean_picture_std;
      json["seconds"] = output.seconds;
      json["read_back_seconds"] = output.read_back_seconds;
    }
    outputs.push_back(std::move(json));
  }
  const bool planned = !report.outputs.empty() && report.outputs.front().planned;
  return line({{"command", "repack"},
               {"dry_run", planned},
               {"input", report.input},
               {"notes", report.notes},
               {"outputs", std::move(outputs)}});
}

}  // namespace h5pack
