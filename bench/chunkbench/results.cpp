#include "chunkbench/results.hpp"

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <set>
#include <span>
#include <tuple>
#include <type_traits>

#include <chunkio/error.hpp>

#include "cli/disk_options.hpp"
#include "cli/file_bytes.hpp"
#include "cli/quote.hpp"
#include "cli/text_layout.hpp"

namespace bench {
namespace {

using chunkio::Error;
using chunkio::ErrorCode;
using Json = nlohmann::ordered_json;

constexpr std::int64_t kMaxFileBytes = std::int64_t{64} << 20;
constexpr std::int64_t kVersion = 1;
// Bounds of what is believed, far above what a sweep makes. Whole numbers stay exact as doubles.
constexpr double kMaxWhole = 0x1p53;
constexpr std::size_t kMaxItems = 10'000;
constexpr std::size_t kMaxTextBytes = 2'000;

using Names = std::span<const std::string_view>;
constexpr std::array<std::string_view, 6> kStatusNames = {"pending", "measuring", "measured",
                                                          "pruned",  "failed",    "skipped"};

/// Of a number, or of those of a list.
struct Bounds {
  double lowest = 0;
  double highest = 1e30;
};
constexpr Bounds kFromOne = {.lowest = 1};

// The members of each structure and their names in the file. `io` reads or writes them: field() is
// a member that has to be there, optional() one that may be absent or null.

template <class T, class Of>
concept AnyOf = std::same_as<std::remove_const_t<T>, Of>;

void fields(auto& io, AnyOf<Sampled> auto& sampled) {
  io.field("median", sampled.spread.median);
  io.field("min", sampled.spread.lowest);
  io.field("max", sampled.spread.highest);
  io.field("n", sampled.count, kFromOne);
}

void fields(auto& io, AnyOf<Predicted> auto& values) {
  io.optional("predicted", values.predicted);
  io.optional("measured", values.measured);
}

void fields(auto& io, AnyOf<Round> auto& round) {
  io.field("images", round.images);
  io.field("seconds", round.seconds);
  io.field("stall_seconds", round.stall_seconds);
  io.field("bytes_read", round.bytes_read);
  io.field("chunk_loads", round.chunk_loads);
}

void fields(auto& io, AnyOf<StageSeconds> auto& stages) {
  io.field("plan", stages.plan);
  io.field("read", stages.read);
  io.field("decode", stages.decode);
  io.field("copy", stages.copy);
  io.field("input_wait", stages.input_wait);
  io.field("output_wait", stages.output_wait);
}

void fields(auto& io, AnyOf<Cell> auto& cell) {
  io.field("chunk_bytes", cell.chunk_bytes, kFromOne);
  io.field("chunk_samples", cell.chunk_samples, kFromOne);
  io.field("cache_bytes", cell.cache_bytes);
  io.name("order", cell.order, kOrders);
  io.name("source", cell.source, kSources);
  io.field("threads", cell.threads, {.lowest = 1, .highest = 65'536});
  io.name("status", cell.status, kStatusNames);
  io.optional("reason", cell.reason);
  io.optional("rounds", cell.rounds);
  io.optional("images_per_second", cell.images_per_second);
  io.optional("bytes_per_second", cell.bytes_per_second);
  io.optional("hit_rate", cell.hit_rate);
  io.optional("read_amplification", cell.read_amplification);
  io.optional("chunk_loads", cell.chunk_loads);
  io.optional("stages", cell.stages);
}

void fields(auto& io, AnyOf<Ceiling> auto& ceiling) {
  io.field("name", ceiling.name);
  io.field("bytes_per_second", ceiling.bytes_per_second);
  io.optional("rounds", ceiling.rounds);
}

void fields(auto& io, AnyOf<ShufflePoint> auto& point) {
  io.name("order", point.order, kOrders);
  io.field("chunk_bytes", point.chunk_bytes, kFromOne);
  io.field("window_bytes", point.window_bytes, kFromOne);
  io.optional("label_entropy", point.label_entropy);
  io.optional("same_chunk_pairs", point.same_chunk_pairs);
  io.optional("chosen", point.chosen);
}

void fields(auto& io, AnyOf<MeasuredVariant> auto& variant) {
  io.field("variant", variant.name);
  io.field("images_per_second", variant.images_per_second);
  io.field("stall", variant.stall, {.highest = 1});
  io.optional("read_amplification", variant.read_amplification);
}

void fields(auto& io, AnyOf<ShapedDisk> auto& disk) {
  io.field("profile", disk.profile);
  io.optional("bytes_per_second", disk.bytes_per_second);
  io.optional("request_seconds", disk.request_seconds);
  io.optional("queue_depth", disk.queue_depth, kFromOne);
}

void fields(auto& io, AnyOf<SweepDataset> auto& dataset) {
  io.field("name", dataset.name);
  io.field("shape", dataset.shape, kFromOne);
  io.field("bytes", dataset.bytes);
  io.optional("filters", dataset.filters);
  io.optional("identity", dataset.identity);
  io.optional("labels", dataset.labels);
}

void fields(auto& io, AnyOf<SweepSettings> auto& options) {
  io.field("rounds", options.rounds, kFromOne);
  io.field("cold", options.cold);
  io.field("batch_size", options.batch_size, kFromOne);
  io.field("seed", options.seed);
  io.optional("images_per_trial", options.images_per_trial);
  io.optional("random_images", options.random_images);
  io.optional("trial_seconds", options.trial_seconds);
  io.optional("limit", options.limit);
  io.optional("memory_limit", options.memory_limit);
  io.optional("throttled_device", options.throttled_device);
  io.optional("notes", options.notes);
}

void fields(auto& io, AnyOf<SweepTime> auto& time) {
  io.optional("seconds_preparing", time.seconds_preparing);
  io.field("seconds_total", time.seconds_total);
  io.field("seconds_measured", time.seconds_measured);
}

void fields(auto& io, AnyOf<Results> auto& results) {
  io.field("created", results.created);
  io.field("complete", results.complete);
  io.field("versions", results.versions);
  io.field("machine", results.machine);
  io.field("dataset", results.dataset);
  io.field("options", results.options);
  io.optional("ceilings", results.ceilings);
  io.field("cells", results.cells);
  io.optional("shuffle", results.shuffle);
  io.optional("ladder", results.ladder);
  io.optional("time", results.time);
}

// What is wrong with a structure whose members are each all right; empty: nothing.

std::string complaint(const Sampled& sampled) {
  const Spread& spread = sampled.spread;
  return spread.lowest > spread.median || spread.median > spread.highest
             ? "has a median outside of its range"
             : "";
}

std::string complaint(const Round& round) { return round.seconds > 0 ? "" : "takes no time"; }

std::string complaint(const Cell& cell) {
  if (cell.hit_rate.measured > 1 || cell.hit_rate.predicted > 1) return "has a hit rate above 1";
  const bool done = cell.status == CellStatus::measured || cell.status == CellStatus::pruned;
  return done && !cell.images_per_second
             ? "is " + std::string(to_string(cell.status)) + " without images_per_second"
             : "";
}

std::string complaint(const Results& results) {
  std::set<std::tuple<std::int64_t, std::int64_t, std::int64_t, std::string_view, std::string_view,
                      std::int64_t>>
      seen;
  for (std::size_t i = 0; i < results.cells.size(); ++i) {
    const Cell& cell = results.cells[i];
    if (!seen.emplace(cell.chunk_bytes, cell.chunk_samples, cell.cache_bytes, cell.order,
                      cell.source, cell.threads)
             .second) {
      return "has two cells with the same settings, the second of which is cells[" +
             std::to_string(i) + "]";
    }
  }
  return "";
}

[[noreturn]] void fail(const std::string& file, const std::string& what) {
  throw Error(ErrorCode::corrupt_data, cli::quote(file) +
                                           " is damaged or no result of chunkbench: " + what +
                                           "; pass what 'chunkbench sweep --output' wrote");
}

/// A value of an untrusted file and the way to it, so that a check can say where it failed.
class Reader {
 public:
  /// Everything must outlive the reader.
  Reader(const Json& json, std::string path, const std::string& file)
      : json_(json), path_(std::move(path)), file_(file) {}

  template <class T>
  void field(const char* key, T& value, Bounds bounds = {}) const {
    member(key).read(value, bounds);
  }
  template <class T>
  void optional(const char* key, T& value, Bounds bounds = {}) const {
    const auto found = json_.find(key);
    if (found != json_.end() && !found->is_null()) field(key, value, bounds);
  }
  /// A text, or the index of one.
  template <class T>
  void name(const char* key, T& value, Names names) const {
    std::string text;
    field(key, text);
    const auto found = std::find(names.begin(), names.end(), text);
    if (found == names.end()) {
      member(key).problem("is none of " + cli::joined(names, ", "));
    }
    if constexpr (std::is_enum_v<T>) {
      value = static_cast<T>(found - names.begin());
    } else {
      value = text;
    }
  }

  void read(double& value, Bounds bounds) const {
    value = json_.is_number() ? json_.get<double>() : -1;
    if (!(value >= bounds.lowest && value <= bounds.highest)) {
      problem("is no number from " + Json(bounds.lowest).dump() + " to " +
              Json(bounds.highest).dump());
    }
  }
  void read(std::int64_t& value, Bounds bounds) const {
    // 4.0 is whole, too: other writers of JSON know one kind of number.
    double number = 0;
    read(number, {bounds.lowest, std::min(bounds.highest, kMaxWhole)});
    if (number != std::floor(number)) problem("is no whole number");
    value = static_cast<std::int64_t>(number);
  }
  void read(std::uint64_t& value, Bounds /*bounds*/) const {
    if (!json_.is_number_unsigned()) problem("is no whole number of at most 64 bits");
    value = json_.get<std::uint64_t>();
  }
  void read(bool& value, Bounds /*bounds*/) const {
    if (!json_.is_boolean()) problem("is neither true nor false");
    value = json_.get<bool>();
  }
  void read(std::string& value, Bounds /*bounds*/) const {
    if (!json_.is_string()) problem("is no text");
    value = json_.get<std::string>();
    if (value.size() > kMaxTextBytes) {
      problem("is longer than " + std::to_string(kMaxTextBytes) + " bytes");
    }
  }
  template <class T>
  void read(std::optional<T>& value, Bounds bounds) const {
    read(value.emplace(), bounds);
  }
  template <class T>
  void read(std::vector<T>& values, Bounds bounds) const {
    if (!json_.is_array()) problem("is no list");
    if (json_.size() > kMaxItems)
      problem("has more than " + std::to_string(kMaxItems) + " entries");
    values.resize(json_.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
      Reader(json_[i], path_ + "[" + std::to_string(i) + "]", file_).read(values[i], bounds);
    }
  }
  void read(Json& facts, Bounds /*bounds*/) const {
    check_object();
    const auto is_scalar = [](const Json& value) { return !value.is_structured(); };
    for (const auto& [key, value] : json_.items()) {
      const bool flat = is_scalar(value) ||
                        (value.is_array() && std::all_of(value.begin(), value.end(), is_scalar));
      if (!flat || key.size() > kMaxTextBytes) {
        problem("has a member that is neither a value nor a list of values");
      }
    }
    facts = json_;
  }
  template <class T>
  void read(T& structure, Bounds /*bounds*/) const {
    check_object();
    fields(*this, structure);
    if constexpr (requires { complaint(structure); }) {
      if (const std::string what = complaint(structure); !what.empty()) problem(what);
    }
  }

 private:
  [[nodiscard]] std::string path_of(const char* key) const {
    return path_.empty() ? key : path_ + "." + key;
  }
  [[nodiscard]] Reader member(const char* key) const {
    const auto found = json_.find(key);
    if (found == json_.end()) fail(file_, cli::escape(path_of(key)) + " is missing");
    return {*found, path_of(key), file_};
  }
  void check_object() const {
    if (!json_.is_object()) problem("is no object");
  }
  [[noreturn]] void problem(const std::string& what) const {
    fail(file_, (path_.empty() ? "its outermost value" : cli::escape(path_)) + " " + what);
  }

  const Json& json_;
  std::string path_;
  const std::string& file_;
};

class Writer {
 public:
  explicit Writer(Json json = Json::object()) : json_(std::move(json)) {}

  template <class T>
  void field(const char* key, const T& value, Bounds /*bounds*/ = {}) {
    json_[key] = json_of(value);
  }
  template <class T>
  void optional(const char* key, const T& value, Bounds /*bounds*/ = {}) {
    field(key, value);
  }
  template <class T>
  void name(const char* key, const T& value, Names names) {
    if constexpr (std::is_enum_v<T>) {
      json_[key] = names[static_cast<std::size_t>(value)];
    } else {
      json_[key] = value;
    }
  }
  [[nodiscard]] Json json() && { return std::move(json_); }

 private:
  template <class T>
  static Json json_of(const T& value) {
    if constexpr (requires(Writer & writer) { fields(writer, value); }) {
      Writer writer;
      fields(writer, value);
      return std::move(writer).json();
    } else {
      return value;
    }
  }
  template <class T>
  static Json json_of(const std::optional<T>& value) {
    return value ? json_of(*value) : Json();
  }
  template <class T>
  static Json json_of(const std::vector<T>& values) {
    Json list = Json::array();
    for (const T& value : values) list.push_back(json_of(value));
    return list;
  }
  /// Null, not a list, for a sweep.
  static Json json_of(const std::vector<MeasuredVariant>& ladder) {
    return ladder.empty() ? Json() : json_of<MeasuredVariant>(ladder);
  }

  Json json_;
};

}  // namespace

std::string_view to_string(CellStatus status) {
  return kStatusNames[static_cast<std::size_t>(status)];
}

Results parse_results(std::string_view text, const std::string& name) {
  Json json;
  try {
    json = Json::parse(text);
  } catch (const Json::parse_error& error) {
    fail(name, "it is no JSON, or was cut off, at byte " + std::to_string(error.byte) + " of " +
                   std::to_string(text.size()));
  } catch (const Json::exception&) {
    fail(name, "it has a number that is too large");
  }
  Results results;
  const Reader root(json, "", name);
  if (json.is_object() && json.value("format", Json()) != "chunkbench") {
    fail(name,
         std::string("its format is ") + (json.contains("format") ? "something else" : "missing"));
  }
  std::int64_t version = 0;
  if (json.is_object()) root.field("version", version, kFromOne);
  if (version > kVersion) {
    throw Error(ErrorCode::unsupported,
                cli::quote(name) + " has version " + std::to_string(version) +
                    " of the format, and this program knows " + std::to_string(kVersion) +
                    "; use the chunkbench that wrote it, or a later one");
  }
  root.read(results, {});
  return results;
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

std::optional<ShapedDisk> shaped(const std::optional<chunkio::DiskLimit>& limit) {
  if (!limit) return std::nullopt;
  ShapedDisk disk = {.profile = cli::disk_json(limit).at("profile").get<std::string>()};
  if (limit->bytes_per_second > 0) disk.bytes_per_second = limit->bytes_per_second;
  if (limit->request_seconds > 0) disk.request_seconds = limit->request_seconds;
  if (limit->queue_depth > 0) disk.queue_depth = limit->queue_depth;
  return disk;
}

nlohmann::ordered_json to_json(const Results& results) {
  Writer writer({{"format", "chunkbench"}, {"version", kVersion}});
  fields(writer, results);
  return std::move(writer).json();
}

}  // namespace bench
