#include "chunkbench/results.hpp"

#include <array>
#include <cstddef>
#include <set>
#include <span>
#include <tuple>

#include <chunkio/error.hpp>

#include "chunkbench/json_node.hpp"
#include "cli/file_bytes.hpp"
#include "cli/quote.hpp"

namespace bench {
namespace {

using chunkio::Error;
using chunkio::ErrorCode;
using Json = nlohmann::ordered_json;

constexpr std::int64_t kMaxFileBytes = std::int64_t{64} << 20;
constexpr std::int64_t kVersion = 1;
constexpr std::int64_t kMaxThreads = 65'536;

constexpr std::array<std::string_view, 6> kStatusNames = {"pending", "measuring", "measured",
                                                          "pruned",  "failed",    "skipped"};
constexpr std::array<std::string_view, 3> kOrders = {"chunk_shuffled", "random", "sequential"};
constexpr std::array<std::string_view, 5> kSources = {"mapped", "scatter", "direct", "hdf5",
                                                      "h5dread"};

Sampled parse_sampled(const JsonNode& node) {
  const Sampled sampled = {
      {node.at("median").number(), node.at("min").number(), node.at("max").number()},
      node.at("n").whole(1)};
  if (sampled.spread.lowest > sampled.spread.median ||
      sampled.spread.median > sampled.spread.highest) {
    node.problem("has a median outside of its range");
  }
  return sampled;
}

std::optional<Sampled> sampled_at(const JsonNode& node, const char* key) {
  const std::optional<JsonNode> found = node.find(key);
  if (!found) return std::nullopt;
  return parse_sampled(*found);
}

Predicted predicted_at(const JsonNode& node, const char* key,
                       double highest = JsonNode::kMaxNumber) {
  const std::optional<JsonNode> found = node.find(key);
  if (!found) return {};
  return {found->number_at("predicted", highest), found->number_at("measured", highest)};
}

Round parse_round(const JsonNode& node) {
  return {node.at("images").whole(0), node.at("seconds").positive(),
          node.at("stall_seconds").number(), node.at("bytes_read").whole(0),
          node.at("chunk_loads").whole(0)};
}

StageSeconds parse_stages(const JsonNode& node) {
  return {node.at("plan").number(),       node.at("read").number(),
          node.at("decode").number(),     node.at("copy").number(),
          node.at("input_wait").number(), node.at("output_wait").number()};
}

Cell parse_cell(const JsonNode& node) {
  Cell cell;
  cell.chunk_bytes = node.at("chunk_bytes").whole(1);
  cell.chunk_samples = node.at("chunk_samples").whole(1);
  cell.cache_bytes = node.at("cache_bytes").whole(0);
  cell.order = kOrders[node.at("order").index_in(kOrders)];
  cell.source = kSources[node.at("source").index_in(kSources)];
  cell.threads = node.at("threads").whole(1, kMaxThreads);
  cell.status = static_cast<CellStatus>(node.at("status").index_in(kStatusNames));
  if (const auto reason = node.find("reason")) cell.reason = reason->text();
  for (const JsonNode& round : node.items_of("rounds")) cell.rounds.push_back(parse_round(round));
  cell.images_per_second = sampled_at(node, "images_per_second");
  cell.bytes_per_second = sampled_at(node, "bytes_per_second");
  cell.hit_rate = predicted_at(node, "hit_rate", 1);
  cell.read_amplification = predicted_at(node, "read_amplification");
  cell.chunk_loads = predicted_at(node, "chunk_loads");
  if (const auto stages = node.find("stages")) cell.stages = parse_stages(*stages);
  const bool done = cell.status == CellStatus::measured || cell.status == CellStatus::pruned;
  if (done && !cell.images_per_second) {
    node.problem("is " + std::string(to_string(cell.status)) + " without images_per_second");
  }
  return cell;
}

void refuse_twins(const JsonNode& list, const std::vector<Cell>& cells) {
  std::set<std::tuple<std::int64_t, std::int64_t, std::int64_t, std::string_view, std::string_view,
                      std::int64_t>>
      seen;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const Cell& cell = cells[i];
    if (!seen.emplace(cell.chunk_bytes, cell.chunk_samples, cell.cache_bytes, cell.order,
                      cell.source, cell.threads)
             .second) {
      list.items()[i].problem("has the same settings as a cell before it");
    }
  }
}

ShufflePoint parse_shuffle_point(const JsonNode& node) {
  ShufflePoint point;
  point.order = kOrders[node.at("order").index_in(kOrders)];
  point.chunk_bytes = node.at("chunk_bytes").whole(1);
  point.window_bytes = node.at("window_bytes").whole(1);
  point.label_entropy = node.number_at("label_entropy");
  point.same_chunk_pairs = node.number_at("same_chunk_pairs");
  if (const auto chosen = node.find("chosen")) point.chosen = chosen->boolean();
  return point;
}

MeasuredVariant parse_variant(const JsonNode& node) {
  return {node.at("variant").text(), parse_sampled(node.at("images_per_second")),
          node.at("stall").number(1), node.number_at("read_amplification")};
}

bool is_scalar(const Json& value) {
  return value.is_string() || value.is_number() || value.is_boolean() || value.is_null();
}

Json parse_machine(const JsonNode& node) {
  for (const auto& [key, value] : node.object().items()) {
    bool flat = is_scalar(value);
    if (value.is_array()) flat = std::all_of(value.begin(), value.end(), is_scalar);
    if (!flat || key.size() > JsonNode::kMaxTextBytes) {
      node.problem("has a member that is neither a value nor a list of values");
    }
  }
  return node.json();
}

ShapedDisk parse_limit(const JsonNode& node) {
  return {node.at("profile").text(), node.number_at("bytes_per_second"),
          node.number_at("request_seconds"), node.whole_at("queue_depth", 1)};
}

SweepDataset parse_dataset(const JsonNode& node) {
  SweepDataset dataset;
  dataset.name = node.at("name").text();
  for (const JsonNode& length : node.at("shape").items()) dataset.shape.push_back(length.whole(1));
  dataset.bytes = node.at("bytes").whole(0);
  dataset.filters = node.texts_at("filters");
  if (const auto identity = node.find("identity")) dataset.identity = identity->text();
  if (const auto labels = node.find("labels")) dataset.labels = labels->text();
  return dataset;
}

SweepSettings parse_options(const JsonNode& node) {
  SweepSettings options;
  options.rounds = node.at("rounds").whole(1);
  options.cold = node.at("cold").boolean();
  options.batch_size = node.at("batch_size").whole(1);
  options.seed = node.at("seed").seed();
  options.images_per_trial = node.whole_at("images_per_trial", 0);
  options.random_images = node.whole_at("random_images", 0);
  options.trial_seconds = node.number_at("trial_seconds");
  if (const auto limit = node.find("limit")) options.limit = parse_limit(*limit);
  options.memory_limit = node.whole_at("memory_limit", 0);
  if (const auto device = node.find("throttled_device")) {
    options.throttled_device = device->text();
  }
  options.notes = node.texts_at("notes");
  return options;
}

Results parse_root(const JsonNode& root) {
  Results results;
  results.created = root.at("created").text();
  results.complete = root.at("complete").boolean();
  const JsonNode versions = root.at("versions");
  for (const auto& [key, value] : versions.object().items()) {
    results.versions.emplace_back(key, versions.at(key.c_str()).text());
  }
  results.machine = parse_machine(root.at("machine"));
  results.dataset = parse_dataset(root.at("dataset"));
  results.options = parse_options(root.at("options"));
  for (const JsonNode& node : root.items_of("ceilings")) {
    results.ceilings.push_back({node.at("name").text(), parse_sampled(node.at("bytes_per_second")),
                                node.numbers_at("rounds")});
  }
  const JsonNode cells = root.at("cells");
  for (const JsonNode& node : cells.items()) results.cells.push_back(parse_cell(node));
  refuse_twins(cells, results.cells);
  for (const JsonNode& node : root.items_of("shuffle")) {
    results.shuffle.push_back(parse_shuffle_point(node));
  }
  for (const JsonNode& node : root.items_of("ladder"))
    results.ladder.push_back(parse_variant(node));
  if (const auto time = root.find("time")) {
    results.seconds_preparing = time->number_at("seconds_preparing").value_or(0);
    results.seconds_total = time->at("seconds_total").number();
    results.seconds_measured = time->at("seconds_measured").number();
  }
  return results;
}

Json json_of(const Sampled& sampled) {
  Json json = to_json(sampled.spread);
  json["n"] = sampled.count;
  return json;
}

template <class Value>
Json json_of(const std::optional<Value>& value) {
  if (!value) return nullptr;
  if constexpr (std::is_same_v<Value, Sampled>) {
    return json_of(*value);
  } else {
    return *value;
  }
}

Json json_of(const Predicted& values) {
  return {{"predicted", json_of(values.predicted)}, {"measured", json_of(values.measured)}};
}

Json json_of(const Cell& cell) {
  Json rounds = Json::array();
  for (const Round& round : cell.rounds) {
    rounds.push_back({{"images", round.images},
                      {"seconds", round.seconds},
                      {"stall_seconds", round.stall_seconds},
                      {"bytes_read", round.bytes_read},
                      {"chunk_loads", round.chunk_loads}});
  }
  Json stages;
  if (cell.stages) {
    stages = {{"plan", cell.stages->plan},
              {"read", cell.stages->read},
              {"decode", cell.stages->decode},
              {"copy", cell.stages->copy},
              {"input_wait", cell.stages->input_wait},
              {"output_wait", cell.stages->output_wait}};
  }
  return {{"chunk_bytes", cell.chunk_bytes},
          {"chunk_samples", cell.chunk_samples},
          {"cache_bytes", cell.cache_bytes},
          {"order", cell.order},
          {"source", cell.source},
          {"threads", cell.threads},
          {"status", to_string(cell.status)},
          {"reason", cell.reason},
          {"rounds", std::move(rounds)},
          {"images_per_second", json_of(cell.images_per_second)},
          {"bytes_per_second", json_of(cell.bytes_per_second)},
          {"hit_rate", json_of(cell.hit_rate)},
          {"read_amplification", json_of(cell.read_amplification)},
          {"chunk_loads", json_of(cell.chunk_loads)},
          {"stages", std::move(stages)}};
}

Json json_of(const SweepSettings& options) {
  Json limit;
  if (options.limit) {
    limit = {{"profile", options.limit->profile},
             {"bytes_per_second", json_of(options.limit->bytes_per_second)},
             {"request_seconds", json_of(options.limit->request_seconds)},
             {"queue_depth", json_of(options.limit->queue_depth)}};
  }
  return {{"rounds", options.rounds},
          {"cold", options.cold},
          {"batch_size", options.batch_size},
          {"seed", options.seed},
          {"images_per_trial", json_of(options.images_per_trial)},
          {"random_images", json_of(options.random_images)},
          {"trial_seconds", json_of(options.trial_seconds)},
          {"limit", std::move(limit)},
          {"memory_limit", json_of(options.memory_limit)},
          {"throttled_device", json_of(options.throttled_device)},
          {"notes", options.notes}};
}

Json json_of(const ShufflePoint& point) {
  return {{"order", point.order},
          {"chunk_bytes", point.chunk_bytes},
          {"window_bytes", point.window_bytes},
          {"label_entropy", json_of(point.label_entropy)},
          {"same_chunk_pairs", json_of(point.same_chunk_pairs)},
          {"chosen", point.chosen}};
}

Json json_of(const MeasuredVariant& variant) {
  return {{"variant", variant.name},
          {"images_per_second", json_of(variant.images_per_second)},
          {"stall", variant.stall},
          {"read_amplification", json_of(variant.read_amplification)}};
}

template <class Entry>
Json list_of(const std::vector<Entry>& entries) {
  Json list = Json::array();
  for (const Entry& entry : entries) list.push_back(json_of(entry));
  return list;
}

}  // namespace

