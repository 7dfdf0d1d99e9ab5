#include "chunkbench/results_files.hpp"

#include <array>
#include <charconv>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "cli/atomic_file.hpp"

namespace bench {
namespace {

using Clock = std::chrono::steady_clock;

/// The shortest text that reads as the same number.
std::string field(double value) {
  std::array<char, 32> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
  return {text.data(), end};
}
std::string field(std::int64_t value) { return std::to_string(value); }
/// In quotes if it has to be, as RFC 4180 says.
std::string field(std::string_view text) {
  if (text.find_first_of("\",\r\n") == std::string_view::npos) return std::string(text);
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}
std::string field(const std::optional<double>& value) { return value ? field(*value) : ""; }

std::string fields(const std::optional<Sampled>& sampled) {
  if (!sampled) return ",,";
  return field(sampled->spread.median) + "," + field(sampled->spread.lowest) + "," +
         field(sampled->spread.highest);
}
std::string fields(const Predicted& values) {
  return field(values.predicted) + "," + field(values.measured);
}

void replace_file(const std::string& path, const std::string& text) {
  cli::write_atomic_file(path, {reinterpret_cast<const unsigned char*>(text.data()), text.size()},
                         true);
}

}  // namespace

std::string to_csv(const Results& results) {
  std::string csv =
      "chunk_bytes,chunk_samples,cache_bytes,order,source,threads,status,reason,rounds,"
      "images_per_second_median,images_per_second_min,images_per_second_max,"
      "bytes_per_second_median,bytes_per_second_min,bytes_per_second_max,"
      "hit_rate_predicted,hit_rate_measured,read_amplification_predicted,"
      "read_amplification_measured,chunk_loads_predicted,chunk_loads_measured,"
      "plan_seconds,read_seconds,decode_seconds,copy_seconds,input_wait_seconds,"
      "output_wait_seconds\n";
  for (const Cell& cell : results.cells) {
    csv += field(cell.chunk_bytes) + "," + field(cell.chunk_samples) + "," +
           field(cell.cache_bytes) + "," + field(cell.order) + "," + field(cell.source) + "," +
           field(cell.threads) + "," + field(to_string(cell.status)) + "," + field(cell.reason) +
           "," + std::to_string(cell.rounds.size()) + "," + fields(cell.images_per_second) + "," +
           fields(cell.bytes_per_second) + "," + fields(cell.hit_rate) + "," +
           fields(cell.read_amplification) + "," + fields(cell.chunk_loads) + ",";
    csv += cell.stages ? field(cell.stages->plan) + "," + field(cell.stages->read) + "," +
                             field(cell.stages->decode) + "," + field(cell.stages->copy) + "," +
                             field(cell.stages->input_wait) + "," + field(cell.stages->output_wait)
                       : ",,,,,";
    csv += "\n";
  }
  return csv;
}

bool is_same_file(const std::string& a, const std::string& b) {
  namespace fs = std::filesystem;
  std::error_code unknown;
  if (fs::equivalent(a, b, unknown)) return true;
  // What is not there yet, by its name.
  const fs::path first = fs::weakly_canonical(fs::absolute(a, unknown), unknown);
  return !first.empty() && first == fs::weakly_canonical(fs::absolute(b, unknown), unknown);
}

ResultsFiles::ResultsFiles(std::string json, std::string csv)
    : json_(std::move(json)), csv_(std::move(csv)), begin_(Clock::now()) {}

void ResultsFiles::save(const Results& results) {
  const Clock::time_point start = Clock::now();
  replace_file(json_, to_json(results).dump(1) + "\n");
  if (!csv_.empty()) save_csv(results, csv_);
  seconds_ += std::chrono::duration<double>(Clock::now() - start).count();
}

void ResultsFiles::save_csv(const Results& results, const std::string& path) {
  replace_file(path, to_csv(results));
}

void ResultsFiles::save_if_cheap(const Results& results) {
  const double so_far = std::chrono::duration<double>(Clock::now() - begin_).count();
  if (seconds_ <= so_far / 100) save(results);
}

}  // namespace bench
