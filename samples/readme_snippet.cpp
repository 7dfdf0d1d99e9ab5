// The program of README.md: two epochs of shuffled batches.

#include <cstdint>
#include <cstdio>
#include <exception>
#include <span>

#include <chunkio/chunkio.hpp>

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: chunkio-readme-snippet FILE.h5\n");
    return 2;
  }
  const char* path = argv[1];
  try {
    // [README]
    chunkio::Dataset dataset = chunkio::Dataset::open(path);
    chunkio::Loader loader(dataset, {.batch_size = 256, .seed = 7});
    for (int epoch = 0; epoch < 2; ++epoch) {
      for (const chunkio::Batch& batch : loader.epoch(epoch)) {
        // Valid while the batch is held.
        chunkio::TensorView images = batch.images();              // uint8 [B,H,W,C]
        chunkio::TensorView labels = batch.labels();              // int64 [B], or empty
        std::span<const std::int64_t> rows = batch.sample_ids();  // rows in the file
        std::printf("epoch %d: %s pictures, %zu label bytes, first row %lld\n", epoch,
                    images.shape().to_string().c_str(), labels.size_bytes(),
                    static_cast<long long>(rows.front()));
      }
    }
    // [README]
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "chunkio-readme-snippet: %s\n", error.what());
    return 1;
  }
}
