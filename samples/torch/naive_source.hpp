// What is often written by hand, to compare with: one worker that reads image after image
// through libhdf5, makes float32 of it on the host, and hands over batches in pageable memory.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <mutex>
#include <optional>
#include <random>
#include <stop_token>
#include <string>
#include <thread>
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
  std::int64_t num_steps() const override;
  std::string description() const override { return "read one by one, made float32 by one worker"; }

 private:
  struct Waiting {
    TrainingBatch batch;
    std::exception_ptr error;
  };

  [[nodiscard]] chunkio::EpochOrder order_of(std::int64_t epoch) const;
  void work(std::stop_token stop, std::int64_t epoch);
  TrainingBatch read(const std::vector<std::int64_t>& rows, std::mt19937_64& random) const;

  chunkio::Dataset dataset_;
  chunkio::LoaderOptions options_;
  chunkio::NormalizeOptions normalize_;
  BatchRequest request_;
  std::int64_t num_steps_;

  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<Waiting> ready_;  // guarded by mutex_; at most kAhead
  bool ended_ = true;          // guarded by mutex_
  std::jthread worker_;        // last: it uses all of the above
};

}  // namespace trainer
