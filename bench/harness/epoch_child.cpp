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

#include "harness/child_process.hpp"
#include "harness/epoch_case.hpp"

namespace bench {
namespace {

chunkio::SourceKind parse_source(const std::string& name) {
  for (const chunkio::SourceKind kind : {chunkio::SourceKind::mapped, chunkio::SourceKind::scatter,
                                         chunkio::SourceKind::direct, chunkio::SourceKind::hdf5}) {
    if (chunkio::to_string(kind) == name) return kind;
  }
  return chunkio::SourceKind::automatic;
}

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
      if (held.size() == static_cast<std::size_t>(loader.options().max_held)) held.pop_front();
    }
  }
}

}  // namespace

nlohmann::ordered_json run_epoch_in_child(const ChildEpoch& epoch,
                                          const std::function<bool()>& before_exec) {
  const ChildResult result =
      run_child({"/proc/self/exe", kEpochChild, epoch.path, epoch.source,
                 epoch.direct_io ? "1" : "0", std::to_string(epoch.threads),
                 std::to_string(epoch.batch_size), std::to_string(epoch.memory_budget),
                 epoch.watch_memory ? "1" : "0", std::to_string(epoch.num_epochs)},
                before_exec);
  if (result.exit_code != 0) throw std::runtime_error(result.complaint());
  return nlohmann::ordered_json::parse(result.out);
}

int epoch_child_main(const std::vector<std::string>& arguments) {
  try {
    const std::string& path = arguments.at(0);
    chunkio::LoaderOptions options{.batch_size = std::stoll(arguments.at(4)),
                                   .seed = 7,
                                   .num_threads = std::stoll(arguments.at(3)),
                                   .source = parse_source(arguments.at(1)),
                                   .direct_io = arguments.at(2) == "1"};
    const std::int64_t budget = std::stoll(arguments.at(5));
    const bool watch = arguments.at(6) == "1";
    const std::int64_t num_epochs = std::stoll(arguments.at(7));
    options.num_epochs = kEpoch + num_epochs;
    const chunkio::Dataset dataset = chunkio::Dataset::open(path);
    if (budget > 0) options.memory_budget = budget;
    if (budget < 0) options.memory_budget = chunkio::Loader(dataset, options).memory_bytes();

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
                                           {"memory_budget", options.memory_budget},
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
