// What both trainers take on the command line.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <CLI/CLI.hpp>

#include <chunkio/epoch_order.hpp>

namespace trainer {

/// Who brings images to the network.
enum class LoaderKind {
  device,  ///< chunkio::cuda::DeviceLoader: uint8 over the bus, everything else on the GPU.
  host,    ///< chunkio::Loader, chunkio::Normalizer on the CPU, copies from page-locked memory.
  naive,   ///< What is often written by hand: one read an image, float32 made by one worker,
           ///< copies from pageable memory.
};

std::string_view to_string(LoaderKind kind) noexcept;

struct Options {
  std::string train_file;
  std::string test_file;             // empty: nothing is held out
  std::optional<LoaderKind> loader;  // absent: device where there is a GPU, else host
  chunkio::OrderMode order = chunkio::OrderMode::chunk_shuffled;
  std::uint64_t seed = 0;
  std::int64_t epochs = 10;
  std::int64_t batch = 512;
  double learning_rate = 0.2;  // the highest, for 256 images a step
  std::int64_t width = 64;
  std::int64_t stem_stride = 1;
  std::int64_t echo = 1;
  std::int64_t echo_buffer_batches = 0;  // 0: 1, or 4 with echo
  std::int64_t limit_images = 0;         // 0: all
  bool augment = true;
  bool eval_each_epoch = true;                         // else after the last one only
  std::int64_t memory_budget = std::int64_t{1} << 30;  // bytes
  std::int64_t window_bytes = 0;  // 0: the library's default, at most a quarter of the budget
  bool direct_io = false;
  bool resident = true;  // device only: if it fits
  std::int64_t threads = 0;
  std::string json;  // empty: not written
};

/// Adds all options; what `options` has now is what the help shows as default. Parsing throws
/// CLI::ParseError, also for options that do not go together.
void add_options(CLI::App& app, Options& options);

}  // namespace trainer
