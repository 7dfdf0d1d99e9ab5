// h5pack folder, the whole command, against FFCV's DatasetWriter and an h5py script on the same
// JPEG files, in the page cache. Each peer is another process, which checks what it writes and
// picks its best setting before the first round. h5pack brings its file to disk and reads it back;
// the peers do neither. So there is a second ratio, in which what the peer left in the page cache
// is brought to disk, too.

#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/stopwatch.hpp"
#include "figures/packing_case.hpp"
#include "harness/peer_process.hpp"

namespace bench {
namespace {

void compare(PackingCase& packing, Report& report, const Peer& peer, const JpegFolder& images) {
  const PackingOptions& options = packing.options;
  const std::string size = images.size.name;
  const std::string output = packing.scratch.file("peer.h5");
  PeerProcess process(peer, {.environment = options.peers,
                             .data = images.path,
                             .threads = options.threads,
                             .folder = packing.scratch.path().string()});
  std::vector<double> ratios;
  std::vector<double> on_disk;
  std::vector<double> rates;
  std::vector<double> our_rates;
  for (std::int64_t round = 0; round < options.rounds; ++round) {
    const PackRun run = packing.pack_folder(images, output);
    settle(packing.scratch.file(""));
    const PeerProcess::Epoch epoch = process.run_epoch();
    if (epoch.images != images.count()) throw std::runtime_error("left out images");
    chunkio::base::Stopwatch watch;
    settle(packing.scratch.file(""));
    const double settle_seconds = watch.lap();
    our_rates.push_back(static_cast<double>(images.count()) / run.seconds);
    rates.push_back(static_cast<double>(epoch.images) / epoch.seconds);
    ratios.push_back(our_rates.back() / rates.back());
    on_disk.push_back((epoch.seconds + settle_seconds) / run.seconds);
  }
  std::filesystem::remove(output);
  const std::string best = process.about().at("best").get<std::string>();
  report.add(
      {"h5pack folder, images/s / " + peer.name, size, ratios, peer.target, "its best: " + best});
  report.add({"the same, " + peer.name + " and sync", size, on_disk, peer.target});
  report.add({peer.name + ", images/s", size, rates});
  report.add({"h5pack folder beside " + peer.name + ", images/s", size, our_rates});
  report.add_detail(size, peer.script, {{"about", process.about()}});
}

}  // namespace

void measure_pack_peers(PackingCase& packing, Report& report) {
  const std::vector<Peer> peers = {{"FFCV's DatasetWriter", "pack_ffcv.py", "ffcv", at_least(2.0)},
                                   {"an h5py script", "pack_h5py.py", "", at_least(3.0)}};
  for (const ImageSize& size : kImageSizes) {
    for (const Peer& peer : peers) {
      try_peer(peer, packing.options.peers, {"h5pack folder, images/s / " + peer.name, size.name},
               report, [&] { compare(packing, report, peer, packing.images(size)); });
    }
  }
}

}  // namespace bench
