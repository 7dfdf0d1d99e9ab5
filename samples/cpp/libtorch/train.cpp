// A training loop with LibTorch, as libchunkio/doc/cpp.md shows it.

#include <cstdio>
#include <exception>

#include <torch/torch.h>

#include <chunkio/chunkio.hpp>
#include <chunkio/torch.hpp>

namespace {

void train(const chunkio::Dataset& dataset) {
  // [torch]
  torch::nn::Linear model(dataset.info().sample_bytes(), 10);
  torch::optim::SGD optimizer(model->parameters(), 0.01);
  chunkio::Loader loader(dataset, {.batch_size = 256, .seed = 7});
  for (const chunkio::Batch& batch : loader.epoch(0)) {
    const torch::Tensor images = chunkio::to_torch(batch, batch["images"]);  // uint8 [B,H,W,C]
    const torch::Tensor labels = chunkio::to_torch(batch, batch["labels"]);  // int64 [B]
    const torch::Tensor input = images.flatten(1).to(torch::kFloat32) / 255;
    const torch::Tensor loss = torch::cross_entropy_loss(model->forward(input), labels);
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
  }
  // [torch]
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: train FILE.h5\n");
    return 2;
  }
  try {
    train(chunkio::Dataset::open(argv[1]));
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "train: %s\n", error.what());
    return 1;
  }
}
