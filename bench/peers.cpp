// Warm page cache, the same batch size and threads, uint8 batches in host memory. Each peer is
// another process, which checks what it delivers and picks its best setting before the first round.
// A round times an epoch of chunkio before each epoch of a peer.

#include <signal.h>

#include <chrono>
#include <exception>
#include <filesystem>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "experiments.hpp"
#include "peer_process.hpp"
#include "spread.hpp"

namespace bench {
namespace {

/// Threads of a peer may spin for a while after its epoch.
constexpr std::chrono::milliseconds kSettle{300};

struct Peer {
  std::string name;
  std::string script;
  double target;
  std::unique_ptr<PeerProcess> process = {};
  std::vector<double> ratios = {};
  std::vector<double> rates = {};
  std::vector<double> our_rates = {};
};

/// Why setup.sh could not make this peer run; empty if nothing is known against it.
std::string known_reason(const Options& options, const Peer& peer) {
  if (options.peers.empty()) return "no --peers; bench/peers/setup.sh makes the environment";
  if (peer.script != "ffcv_raw.py") return {};
  std::ifstream file(std::filesystem::path(options.peers) / "ffcv-reason.txt");
  std::string reason;
  std::getline(file, reason);
  return reason;
}

}  // namespace

void measure_peers(const Case& pictures, Report& report) {
  const Options& options = pictures.options;
  const std::string size = pictures.size.name;
  const bool small = pictures.size.bytes() < 16384;
  ::signal(SIGPIPE, SIG_IGN);  // a peer that died shows in its answer

  const chunkio::Dataset dataset = chunkio::Dataset::open(pictures.path);
  chunkio::Loader loader(dataset, pictures.loader_options(chunkio::SourceKind::automatic));
  if (check_epoch(loader, pictures.pixels.bytes()) != pictures.order) {
    throw std::runtime_error("the order changed");
  }

  std::vector<Peer> peers;
  peers.push_back({"FFCV", "ffcv_raw.py", small ? 40.0 : 5.0});
  peers.push_back({"h5py + DataLoader", "h5py_dataloader.py", small ? 60.0 : 25.0});
  peers.push_back({"whole-chunk h5py reads + NumPy gather", "whole_chunks.py", 3.0});
  for (Peer& peer : peers) {
    const std::string row = "images/s / " + peer.name;
    const std::string reason = known_reason(options, peer);
    if (!reason.empty()) {
      report.add_missing(size, {{row, at_least(peer.target)}}, reason, false);
      continue;
    }
    try {
      peer.process = std::make_unique<PeerProcess>(
          std::vector<std::string>{
              options.peers + "/bin/python", options.peer_scripts + "/" + peer.script,
              pictures.path, "--batch", std::to_string(options.batch_size), "--threads",
              std::to_string(options.threads), "--dir", pictures.scratch.file("")},
          pictures.scratch.file(peer.script + ".log"));
      run_epochs(loader, 1);
      // One at a time: three peers and their caches would not fit beside each other everywhere.
      for (std::int64_t round = 0; round < options.rounds; ++round) {
        const double seconds = seconds_of([&] { run_epochs(loader, 1); });
        const PeerProcess::Epoch epoch = peer.process->run_epoch();
        if (epoch.images != pictures.num_samples) throw std::runtime_error("left out pictures");
        peer.our_rates.push_back(static_cast<double>(pictures.num_samples) / seconds);
        peer.rates.push_back(static_cast<double>(epoch.images) / epoch.seconds);
        peer.ratios.push_back(peer.our_rates.back() / peer.rates.back());
        std::this_thread::sleep_for(kSettle);
      }
      const std::string best = peer.process->about().at("best").get<std::string>();
      report.add({row, size, at_least(peer.target), peer.ratios, "its best: " + best});
      report.add({peer.name + ", images/s", size, {}, peer.rates});
      report.add({"chunkio beside " + peer.name + ", images/s", size, {}, peer.our_rates});
      report.add_detail(size, peer.script,
                        {{"about", peer.process->about()},
                         {"images_per_second", to_json(spread_of(peer.rates))},
                         {"chunkio_images_per_second", to_json(spread_of(peer.our_rates))}});
    } catch (const std::exception& error) {
      report.add_missing(size, {{row, at_least(peer.target)}}, peer.script + " " + error.what(),
                         true);
    }
    peer.process.reset();
    std::error_code ignored;
    std::filesystem::remove(pictures.path + ".beton", ignored);
  }
}

}  // namespace bench
