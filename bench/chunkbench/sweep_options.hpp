/// What a sweep is asked for.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <chunkio/dataset.hpp>
#include <chunkio/dataset_writer.hpp>
#include <chunkio/epoch_order.hpp>

#include "chunkbench/trial.hpp"

namespace bench {

struct SweepOptions {
  // The images.
  std::string file = {};  ///< Empty: made up.
  chunkio::OpenOptions open = {};
  std::int64_t num_samples = 0;  ///< Of made-up images; of FILE at most so many, 0: all.
  std::int64_t height = 0, width = 0, channels = 0;  ///< Of made-up images.
  chunkio::ChunkFilter filter = {};                  ///< Of the files that are measured.

  // What is combined with what.
  std::vector<std::int64_t> chunk_bytes = {};
  std::vector<std::int64_t> cache_bytes = {};
  std::vector<chunkio::OrderMode> orders = {};
  std::vector<std::string> sources = {};  ///< As Cell::source.
  std::vector<std::int64_t> threads = {};

  // How it is measured.
  std::int64_t rounds = 5;
  /// 0 images: two of the largest windows; 0 random images: eight batches.
  TrialSettings trial = {.seed = 7, .seconds = 4};
  std::string throttled_device = {};  ///< What was done to the device; empty: nothing.

  // Where things go.
  std::string scratch = {};  ///< A folder for the files that are measured.
  std::string output = {};
  std::string csv = {};  ///< Empty: none.
  bool go_on = false;
  bool force = false;
  bool quiet = false;
};

}  // namespace bench
