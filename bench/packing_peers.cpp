// h5pack folder, the whole command, against FFCV's DatasetWriter and an h5py script on the same
// JPEG files, in the page cache. Each peer is another process, which checks what it writes and
// picks its best setting before the first round. h5pack brings its file to disk and reads it back;
// the peers do neither. So there is a second ratio, in which what the peer left in the page cache
// is brought to disk, too.

#include <signal.h>

#include <exception>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/stopwatch.hpp"
#include "packing_case.hpp"
#include "peer_process.hpp"

namespace bench {
namespace {

struct Peer {
  std::string name;
  std::string script;
  double target;
};

/// Why setup.sh could not make this peer run; empty if nothing is known against it.
std::string known_reason(const PackingOptions& options, const Peer& peer) {
  if (options.peers.empty()) return "no --peers; bench/peers/setup.sh makes the environment";
  if (peer.script != "pack_ffcv.py") return {};
  std::ifstream file(std::filesystem::path(options.peers) / "ffcv-reason.txt");
  std::string reason;
  std::getline(file, reason);
  return reason;
}

void compare(PackingCase& packing, Report& report, const Peer& peer, const JpegFolder& pictures) {
  const PackingOptions& options = packing.options;
  const std::string size = pictures.size.name;
  const std::string output = packing.scratch.file("peer.h5");
  PeerProcess process(
      {options.peers + "/bin/python", options.peer_scripts + "/" + peer.script, pictures.path,
       "--threads", std::to_string(options.threads), "--dir", packing.scratch.file("")},
      packing.scratch.file(peer.script + ".log"));
  std::vector<double> ratios;
  std::vector<double> on_disk;
  std::vector<double> rates;
  std::vector<double> our_rates;
  for (std::int64_t round = 0; round < options.rounds; ++round) {
    const PackRun run = packing.pack_folder(pictures, output);
    settle(packing.scratch.file(""));
    const PeerProcess::Epoch epoch = process.run_epoch();
    if (epoch.images != pictures.count()) throw std::runtime_error("left out images");
    chunkio::base::Stopwatch watch;
    settle(packing.scratch.file(""));
    const double settle_seconds = watch.lap();
    our_rates.push_back(static_cast<double>(pictures.count()) / run.seconds);
    rates.push_back(static_cast<double>(epoch.images) / epoch.seconds);
    ratios.push_back(our_rates.back() / rates.back());
    on_disk.push_back((epoch.seconds + settle_seconds) / run.seconds);
  }
  std::filesystem::remove(output);
  const std::string best = process.about().at("best").get<std::string>();
  report.add({"h5pack folder, images/s / " + peer.name, size, at_least(peer.target), ratios,
              "its best: " + best});
  report.add({"the same, " + peer.name + " and sync", size, at_least(peer.target), on_disk});
  report.add({peer.name + ", images/s", size, {}, rates});
  report.add({"h5pack folder beside " + peer.name + ", images/s", size, {}, our_rates});
  report.add_detail(size, peer.script, {{"about", process.about()}});
}

}  // namespace

void measure_pack_peers(PackingCase& packing, Report& report) {
  ::signal(SIGPIPE, SIG_IGN);  // a peer that died shows in its answer
  const std::vector<Peer> peers = {{"FFCV's DatasetWriter", "pack_ffcv.py", 2.0},
                                   {"an h5py script", "pack_h5py.py", 3.0}};
  for (const PictureSize& size : kPictureSizes) {
    for (const Peer& peer : peers) {
      const std::string row = "h5pack folder, images/s / " + peer.name;
      const std::string reason = known_reason(packing.options, peer);
      if (!reason.empty()) {
        report.add_missing(size.name, {{row, at_least(peer.target)}}, reason, false);
        continue;
      }
      try {
        compare(packing, report, peer, packing.pictures(size));
      } catch (const std::exception& error) {
        report.add_missing(size.name, {{row, at_least(peer.target)}},
                           peer.script + " " + error.what(), true);
      }
    }
  }
}

}  // namespace bench
