#include "epoch_report.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <stdexcept>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

namespace trainer {
namespace {

using Json = nlohmann::ordered_json;

/// Printf, to a string.
template <class... Values>
std::string text(const char* format, Values... values) {
  char buffer[256];
  std::snprintf(buffer, sizeof buffer, format, values...);
  return buffer;
}

std::string speed_of(const EpochReport& report) {
  const std::string gpu = report.gpu_percent ? text("%.1f %%", *report.gpu_percent) : "n/a";
  return text("%.0f images/s, stalled %.1f ms (%.2f %%), GPU %s",
              static_cast<double>(report.images) / report.seconds, 1e3 * report.stall_seconds,
              100 * report.stall_share(), gpu.c_str());
}

}  // namespace

Reporter::Reporter(std::string program, const Options& options, LoaderKind loader)
    : program_(std::move(program)), options_(options), loader_(loader) {
  if (options.json.empty()) return;
  json_.open(options.json, std::ios::trunc);
  if (!json_) throw std::runtime_error("cannot write " + options.json);
}

void Reporter::epoch(const EpochReport& report) {
  std::string line =
      text("epoch %lld: %s, loss %.4f, accuracy %.2f %%", static_cast<long long>(report.epoch),
           speed_of(report).c_str(), report.training.loss, 100 * report.training.accuracy);
  if (report.held_out) {
    line += text("; held out: loss %.4f, accuracy %.2f %%", report.held_out->loss,
                 100 * report.held_out->accuracy);
  }
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
  write_json("epoch", report);

  if (report.epoch <= 1) {  // What was summed up, the first epoch, counts if there are no others.
    sum_ = {};
    gpu_seconds_ = 0;
  }
  sum_.epoch = report.epoch;
  sum_.images += report.images;
  sum_.seconds += report.seconds;
  sum_.stall_seconds += report.stall_seconds;
  if (report.gpu_percent) {
    const double so_far = gpu_seconds_ * sum_.gpu_percent.value_or(0);
    gpu_seconds_ += report.seconds;
    sum_.gpu_percent = (so_far + report.seconds * *report.gpu_percent) / gpu_seconds_;
  }
  sum_.training = report.training;
  if (report.held_out) sum_.held_out = report.held_out;
}

void Reporter::all() {
  const std::string which =
      sum_.epoch == 0 ? "epoch 0" : text("epochs 1 to %lld", static_cast<long long>(sum_.epoch));
  std::printf("%s: %s\n", which.c_str(), speed_of(sum_).c_str());
  write_json("all", sum_);
}

std::optional<std::int64_t> Reporter::echo_needed() const {
  if (loader_ != LoaderKind::device) return {};
  const double busy = std::max(1 - sum_.stall_share(), 1e-3);
  return static_cast<std::int64_t>(std::ceil(static_cast<double>(options_.echo) / busy - 0.01));
}

void Reporter::write_json(const char* kind, const EpochReport& report) {
  if (!json_.is_open()) return;
  const std::optional<std::int64_t> needed =
      std::string_view(kind) == "all" ? echo_needed() : std::nullopt;
  const Json line = {
      {"kind", kind},
      {"program", program_},
      {"loader", to_string(loader_)},
      {"order", chunkio::to_string(options_.order)},
      {"seed", options_.seed},
      {"batch", options_.batch},
      {"width", options_.width},
      {"echo", options_.echo},
      {"epochs", options_.epochs},
      {"epoch", report.epoch},
      {"images", report.images},
      {"seconds", report.seconds},
      {"images_per_second", static_cast<double>(report.images) / report.seconds},
      {"stall_ms", 1e3 * report.stall_seconds},
      {"stall_percent", 100 * report.stall_share()},
      {"gpu_percent", report.gpu_percent ? Json(*report.gpu_percent) : Json()},
      {"loss", report.training.loss},
      {"accuracy", report.training.accuracy},
      {"held_out_loss", report.held_out ? Json(report.held_out->loss) : Json()},
      {"held_out_accuracy", report.held_out ? Json(report.held_out->accuracy) : Json()},
      {"echo_needed", needed ? Json(*needed) : Json()}};
  json_ << line.dump() << std::endl;
  if (!json_) throw std::runtime_error("cannot write " + options_.json + ": is the disk full?");
}

}  // namespace trainer
