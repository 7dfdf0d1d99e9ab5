#include "harness/epoch_child.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <deque>
#include <exception>
#include <fstream>
#include <limits>
#include <optional>
#include <stdexcept>
#include <thread>
#include <utility>

#include <chunkio/option_names.hpp>

#include "harness/child_process.hpp"
#include "harness/epoch_case.hpp"

namespace bench {
namespace {

/// RssAnon + RssShmem of this process, in bytes.
std::int64_t allocated_bytes() {
  std::ifstream status("/proc/self/status");
  std::int64_t bytes = 0;
  for (std::string key; status >> key;) {
    std::int64_t kibibytes = 0;
    if ((key == "RssAnon:" || key == "RssShmem:") && status >> kibibytes) bytes += kibibytes * 1024;
    status.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  return bytes;
}

/// Epochs for the slowest of consumers: lets the loader prefetch all it may, and holds as many
/// batches as it may.
void run_holding_epochs(chunkio::Loader& loader, std::int64_t num_epochs) {
  constexpr std::chrono::milliseconds kStable{300};
  std::deque<chunkio::Batch> held;
  for (std::int64_t epoch = kEpoch; epoch < kEpoch + num_epochs; ++epoch) {
    loader.start_epoch(epoch);
    for (std::int64_t before = -1; before != allocated_bytes();) {
      before = allocated_bytes();
      std::this_thread::sleep_for(kStable);
    }
    while (std::optional<chunkio::Batch> batch = loader.next()) {
      held.push_back(*std::move(batch));
      if (held.size() == static_cast<std::size_t>(loader.options().memory.max_held))
        held.pop_front();
    }
  }
}

}  // namespace

nlohmann::ordered_json run_epoch_in_child(const nlohmann::ordered_json& asked,
                                          const std::function<bool()>& before_exec) {
  const ChildResult result = run_child({"/proc/self/exe", kEpochChild, asked.dump()}, before_exec);
  if (result.exit_code != 0) throw std::runtime_error(result.complaint());
  return nlohmann::ordered_json::parse(result.out);
}

int epoch_child_main(const std::string& asked) {
  try {
    const auto wanted = nlohmann::ordered_json::parse(asked);
    const std::int64_t num_epochs = wanted.value("watch_epochs", std::int64_t{1});
    const bool watch = wanted.contains("watch_epochs");
    chunkio::LoaderOptions options{.batch_size = wanted.at("batch_size").get<std::int64_t>(),
                                   .seed = 7,
                                   .io = {.num_threads = wanted.at("threads").get<std::int64_t>(),
                                          .source = chunkio::from_string<chunkio::SourceKind>(
                                              wanted.at("source").get<std::string>()),
                                          .direct_io = wanted.value("direct_io", false),
                                          .num_epochs = kEpoch + num_epochs}};
    const chunkio::Dataset dataset = chunkio::Dataset::open(wanted.at("path").get<std::string>());
    if (watch) options.memory.budget = chunkio::Loader(dataset, options).memory_bytes();

    std::atomic<std::int64_t> peak{0};
    std::jthread watcher;
    if (watch) {
      watcher = std::jthread([&peak](const std::stop_token& stop) {
        while (!stop.stop_requested()) {
          peak = std::max(peak.load(), allocated_bytes());
          std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
      });
    }
    chunkio::Loader loader(dataset, options);
    const double seconds =
        seconds_of([&] { watch ? run_holding_epochs(loader, num_epochs) : run_epochs(loader, 1); });
    if (watch) {
      watcher.request_stop();
      watcher.join();
      peak = std::max(peak.load(), allocated_bytes());
    }
    const nlohmann::ordered_json result = {{"seconds", seconds},
                                           {"images", loader.stats().images},
                                           {"source", chunkio::to_string(loader.source())},
                                           {"memory_budget", options.memory.budget},
                                           {"reserved_bytes", loader.memory_bytes()},
                                           {"peak_bytes", peak.load()}};
    std::printf("%s\n", result.dump().c_str());
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}

}  // namespace bench
