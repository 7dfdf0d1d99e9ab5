#include "harness/epoch_case.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "harness/noise.hpp"

namespace bench {

using chunkio::base::HostBuffer;

Case make_case(const Options& options, const ScratchFolder& scratch, const ImageSize& size) {
  const std::int64_t num_samples = std::max<std::int64_t>(options.bytes / size.bytes(), 1);
  Case made{.options = options,
            .scratch = scratch,
            .size = size,
            .num_samples = num_samples,
            .path = scratch.file(std::string(size.name) + ".h5"),
            .pixels = HostBuffer(static_cast<std::size_t>(num_samples * size.bytes())),
            .order = {}};
  fill_with_noise(made.pixels.bytes());
  write_images_file(made.path, size, num_samples, made.pixels.bytes());
  chunkio::Loader loader(chunkio::Dataset::open(made.path),
                         made.loader_options(chunkio::SourceKind::automatic));
  made.order = check_epoch(loader, made.pixels.bytes());
  return made;
}

std::vector<std::int64_t> check_epoch(chunkio::Loader& loader, std::span<const std::byte> pixels) {
  const auto sample_bytes = static_cast<std::size_t>(loader.dataset().info().sample_bytes());
  std::vector<std::int64_t> order;
  std::vector<bool> seen(static_cast<std::size_t>(loader.dataset().size()));
  for (const chunkio::Batch& batch : loader.epoch(kEpoch)) {
    const std::byte* image = batch.images().data();
    for (const std::int64_t row : batch.sample_ids()) {
      const auto at = static_cast<std::size_t>(row);
      if (std::memcmp(image, pixels.data() + at * sample_bytes, sample_bytes) != 0 || seen.at(at)) {
        throw std::runtime_error("the loader delivered a wrong image for row " +
                                 std::to_string(row));
      }
      seen[at] = true;
      order.push_back(row);
      image += sample_bytes;
    }
  }
  if (order.size() != seen.size()) throw std::runtime_error("the loader left out samples");
  return order;
}

void run_epochs(chunkio::Loader& loader, std::int64_t count) {
  for (std::int64_t epoch = kEpoch; epoch < kEpoch + count; ++epoch) {
    loader.start_epoch(epoch);
    while (loader.next()) {
    }
  }
}

}  // namespace bench
