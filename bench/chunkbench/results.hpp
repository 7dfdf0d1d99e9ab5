/// What `chunkbench sweep` found, and the JSON file that keeps it.
///
/// Data flow: the sweep fills a Results and writes it after every trial; --continue and the report
/// read it again. The file is untrusted input: everything is checked here, so that readers of a
/// Results need not.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include <chunkio/disk_limit.hpp>

#include "harness/spread.hpp"

namespace bench {

/// Of Cell::order and Cell::source.
inline constexpr std::array<std::string_view, 3> kOrders = {"chunk_shuffled", "random",
                                                            "sequential"};
inline constexpr std::array<std::string_view, 5> kSources = {"mapped", "scatter", "direct", "hdf5",
                                                             "h5dread"};

/// Median and range of `count` measurements.
struct Sampled {
  Spread spread = {};
  std::int64_t count = 0;
};

/// What the model says and what was counted; absent where nothing says so.
struct Predicted {
  std::optional<double> predicted = {};
  std::optional<double> measured = {};
};

enum class CellStatus {
  pending,    ///< Not begun.
  measuring,  ///< Some of its rounds are done.
  measured,
  pruned,  ///< Stopped before its last round: its rank is certain.
  failed,
  skipped,
};
[[nodiscard]] std::string_view to_string(CellStatus status);

/// One trial of a cell.
struct Round {
  std::int64_t images = 0;
  double seconds = 0;
  double stall_seconds = 0;  ///< That the consumer waited.
  std::int64_t bytes_read = 0;
  std::int64_t chunk_loads = 0;
};

/// Seconds that all workers together spent so; of the median trial.
struct StageSeconds {
  double plan = 0, read = 0, decode = 0, copy = 0, input_wait = 0, output_wait = 0;
};

/// One combination of what the sweep varies, and what came out. The first six say which.
struct Cell {
  std::int64_t chunk_bytes = 0;
  std::int64_t chunk_samples = 0;
  std::int64_t cache_bytes = 0;  ///< rdcc_nbytes of source `h5dread`, window_bytes of the others.
  std::string order = {};        ///< chunk_shuffled, random or sequential.
  std::string source = {};       ///< mapped, scatter, direct, hdf5 or h5dread.
  std::int64_t threads = 1;

  CellStatus status = CellStatus::pending;
  std::string reason = {};  ///< One clause for failed, skipped and pruned.
  std::vector<Round> rounds = {};
  std::optional<Sampled> images_per_second = {};  ///< Always of measured and pruned cells.
  std::optional<Sampled> bytes_per_second = {};   ///< Bytes read from the file.
  Predicted hit_rate = {};                        ///< 0 to 1.
  Predicted read_amplification = {};
  Predicted chunk_loads = {};
  std::optional<StageSeconds> stages = {};
};

/// What the machine can do at best, measured in the same run.
struct Ceiling {
  std::string name = {};
  Sampled bytes_per_second = {};
  std::vector<double> rounds = {};  ///< Each measurement, so that another run can go on.
};

/// How well one window mixes.
struct ShufflePoint {
  std::string order = {};
  std::int64_t chunk_bytes = 0;
  std::int64_t window_bytes = 0;
  /// Mean label entropy of the batches / that of a global shuffle; absent without labels.
  std::optional<double> label_entropy = {};
  /// Probability that two samples of a batch come from the same chunk / that of a global shuffle.
  std::optional<double> same_chunk_pairs = {};
  bool chosen = false;  ///< The sweep's choice.
};

/// One way of loading the same images, of a ladder from the naive one to the best.
struct MeasuredVariant {
  std::string name = {};
  Sampled images_per_second = {};
  double stall = 0;  ///< Share of the time, 0 to 1.
  std::optional<double> read_amplification = {};
};

/// A disk that was made slower on purpose.
struct ShapedDisk {
  std::string profile = {};  ///< "hdd", ..., or "custom".
  std::optional<double> bytes_per_second = {};
  std::optional<double> request_seconds = {};
  std::optional<std::int64_t> queue_depth = {};
};

struct SweepDataset {
  std::string name = {};                 ///< File name without folder, or "synthetic".
  std::vector<std::int64_t> shape = {};  ///< [N,H,W,C].
  std::int64_t bytes = 0;
  std::vector<std::string> filters = {};
  std::string identity = {};  ///< What tells the images from others; may be empty.
  std::string labels = {};    ///< In words; empty: none.
};

struct SweepSettings {
  std::int64_t rounds = 0;
  bool cold = false;
  std::int64_t batch_size = 0;
  std::uint64_t seed = 0;
  std::optional<std::int64_t> images_per_trial = {};
  std::optional<std::int64_t> random_images = {};  ///< The same in random order.
  std::optional<double> trial_seconds = {};        ///< Timed in a trial at least.
  std::optional<ShapedDisk> limit = {};
  std::optional<std::int64_t> memory_limit = {};     ///< Bytes.
  std::optional<std::string> throttled_device = {};  ///< What was set.
  std::vector<std::string> notes = {};  ///< What could not be done, and what was done instead.
};

struct SweepTime {
  double seconds_preparing = 0;  ///< Making the files that are measured.
  double seconds_total = 0;      ///< Everything else.
  double seconds_measured = 0;   ///< Of these, inside the rounds of cells.
};

struct Results {
  std::string created = {};  ///< UTC, "2026-11-22T10:00:00Z".
  bool complete = false;
  // Objects of texts, numbers, and lists of them.
  nlohmann::ordered_json versions = nlohmann::ordered_json::object();
  nlohmann::ordered_json machine = nlohmann::ordered_json::object();
  SweepDataset dataset = {};
  SweepSettings options = {};
  std::vector<Ceiling> ceilings = {};
  std::vector<Cell> cells = {};  ///< No two with the same first six members.
  std::vector<ShufflePoint> shuffle = {};
  std::vector<MeasuredVariant> ladder = {};
  SweepTime time = {};
};

/// \param name  of the file, for the error.
/// \throws chunkio::Error corrupt_data (no JSON, no results, or a value that cannot be: names the
///         value), unsupported (of a later version).
[[nodiscard]] Results parse_results(std::string_view text, const std::string& name);

/// Blocks on I/O. \throws chunkio::Error as parse_results; not_found, io_failed, unsupported (a
/// folder, a device, or above 64 MiB).
[[nodiscard]] Results read_results(const std::string& path);

/// In a DiskLimit 0 stands for no limit, which is absent in the results.
[[nodiscard]] std::optional<ShapedDisk> shaped(const std::optional<chunkio::DiskLimit>& limit);

/// Version 1 of the format.
[[nodiscard]] nlohmann::ordered_json to_json(const Results& results);

}  // namespace bench
