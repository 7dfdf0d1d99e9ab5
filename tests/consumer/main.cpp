// Writes a tiny train.h5 in the current folder, then streams it with the program that the
// documentation shows.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <set>
#include <span>
#include <vector>

#include <chunkio/chunkio.hpp>
#include <chunkio/dlpack.hpp>

namespace {

constexpr std::int64_t kSamples = 1000;
constexpr std::int64_t kSampleBytes = 4 * 5 * 3;

void write_train_file() {
  std::vector<std::int64_t> labels(kSamples);
  std::vector<std::byte> pixels(kSamples * kSampleBytes);
  for (std::size_t row = 0; row < kSamples; ++row) {
    labels[row] = static_cast<std::int64_t>(row % 7);
    for (std::size_t i = 0; i < kSampleBytes; ++i) {
      pixels[row * kSampleBytes + i] = static_cast<std::byte>(row * 31 + i);
    }
  }
  const auto label_bytes = std::as_bytes(std::span(labels));
  chunkio::DatasetSpec spec{.num_samples = kSamples, .height = 4, .width = 5, .channels = 3};
  spec.fields.push_back({{"labels", chunkio::DType::int64, {}},
                         std::vector<std::byte>(label_bytes.begin(), label_bytes.end())});
  chunkio::DatasetWriter writer("train.h5", spec, {.chunk_samples = 64, .overwrite = true});
  for (std::int64_t chunk = 0; chunk < writer.num_chunks(); ++chunk) {
    const std::int64_t first = chunk * writer.chunk_samples();
    const std::int64_t rows = std::min(writer.chunk_samples(), kSamples - first);
    writer.write_chunk(chunk, std::span<const std::byte>(pixels).subspan(
                                  static_cast<std::size_t>(first * kSampleBytes),
                                  static_cast<std::size_t>(rows * kSampleBytes)));
  }
  writer.close();
}

bool is_right(const chunkio::Batch& batch, std::set<std::int64_t>& seen) {
  const auto pixels = batch.images().values<std::uint8_t>();
  if (chunkio::to_dlpack(batch, batch.images())->dl_tensor.data != pixels.data()) return false;
  const auto labels = batch.labels().values<std::int64_t>();
  std::size_t at = 0;
  for (const std::int64_t id : batch.sample_ids()) {
    if (!seen.insert(id).second || labels[at] != id % 7) return false;
    for (std::size_t i = 0; i < kSampleBytes; ++i) {
      const auto expected = static_cast<std::uint8_t>(static_cast<std::size_t>(id) * 31 + i);
      if (pixels[at * kSampleBytes + i] != expected) return false;
    }
    ++at;
  }
  return true;
}

}  // namespace

int main() {
  write_train_file();

  chunkio::Dataset dataset = chunkio::Dataset::open("train.h5");
  chunkio::Loader loader(dataset, {.batch_size = 256, .seed = 7});
  for (int epoch = 0; epoch < 2; ++epoch) {
    std::set<std::int64_t> seen;
    for (const chunkio::Batch& batch : loader.epoch(epoch)) {
      batch.images();      // Tensor uint8 [B,H,W,C], valid while the batch is held
      batch.labels();      // Tensor, empty if the file has none
      batch.sample_ids();  // std::span<const int64_t>, rows in the file
      if (!is_right(batch, seen)) {
        std::fprintf(stderr, "wrong batch %lld\n", static_cast<long long>(batch.step()));
        return 1;
      }
    }
    if (seen.size() != kSamples) {
      std::fprintf(stderr, "epoch %d delivered %zu samples\n", epoch, seen.size());
      return 1;
    }
  }
  std::puts("two epochs, all samples right");
  return 0;
}