std::string_view to_string(CellStatus status) {
  return kStatusNames[static_cast<std::size_t>(status)];
}

Results parse_results(std::string_view text, const std::string& name) {
  Json json;
  try {
    json = Json::parse(text);
  } catch (const Json::parse_error& error) {
    throw Error(ErrorCode::corrupt_data,
                cli::quote(name) + " is no JSON, or was cut off: byte " +
                    std::to_string(error.byte) + " of " + std::to_string(text.size()) +
                    " is not what JSON has there; pass what 'chunkbench sweep --output' wrote");
  } catch (const Json::exception&) {
    throw Error(ErrorCode::corrupt_data,
                cli::quote(name) +
                    " has a number that is too large; pass what 'chunkbench sweep --output' wrote");
  }
  const JsonNode root(json, "", name);
  const std::optional<JsonNode> format = root.find("format");
  if (!format || format->json() != "chunkbench") {
    throw Error(ErrorCode::corrupt_data,
                cli::quote(name) + " is JSON, but no result of chunkbench (\"format\" is " +
                    (format ? "something else" : "missing") +
                    "); pass what 'chunkbench sweep --output' wrote");
  }
  const std::int64_t version = root.at("version").whole(1);
  if (version > kVersion) {
    throw Error(ErrorCode::unsupported,
                cli::quote(name) + " has version " + std::to_string(version) +
                    " of the format, and this program knows " + std::to_string(kVersion) +
                    "; use the chunkbench that wrote it, or a later one");
  }
  return parse_root(root);
}

