/// A peer of bench/peers, kept alive between rounds so that its start-up is not timed.
#pragma once

#include <sys/types.h>

#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "harness/figure.hpp"

namespace bench {

/// A script of bench/peers.
struct Peer {
  std::string name;
  std::string script;
  std::string module;  ///< What setup.sh installs for it; empty: nothing that could be missing.
  std::optional<Target> target = {};
};

/// What a peer works on.
struct PeerTask {
  std::string environment;                      ///< What setup.sh made.
  std::string data;                             ///< A file, or a folder of files.
  std::optional<std::int64_t> batch_size = {};  ///< Absent: it makes no batches.
  std::int64_t threads = 1;
  std::string folder;  ///< Where it, and its log, may be put.
};

/// The path of a script of bench/peers.
[[nodiscard]] std::string peer_script(const std::string& name);

class PeerProcess {
 public:
  /// Starts it and waits until it has checked what it delivers. From then on this process takes no
  /// notice of SIGPIPE: a peer that died shows in its answer.
  /// \throws std::runtime_error with the last line of what it wrote to `log`.
  PeerProcess(const std::vector<std::string>& arguments, std::string log);
  /// The same with a script. \throws as above.
  PeerProcess(const Peer& peer, const PeerTask& task);
  PeerProcess(const PeerProcess&) = delete;
  PeerProcess& operator=(const PeerProcess&) = delete;
  /// Ends it, and what it has started.
  ~PeerProcess();

  /// What it said about itself: versions, settings, what it tried.
  [[nodiscard]] const nlohmann::ordered_json& about() const noexcept { return about_; }
  /// Seconds of an epoch, and how many images it delivered.
  struct Epoch {
    double seconds = 0;
    std::int64_t images = 0;
  };
  Epoch run_epoch();

 private:
  struct CloseFile {
    void operator()(std::FILE* file) const noexcept { std::fclose(file); }
  };
  nlohmann::ordered_json read_line();

  std::string log_;
  pid_t child_ = -1;
  std::unique_ptr<std::FILE, CloseFile> requests_;
  std::unique_ptr<std::FILE, CloseFile> answers_;
  nlohmann::ordered_json about_;
};

/// Calls `measure`, unless bench/peers/setup.sh could not make the peer run. What keeps it from
/// that, or what `measure` throws, becomes the note of `row`, which is then added.
/// \param environment  what setup.sh made; empty: none.
void try_peer(const Peer& peer, const std::string& environment, Figure row, Report& report,
              const std::function<void()>& measure);

}  // namespace bench
