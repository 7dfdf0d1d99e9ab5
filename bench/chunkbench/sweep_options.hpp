/// What a sweep is asked for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <chunkio/dataset.hpp>
#include <chunkio/dataset_writer.hpp>
#include <chunkio/disk_limit.hpp>
#include <chunkio/epoch_order.hpp>

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
  bool cold = true;
  std::int64_t rounds = 5;
  std::int64_t batch_size = 256;
  std::uint64_t seed = 7;
  std::int64_t images_per_trial = 0;  ///< 0: two of the largest windows.
  std::int64_t random_images = 0;     ///< In random order; 0: eight batches.
  double trial_seconds = 4;
  std::optional<chunkio::DiskLimit> limit = {};
  std::optional<std::int64_t> memory_limit = {};
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
