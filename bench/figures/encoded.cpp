// The table of figures about encoded images: a Loader that decodes, cuts and resizes them against
// libjpeg-turbo decoding whole images and nothing else, and against other loaders.
//
// Each round times, one after the other, on the same JPEG files, in memory or in the page cache:
//
//   exact, fast  an epoch of random resized crops of 224x224, batches of 128
//   center       the same with the middle of each image, its shorter side resized to 256
//   whole        libjpeg-turbo decoding every image whole, bytes in memory, same threads
//   peers        the same work by FFCV, DALI and torchvision (--peers): random resized crops of 224x224
//
// Pixels are compared with Pillow's by tests/scripts/decode_test.py.

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <chunkio/dataset_writer.hpp>
#include <chunkio/loader.hpp>

#include "base/stopwatch.hpp"
#include "figures/suites.hpp"
#include "harness/figure.hpp"
#include "harness/in_parallel.hpp"
#include "harness/jpeg_files.hpp"
#include "harness/peer_process.hpp"
#include "harness/scratch_folder.hpp"
#include "harness/spread.hpp"

namespace bench {
namespace {

using chunkio::CropMode;
using chunkio::test::ScratchFolder;

constexpr ImageSize kPhotograph{"photographs", 375, 500, 3};
constexpr std::int64_t kSide = 224;

struct EncodedOptions {
  std::string photos;  ///< A folder of class folders of JPEG files; empty: drawn ones.
  std::int64_t count = 1000;
  std::int64_t batch_size = 128;
  std::int64_t threads = 2;
  std::int64_t rounds = 5;
  std::string folder = std::filesystem::temp_directory_path().string();
  std::string peers;
};

chunkio::DecodeOptions decoding(CropMode crop, bool exact) {
  return {.height = kSide, .width = kSide, .crop = crop, .exact = exact};
}

/// What is measured on.
class Encoded {
 public:
  explicit Encoded(const EncodedOptions& options)
      : options_(options),
        scratch_(options.folder),
        photos_(options.photos.empty()
                    ? draw_jpeg_folder(scratch_.file("photos"), kPhotograph, options.count)
                    : find_jpeg_folder(options.photos, kPhotograph)),
        path_(scratch_.file("encoded.h5")) {
    FileReader files;
    JpegReader decoder;
    chunkio::EncodedWriter writer(path_, {});
    for (const std::string& file : photos_.files) {
      const std::span<const std::byte> bytes = files.read(file);
      static_cast<void>(decoder.decode(bytes));
      encoded_.emplace_back(bytes.begin(), bytes.end());
      writer.add({.bytes = encoded_.back(), .height = decoder.height(), .width = decoder.width()});
    }
    writer.close({});
  }

  void run(Report& report) {
    struct Way {
      const char* name;
      chunkio::DecodeOptions decode;
      std::optional<Target> target;
      std::vector<double> rates = {};
    };
    std::vector<Way> ways = {
        {"exact", decoding(CropMode::random_resized, true), at_least(0.9)},
        {"fast", decoding(CropMode::random_resized, false), {}},
        {"center", decoding(CropMode::center, true), {}},
    };
    std::vector<double> whole;
    for (std::int64_t round = -1; round < options_.rounds; ++round) {
      // The first fills the page cache, and is not counted.
      const double whole_rate = rate([&] { decode_whole(); });
      if (round >= 0) whole.push_back(whole_rate);
      for (Way& way : ways) {
        const double found = rate([&] { run_epoch(way.decode, round + 1); });
        if (round >= 0) way.rates.push_back(found);
      }
    }
    for (const Way& way : ways) {
      const std::string name = std::string("Loader, ") + way.name;
      report.add({name + " / libjpeg-turbo, whole images", kPhotograph.name,
                  ratios(way.rates, whole), way.target});
      report.add({name + ", images/s", kPhotograph.name, way.rates});
    }
    report.add({"libjpeg-turbo, whole images, images/s", kPhotograph.name, whole});
  }

