// What is often written by hand, to compare with: one worker that reads image after image
// through libhdf5, makes float32 of it on the host, and hands over batches in pageable memory.
#pragma once

#include <cstdint>
#include <future>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <chunkio/loader.hpp>
#include <chunkio/normalizer.hpp>

#include "batch_source.hpp"

namespace trainer {

class NaiveSource : public BatchSource {
 public:
  /// Of `order`: batch size, seed, order, rows and drop_last. Of `normalize`: mean, std, padding,
  /// random_crop and flip, where one number decides for both of the last.
  NaiveSource(chunkio::Dataset dataset, chunkio::LoaderOptions order,
              chunkio::NormalizeOptions normalize, const BatchRequest& request);

  void start_epoch(std::int64_t epoch) override;
  std::optional<TrainingBatch> next() override;
  std::int64_t num_steps() const override { return order_.num_steps(); }
  std::string description() const override { return "read one by one, made float32 by one worker"; }

 private:
  [[nodiscard]] chunkio::EpochOrder order_of(std::int64_t epoch) const;
  /// The next batch, while the network works on the one before; at the end nothing valid.
  std::future<TrainingBatch> read_ahead();
  TrainingBatch read(const std::vector<std::int64_t>& rows);

  chunkio::Dataset dataset_;
  chunkio::LoaderOptions options_;
  chunkio::NormalizeOptions normalize_;
  BatchRequest request_;
  chunkio::EpochOrder order_;  // of the current epoch
  std::int64_t step_ = 0;      // the next to be read
  std::mt19937_64 random_;
  std::future<TrainingBatch> ahead_;  // last: it uses all of the above until it is gone
};

}  // namespace trainer
