// Trains a small residual network to tell attributes of images, such as the 40 of CelebA, with
// LibTorch:
//
//     h5pack celeba celeba/ -o celeba-packed/
//     chunkio-train-celeba celeba-packed/train.h5 celeba-packed/val.h5 --memory-budget 4GiB
//     --direct-io
//
// For data that memory cannot hold: the loader keeps to its budget, --direct-io bypasses the page
// cache, and --echo uses images more than once where storage cannot keep up. As for the rest, see
// train_cifar.cpp.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include <torch/nn/functional/loss.h>

#include <chunkio/dataset.hpp>

#include "training.hpp"

namespace {

/// Columns of the table of attributes, all of 0 and 1.
std::int64_t count_attributes(const chunkio::Dataset& dataset) {
  const chunkio::DatasetInfo& info = dataset.info();
  if (!info.labels || info.labels->dtype != chunkio::DType::uint8 ||
      info.labels->row_shape.rank() != 1) {
    throw std::runtime_error(info.path +
                             " has no attribute table as labels (uint8, a row an image)" +
                             (info.labels ? ": for classes there is chunkio-train-cifar" : ""));
  }
  const std::int64_t attributes = info.labels->row_shape[0];
  std::vector<std::byte> labels(static_cast<std::size_t>(dataset.size() * attributes));
  dataset.read_field(info.labels->name, 0, dataset.size(), labels);
  if (std::any_of(labels.begin(), labels.end(), [](std::byte b) { return b > std::byte{1}; })) {
    throw std::runtime_error(info.path + " has labels other than 0 and 1: they are not attributes");
  }
  return attributes;
}

trainer::Task make_task(const chunkio::Dataset& training, const chunkio::Dataset* held_out) {
  trainer::Task task;
  task.outputs = count_attributes(training);
  if (held_out != nullptr && count_attributes(*held_out) != task.outputs) {
    throw std::runtime_error(held_out->info().path + " has another number of attributes than " +
                             training.info().path);
  }
  task.answers = std::to_string(task.outputs) + " attributes";
  task.label_dtype = torch::kFloat32;
  task.loss = [](const torch::Tensor& scores, const torch::Tensor& labels) {
    return torch::nn::functional::binary_cross_entropy_with_logits(scores, labels);
  };
  task.correct = [](const torch::Tensor& scores, const torch::Tensor& labels) {
    return ((scores > 0) == (labels > 0.5)).to(torch::kFloat32).mean(1).sum();
  };
  return task;
}

}  // namespace

int main(int argc, char** argv) {
  trainer::Trainer celeba;
  celeba.program = "chunkio-train-celeba";
  celeba.purpose =
      "Trains a small residual network to tell attributes of images, such as those of CelebA.";
  celeba.defaults.stem_stride = 4;
  celeba.defaults.batch = 256;
  celeba.task = make_task;
  return trainer::run_trainer(celeba, argc, argv);
}
