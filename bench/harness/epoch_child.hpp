/// Epochs in a process of their own: for figures about a whole process.
#pragma once

#include <functional>
#include <string>

#include <nlohmann/json.hpp>

namespace bench {

/// \param asked  {"path", "source", "direct_io", "threads", "batch_size"}. With "watch_epochs": so
///        many epochs for a consumer that lets the loader allocate all it ever does, with no larger
///        memory budget than the loader says it needs, while RssAnon + RssShmem are sampled.
/// \returns {"seconds", "images", "source", "memory_budget", "reserved_bytes", "peak_bytes"},
///          measured in a child that runs this program again.
/// \throws std::runtime_error with what the child complained about.
nlohmann::ordered_json run_epoch_in_child(const nlohmann::ordered_json& asked,
                                          const std::function<bool()>& before_exec = {});

/// The child's part: `asked` as text. Prints the result.
int epoch_child_main(const std::string& asked);

/// First argument of a child.
inline constexpr const char* kEpochChild = "epoch-child";

}  // namespace bench
