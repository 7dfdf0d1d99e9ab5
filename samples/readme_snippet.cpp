// The loop of README.md and of libchunkio/doc/cpp.md: two epochs of shuffled batches.

#include <cstdio>
#include <exception>

#include <chunkio/chunkio.hpp>

namespace {

void train(const chunkio::Tensor& images, const chunkio::Tensor& labels) {
  std::printf("%s images, %zu label bytes\n", images.shape().to_string().c_str(),
              labels.size_bytes());
}

}  // namespace

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
        train(batch["images"], batch["labels"]);  // uint8 [B,H,W,C], int64 [B]
      }
    }
    // [README]
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "chunkio-readme-snippet: %s\n", error.what());
    return 1;
  }
}
