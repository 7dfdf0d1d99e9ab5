// Batches as a network takes them, by one of three loaders.
//
// One thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include <torch/types.h>

#include <chunkio/dataset.hpp>

#include "options.hpp"

namespace trainer {

struct TrainingBatch {
  torch::Tensor images;  ///< float32, or bfloat16 from a DeviceLoader: [B,C,H,W], channels last.
  torch::Tensor labels;  ///< As BatchRequest::label_dtype says: [B] or [B,A].
};

/// Which batches are wanted, and where.
struct BatchRequest {
  LoaderKind kind = LoaderKind::host;
  bool training = true;  ///< Else: in the order of the file, each image once, as it is.
  torch::ScalarType label_dtype = torch::kInt64;  ///< kInt64 or kFloat32.
  torch::Device device = torch::kCPU;
};

class BatchSource {
 public:
  virtual ~BatchSource() = default;
  /// \throws chunkio::Error, as next().
  virtual void start_epoch(std::int64_t epoch) = 0;
  /// The next batch, or nothing at the end of the epoch. On a GPU, what is put into the current
  /// stream afterwards finds it complete.
  [[nodiscard]] virtual std::optional<TrainingBatch> next() = 0;
  /// Steps of an epoch.
  [[nodiscard]] virtual std::int64_t num_steps() const = 0;
  /// Where images come from, in a few words.
  [[nodiscard]] virtual std::string description() const = 0;
  /// What limits the loader and what would help, in a sentence; empty if it does not know.
  [[nodiscard]] virtual std::string advice() const { return {}; }

 protected:
  BatchSource() = default;
  BatchSource(const BatchSource&) = delete;
  BatchSource& operator=(const BatchSource&) = delete;
};

/// \throws chunkio::Error invalid_argument, out_of_resources (memory budget), not_found (mean and
///         std), unsupported (device: built without CUDA), cuda_failed, io_failed, hdf5_failed.
std::unique_ptr<BatchSource> make_batch_source(const chunkio::Dataset& dataset,
                                               const Options& options, const BatchRequest& request);

}  // namespace trainer
