// What both trainers share: from the command line to the last report.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include <torch/types.h>

#include <chunkio/dataset.hpp>

#include "options.hpp"

namespace trainer {

/// What the network is to learn of a dataset.
struct Task {
  std::int64_t outputs = 0;  ///< Scores an image.
  std::string answers = {};  ///< "10 classes".
  /// Of the labels that `loss` and `correct` get.
  torch::ScalarType label_dtype = torch::kInt64;
  /// Mean loss of scores [B,outputs] against labels [B] or [B,A]: a scalar.
  std::function<torch::Tensor(const torch::Tensor& scores, const torch::Tensor& labels)> loss = {};
  /// Right answers, 0 to 1 for each image, summed: a scalar.
  std::function<torch::Tensor(const torch::Tensor& scores, const torch::Tensor& labels)> correct =
      {};
};

/// A trainer.
struct Trainer {
  std::string program = {};
  std::string purpose = {};  ///< One sentence, for --help.
  Options defaults = {};
  /// Looks at the labels of both files (the second may be null).
  /// \throws std::runtime_error if they are of another kind.
  std::function<Task(const chunkio::Dataset& training, const chunkio::Dataset* held_out)> task = {};
};

/// Parses, trains and reports. Errors go to stderr, in one line. Returns the exit code.
int run_trainer(const Trainer& trainer, int argc, char** argv);

}  // namespace trainer
