// Warm page cache, the same batch size and threads, batches in host memory. Each peer is another
// process, which checks what it delivers and picks its best setting before the first round. A round
// times an epoch of chunkio before each epoch of a peer: of the C++ loader, or of chunkio in
// Python, which then is such a process, too.

#include <chrono>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "figures/reading_suite.hpp"
#include "harness/peer_process.hpp"
#include "harness/spread.hpp"

namespace bench {
namespace {

/// Threads of a peer may spin for a while after its epoch.
constexpr std::chrono::milliseconds kSettle{300};

const std::vector<Peer> kPythonPeers = {
    {"FFCV", "ffcv_raw.py", "ffcv"},
    {"MosaicML Streaming", "mosaicml_streaming.py", "streaming"},
    {"LitData", "litdata_chunks.py", "litdata"},
    {"WebDataset", "webdataset_tar.py", "webdataset"},
    {"Grain", "grain_arrayrecord.py", "grain"},
    {"h5py + DataLoader", "h5py_dataloader.py", ""},
};
const std::vector<Peer> kNormalizingPeers = {
    {"FFCV, float32", "ffcv_normalized.py", "ffcv"},
    {"h5py + DataLoader + torchvision, float32", "torchvision_normalized.py", ""},
};

/// A peer at work, and the copies that it makes of its data.
struct RunningPeer {
  RunningPeer(const Case& run_images, const Peer& peer)
      : images(run_images),
        folder(images.scratch.path()),
        process(peer, {.environment = images.options.peers,
                       .data = images.path,
                       .batch_size = images.options.batch_size,
                       .threads = images.options.threads,
                       .folder = folder.path().string()}) {}

  double epoch_seconds() {
    const PeerProcess::Epoch epoch = process.run_epoch();
    if (epoch.images != images.num_samples) throw std::runtime_error("left out images");
    return epoch.seconds;
  }

  const Case& images;
  ScratchFolder folder;
  PeerProcess process;
};

/// Interleaves each peer with epochs of chunkio, which `our_seconds` runs and times. `ours` is its
/// name in the table.
void compare(const Case& images, Report& report, const std::string& ours,
             const std::function<double()>& our_seconds, const std::vector<Peer>& peers) {
  const std::string size = images.size.name;
  const auto num_samples = static_cast<double>(images.num_samples);
  for (const Peer& peer : peers) {
    try_peer(peer, images.options.peers, {"images/s / " + peer.name, size}, report, [&] {
      // One at a time: all peers and their caches would not fit beside each other everywhere.
      RunningPeer running(images, peer);
      std::vector<double> our_rates;
      std::vector<double> rates;
      our_seconds();
      for (std::int64_t round = 0; round < images.options.rounds; ++round) {
        our_rates.push_back(num_samples / our_seconds());
        rates.push_back(num_samples / running.epoch_seconds());
        std::this_thread::sleep_for(kSettle);
      }
      const nlohmann::ordered_json& about = running.process.about();
      report.add({ours + "images/s / " + peer.name, size, ratios(our_rates, rates), peer.target,
                  "its best: " + about.at("best").get<std::string>()});
      report.add({peer.name + ", images/s", size, rates});
      report.add({ours + "chunkio beside " + peer.name + ", images/s", size, our_rates});
      report.add_detail(size, ours + peer.script,
                        {{"about", about},
                         {"images_per_second", to_json(spread_of(rates))},
                         {"chunkio_images_per_second", to_json(spread_of(our_rates))}});
    });
  }
}

/// The same where chunkio, too, is a process of Python.
void compare_in_python(const Case& images, Report& report, const Peer& chunkio,
                       const std::vector<Peer>& peers) {
  try_peer(
      chunkio, images.options.peers, {"images/s / " + chunkio.name, images.size.name}, report, [&] {
        RunningPeer running(images, chunkio);
        report.add_detail(images.size.name, chunkio.script, {{"about", running.process.about()}});
        compare(
            images, report, "from Python, ", [&] { return running.epoch_seconds(); }, peers);
      });
}

}  // namespace

void measure_peers(const Case& images, Report& report) {
  const bool small = images.size.bytes() < 16384;
  const chunkio::Dataset dataset = chunkio::Dataset::open(images.path);
  chunkio::Loader loader(dataset, images.loader_options(chunkio::SourceKind::automatic));
  if (check_epoch(loader, images.pixels.bytes()) != images.order) {
    throw std::runtime_error("the order changed");
  }
  compare(images, report, "", [&] { return seconds_of([&] { run_epochs(loader, 1); }); },
          {{"FFCV", "ffcv_raw.py", "ffcv", at_least(small ? 40.0 : 5.0)},
           {"h5py + DataLoader", "h5py_dataloader.py", "", at_least(small ? 60.0 : 25.0)},
           {"whole-chunk h5py reads + NumPy gather", "h5py_whole_chunks.py", "", at_least(3.0)}});
}

void measure_python(const Case& images, Report& report) {
  compare_in_python(images, report, {"chunkio", "chunkio_loader.py", "chunkio"}, kPythonPeers);
  compare_in_python(images, report, {"chunkio, float32", "chunkio_normalized.py", "chunkio"},
                    kNormalizingPeers);
}

}  // namespace bench
