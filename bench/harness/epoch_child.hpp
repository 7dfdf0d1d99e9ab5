/// Epochs in a process of their own: for figures about a whole process.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace bench {

struct ChildEpoch {
  std::string path;
  std::string source = "auto";
  bool direct_io = false;
  std::int64_t threads = 2;
  std::int64_t batch_size = 256;
  /// 0: the default. -1: no more than the loader says it needs with the default.
  std::int64_t memory_budget = 0;
  /// Sample RssAnon + RssShmem while it runs, for a consumer that lets the loader allocate all it
  /// ever does.
  bool watch_memory = false;
  /// Only with `watch_memory`, else one.
  std::int64_t num_epochs = 1;
};

/// {"seconds", "images", "source", "reserved_bytes", "peak_bytes"}, measured in a child that runs
/// this program again.
/// \throws std::runtime_error with what the child complained about.
nlohmann::ordered_json run_epoch_in_child(const ChildEpoch& epoch,
                                          const std::function<bool()>& before_exec = {});

/// The child's part: `arguments` is what follows the program's name. Prints the result.
int epoch_child_main(const std::vector<std::string>& arguments);

/// First argument of a child.
inline constexpr const char* kEpochChild = "epoch-child";

}  // namespace bench
