// Trains a small residual network to classify the images of a packed file, such as CIFAR-10, with
// LibTorch:
//
//     h5pack cifar cifar-10-batches-bin/ -o cifar/
//     chunkio-train-cifar cifar/train.h5 cifar/test.h5
//
// Says for each epoch how fast it was and how long the network had to wait for images; --loader
// compares ways of bringing them. On a GPU it computes in mixed precision (bfloat16).

#include <algorithm>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <torch/nn/functional/loss.h>

#include <chunkio/dataset.hpp>

#include "training.hpp"

namespace {

constexpr std::int64_t kMaxClasses = 65536;

/// One more than the highest label.
std::int64_t count_classes(const chunkio::Dataset& dataset) {
  const chunkio::DatasetInfo& info = dataset.info();
  if (!info.labels || info.labels->dtype != chunkio::DType::int64 ||
      info.labels->row_shape.rank() != 0) {
    throw std::runtime_error(info.path + " has no class labels (int64, one an image)" +
                             (info.labels ? ": for attributes there is chunkio-train-celeba" : ""));
  }
  std::vector<std::int64_t> labels(static_cast<std::size_t>(dataset.size()));
  dataset.read_field(info.labels->name, 0, dataset.size(),
                     std::as_writable_bytes(std::span(labels)));
  const auto [lowest, highest] = std::minmax_element(labels.begin(), labels.end());
  if (*lowest < 0 || *highest >= kMaxClasses) {
    throw std::runtime_error(info.path + " has labels outside 0 to " +
                             std::to_string(kMaxClasses - 1) + ": they are not class numbers");
  }
  return *highest + 1;
}

trainer::Task make_task(const chunkio::Dataset& training, const chunkio::Dataset* held_out) {
  trainer::Task task;
  task.outputs = count_classes(training);
  if (held_out != nullptr) task.outputs = std::max(task.outputs, count_classes(*held_out));
  task.answers = std::to_string(task.outputs) + " classes";
  task.label_dtype = torch::kInt64;
  task.loss = [](const torch::Tensor& scores, const torch::Tensor& labels) {
    return torch::nn::functional::cross_entropy(scores, labels);
  };
  task.correct = [](const torch::Tensor& scores, const torch::Tensor& labels) {
    return (scores.argmax(1) == labels).sum();
  };
  return task;
}

}  // namespace

int main(int argc, char** argv) {
  trainer::Trainer cifar;
  cifar.program = "chunkio-train-cifar";
  cifar.purpose = "Trains a small residual network to classify images, such as those of CIFAR-10.";
  cifar.task = make_task;
  return trainer::run_trainer(cifar, argc, argv);
}
