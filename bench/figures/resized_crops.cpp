// Figures about random resized crops on the CPU: 375x500 to 224x224 as float32 NCHW, with flips.
//
// Each round times, one after the other, on the same noise:
//
//   normalizer  batches cut, resized and normalised into one output buffer
//   resizing    the same boxes resized into uint8, with plans that were prepared before
//   preparing   those plans, again
//   torch       images cut, interpolate(antialias=True) of each, then stacked and normalised, on as
//               many threads (with --torch)
//
// What is timed is compared first: the normaliser's output with the loop over what was resized.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <chunkio/normalizer.hpp>

#include "base/host_memory.hpp"
#include "base/philox.hpp"
#include "figures/normalizing.hpp"
#include "harness/epoch_case.hpp"
#include "harness/in_parallel.hpp"
#include "harness/noise.hpp"
#include "harness/peer_process.hpp"
#include "harness/spread.hpp"
#include "image/resize.hpp"
#include "image/resized_crop.hpp"

namespace bench {
namespace {

using chunkio::DType;
using chunkio::Layout;
using chunkio::base::HostBuffer;
namespace image = chunkio::image;

constexpr ImageSize kStored{"375x500", 375, 500, 3};
constexpr ImageSize kResized{"random resized crops of 375x500 to 224x224", 224, 224, 3};
constexpr std::uint64_t kSeed = 7;

class Measurement {
 public:
  Measurement(const NormalizingOptions& options, std::int64_t threads, const HostBuffer& images)
      : options_(options),
        setting_{kResized, DType::float32, Layout::nchw, threads},
        images_(images),
        num_images_(static_cast<std::int64_t>(images.size()) / kStored.bytes()),
        normalizer_(info_of(kStored),
                    {.mean = {kMean.begin(), kMean.end()},
                     .std = {kStd.begin(), kStd.end()},
                     .crop_height = kResized.height,
                     .crop_width = kResized.width,
                     .random_resized_crop = chunkio::ResizedCropRanges{},
                     .flip = true,
                     .seed = kSeed},
                    threads),
        output_(normalizer_.output_bytes(num_images_)),
        resized_(static_cast<std::size_t>(num_images_ * kResized.bytes())),
        plans_(static_cast<std::size_t>(num_images_)) {
    const auto key = chunkio::base::augmentation_key(kSeed, 0);
    const image::RandomResizedCrop ranges = image::random_resized_crop_ranges({});
    for (std::int64_t i = 0; i < num_images_; ++i) {
      // Each batch has ids of its own, so that no two images have the same box.
      ids_.push_back(i);
      crops_.push_back(
          image::resized(image::random_box(ranges, {kStored.height, kStored.width}, key, i, 0),
                         {kResized.height, kResized.width}));
      crops_.back().flipped = image::is_flipped(key, i, 0);
    }
  }

  void run(Report& report) {
    prepare();
    resize();
    normalize();
    check_normalized(setting_, reinterpret_cast<const std::uint8_t*>(resized_.data()), num_images_,
                     output_.data());
    const auto peer = start_torch(options_, "resized_crop_torch.py",
                                  {kStored.height, kStored.width, kResized.height, num_images_},
                                  setting_.threads);
    std::vector<double> normalizer, resizing, preparing, torch;
    for (std::int64_t round = 0; round < options_.rounds; ++round) {
      normalizer.push_back(seconds_of([&] { normalize(); }));
      resizing.push_back(seconds_of([&] { resize(); }));
      preparing.push_back(seconds_of([&] { prepare(); }));
      if (peer) {
        const PeerProcess::Epoch epoch = peer->run_epoch();
        torch.push_back(epoch.seconds * static_cast<double>(num_images_) /
                        static_cast<double>(epoch.images));
      }
    }
    const std::string name = setting_.name();
    const std::vector<double> images(normalizer.size(), static_cast<double>(num_images_));
    report.add({"random resized crops, images/s", name, ratios(images, normalizer)});
    report.add({"random resized crops / resizing alone", name, ratios(resizing, normalizer)});
    report.add({"random resized crops, share of preparing", name, ratios(preparing, normalizer)});
    if (peer) report.add({"random resized crops / PyTorch", name, ratios(torch, normalizer)});
    nlohmann::ordered_json detail = {{"pictures", num_images_},
                                     {"seconds",
                                      {{"normalizer", normalizer},
                                       {"resizing", resizing},
                                       {"preparing", preparing},
                                       {"torch", torch}}}};
    if (peer) detail["torch"] = peer->about();
    report.add_detail(name, "resized crops", std::move(detail));
  }

 private:
  void normalize() {
    for (std::int64_t first = 0; first < num_images_; first += options_.batch_size) {
      const std::int64_t count = std::min(options_.batch_size, num_images_ - first);
      const chunkio::Tensor batch(images_.data() + first * kStored.bytes(), DType::uint8,
                                  {count, kStored.height, kStored.width, kStored.channels});
      normalizer_(
          batch,
          std::span(ids_).subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count)),
          0,
          output_.bytes().subspan(normalizer_.output_bytes(first),
                                  normalizer_.output_bytes(count)));
    }
  }

  void prepare() {
    in_parallel(num_images_, setting_.threads, [&] {
      return [&](std::int64_t i) {
        const auto index = static_cast<std::size_t>(i);
        plans_[index].prepare(crops_[index], 3);
      };
    });
  }

  void resize() {
    in_parallel(num_images_, setting_.threads, [&] {
      return [&, scratch = std::vector<std::uint8_t>()](std::int64_t i) mutable {
        const auto index = static_cast<std::size_t>(i);
        const image::ResizePlan& plan = plans_[index];
        scratch.resize(std::max(scratch.size(), plan.scratch_bytes()));
        const image::Box& box = crops_[index].box;
        const auto* const pixels = reinterpret_cast<const std::uint8_t*>(images_.data()) +
                                   i * kStored.bytes() +
                                   (box.top * kStored.width + box.left) * kStored.channels;
        plan.resize({pixels, static_cast<std::size_t>(kStored.width * kStored.channels)},
                    {reinterpret_cast<std::uint8_t*>(resized_.data()) + i * kResized.bytes(),
                     static_cast<std::size_t>(kResized.width * kResized.channels)},
                    scratch);
      };
    });
  }

  const NormalizingOptions& options_;
  const Setting setting_;
  const HostBuffer& images_;
  std::int64_t num_images_;
  chunkio::Normalizer normalizer_;
  HostBuffer output_;
  HostBuffer resized_;
  std::vector<image::ResizedCrop> crops_;
  std::vector<image::ResizePlan> plans_;
  std::vector<std::int64_t> ids_;
};

}  // namespace

void measure_resized_crops(const NormalizingOptions& options, Report& report) {
  const std::int64_t count = std::max<std::int64_t>(options.bytes / kStored.bytes(), 1);
  HostBuffer images(static_cast<std::size_t>(count * kStored.bytes()));
  fill_with_noise(images.bytes());
  for (const std::int64_t threads : options.threads) {
    Measurement(options, threads, images).run(report);
  }
}

}  // namespace bench