  void compare(const Peer& peer, Report& report) {
    PeerProcess process(peer, {.environment = options_.peers,
                               .data = photos_.path,
                               .batch_size = options_.batch_size,
                               .threads = options_.threads,
                               .folder = scratch_.path().string()});
    for (const bool exact : {true, false}) {
      const chunkio::DecodeOptions decode = decoding(CropMode::random_resized, exact);
      run_epoch(decode, 0);
      std::vector<double> ours;
      std::vector<double> theirs;
      for (std::int64_t round = 1; round <= options_.rounds; ++round) {
        ours.push_back(rate([&] { run_epoch(decode, round); }));
        const PeerProcess::Epoch epoch = process.run_epoch();
        if (epoch.images != photos_.count()) throw std::runtime_error("left out images");
        theirs.push_back(static_cast<double>(epoch.images) / epoch.seconds);
      }
      const std::string name = std::string("Loader, ") + (exact ? "exact" : "fast");
      report.add({name + " / " + peer.name, kPhotograph.name, ratios(ours, theirs),
                  peer.target ? std::optional(at_least(exact ? 1.5 : 2.0)) : std::nullopt,
                  "its best: " + process.about().at("best").get<std::string>()});
      report.add({peer.name + ", images/s", kPhotograph.name, theirs});
    }
    report.add_detail(kPhotograph.name, peer.script, {{"about", process.about()}});
  }

 private:
  [[nodiscard]] double rate(const std::function<void()>& work) const {
    chunkio::base::Stopwatch watch;
    work();
    return static_cast<double>(photos_.count()) / watch.lap();
  }

  void decode_whole() const {
    in_parallel(photos_.count(), options_.threads, [&] {
      return [this, reader = std::make_shared<JpegReader>()](std::int64_t i) {
        static_cast<void>(reader->decode(encoded_[static_cast<std::size_t>(i)]));
      };
    });
  }

  /// With a loader of its own, so that nothing is prefetched while others are timed.
  void run_epoch(const chunkio::DecodeOptions& decode, std::int64_t seed) const {
    chunkio::Loader loader(chunkio::Dataset::open(path_, {.decode = decode}),
                           {.batch_size = options_.batch_size,
                            .seed = static_cast<std::uint64_t>(seed),
                            .order = {.window_bytes = std::int64_t{32} << 20},
                            .io = {.num_threads = options_.threads, .num_epochs = 1}});
    std::int64_t images = 0;
    for (const chunkio::Batch& batch : loader.epoch(0)) images += batch.size();
    if (images != photos_.count()) throw std::runtime_error("left out images");
  }

  const EncodedOptions& options_;
  ScratchFolder scratch_;
  JpegFolder photos_;
  std::string path_;
  std::vector<std::vector<std::byte>> encoded_;
};

using State = MadeWhenAsked<Encoded, EncodedOptions>;

void measure_peers(State& state, Report& report) {
  const std::vector<Peer> peers = {{"FFCV", "ffcv_encoded.py", "ffcv", at_least(1.5)},
                                   {"DALI", "dali_encoded.py", "nvidia.dali"},
                                   {"torchvision", "torchvision_encoded.py", "torchvision"}};
  for (const Peer& peer : peers) {
    try_peer(peer, state.options.peers, {"Loader / " + peer.name, kPhotograph.name}, report,
             [&] { state.get().compare(peer, report); });
  }
}

}  // namespace

Suite encoded_suite() {
  const auto state = std::make_shared<State>();
  return {.name = "encoded",
          .description = "Figures about images that are decoded while they are read",
          .source = "figures/encoded.cpp",
          .add_options =
              [state](CLI::App& app) {
                EncodedOptions& options = state->options;
                app.add_option(
                    "--photos", options.photos,
                    "A folder of class folders of JPEG files; without it some are drawn");
                add_count(app, "--count", options.count, "Images that are drawn");
                add_count(app, "--batch", options.batch_size, "Samples a batch");
                add_count(app, "--threads", options.threads, "Threads that decode");
                add_rounds(app, options.rounds);
                add_folder(app, options.folder);
                add_peers(app, options.peers);
              },
          .begin =
              [state](Report& report) {
                report.add_line(std::to_string(state->options.threads) + " threads; " +
                                std::to_string(state->options.rounds) +
                                " interleaved rounds, median (range)");
              },
          .finish = [state] { state->made.reset(); },
          .experiments = {{"decoding", [state](Report& report) { state->get().run(report); }},
                          {"peers", [state](Report& report) { measure_peers(*state, report); }}}};
}

}  // namespace bench