Results read_results(const std::string& path) {
  cli::FileBytes file;
  file.read(path);
  const std::span<const std::uint8_t> bytes = file.bytes();
  if (bytes.size() > static_cast<std::size_t>(kMaxFileBytes)) {
    throw Error(ErrorCode::unsupported,
                cli::quote(path) + " is larger than 64 MiB; no result of chunkbench is");
  }
  return parse_results({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, path);
}

nlohmann::ordered_json to_json(const Results& results) {
  Json versions = Json::object();
  for (const auto& [name, version] : results.versions) versions[name] = version;
  Json ceilings = Json::array();
  for (const Ceiling& ceiling : results.ceilings) {
    ceilings.push_back({{"name", ceiling.name},
                        {"bytes_per_second", json_of(ceiling.bytes_per_second)},
                        {"rounds", ceiling.rounds}});
  }
  Json ladder;
  if (!results.ladder.empty()) ladder = list_of(results.ladder);
  return {{"format", "chunkbench"},
          {"version", kVersion},
          {"created", results.created},
          {"complete", results.complete},
          {"versions", std::move(versions)},
          {"machine", results.machine},
          {"dataset",
           {{"name", results.dataset.name},
            {"shape", results.dataset.shape},
            {"bytes", results.dataset.bytes},
            {"filters", results.dataset.filters},
            {"identity", results.dataset.identity},
            {"labels", results.dataset.labels}}},
          {"options", json_of(results.options)},
          {"ceilings", std::move(ceilings)},
          {"cells", list_of(results.cells)},
          {"shuffle", list_of(results.shuffle)},
          {"ladder", std::move(ladder)},
          {"time",
           {{"seconds_preparing", results.seconds_preparing},
            {"seconds_total", results.seconds_total},
            {"seconds_measured", results.seconds_measured}}}};
}

}  // namespace bench
