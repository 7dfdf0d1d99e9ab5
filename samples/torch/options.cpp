#include "options.hpp"

#include <limits>

namespace trainer {
namespace {

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

CLI::Option* add_size(CLI::App& app, const char* name, std::int64_t& bytes, const char* what) {
  return app.add_option(name, bytes, what)
      ->transform(CLI::AsSizeValue(/*kb_is_1000=*/false))
      ->check(CLI::Range(std::int64_t{1}, kMost))
      ->type_name("SIZE");
}

/// One of two words.
void add_switch(CLI::App& app, const char* name, bool& value, const char* on, const char* off,
                const char* what) {
  app.add_option_function<std::string>(
         name, [&value, on](const std::string& word) { value = word == on; }, what)
      ->check(CLI::IsMember({on, off}))
      ->default_str(on);
}

}  // namespace

std::string_view to_string(LoaderKind kind) noexcept {
  switch (kind) {
    case LoaderKind::device:
      return "device";
    case LoaderKind::host:
      return "host";
    case LoaderKind::naive:
      return "naive";
  }
  return "?";
}

void add_options(CLI::App& app, Options& options) {
  app.option_defaults()->take_last();
  const auto add_count = [&](const char* name, std::int64_t& value, std::int64_t lowest,
                             std::int64_t highest, const char* what) {
    return app.add_option(name, value, what)->check(CLI::Range(lowest, highest))->type_name("N");
  };
  app.add_option("TRAIN.h5", options.train_file, "The images to train on")
      ->required()
      ->type_name("");
  app.add_option("TEST.h5", options.test_file, "Images that are held out")->type_name("");
  app.add_option_function<std::string>(
         "--loader",
         [&options](const std::string& word) {
           for (const LoaderKind kind : {LoaderKind::device, LoaderKind::host, LoaderKind::naive}) {
             if (to_string(kind) == word) options.loader = kind;
           }
         },
         "device: chunkio::cuda::DeviceLoader, which needs a GPU; host: chunkio::Loader, and "
         "normalising on the CPU; naive: one read an image, float32 by one worker, pageable copies "
         "(default: device where there is a GPU, else host)")
      ->check(CLI::IsMember({"device", "host", "naive"}));
  app.add_option_function<std::string>(
         "--order",
         [&options](const std::string& word) {
           options.order =
               word == "random" ? chunkio::OrderMode::random : chunkio::OrderMode::chunk_shuffled;
         },
         "random is one permutation of all images")
      ->check(CLI::IsMember({"chunk_shuffled", "random"}))
      ->default_str("chunk_shuffled");
  app.add_option("--seed", options.seed, "Of order, crops, flips and the network")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  add_count("--epochs", options.epochs, 1, 1'000'000, "Passes over the training images")
      ->capture_default_str();
  add_count("--batch", options.batch, 2, 1 << 20, "Images a step")->capture_default_str();
  app.add_option("--lr", options.learning_rate, "Highest step size, for 256 images a step")
      ->check(CLI::Range(0.0, 1e6))
      ->capture_default_str();
  add_count("--width", options.width, 1, 1024, "Channels of the first convolution")
      ->capture_default_str();
  add_count("--stem-stride", options.stem_stride, 1, 16,
            "The first convolution makes images N times smaller a side")
      ->capture_default_str();
  app.add_flag("!--no-augment", options.augment, "No random crops and flips");
  add_count("--limit-images", options.limit_images, 1, kMost,
            "Train on N images, taken evenly from the file");
  add_switch(app, "--eval", options.eval_each_epoch, "each", "last",
             "Look at TEST.h5 after each epoch, or after the last one");
  add_count("--echo", options.echo, 1, 1024,
            "Use each image N times an epoch, cropped and flipped anew")
      ->capture_default_str();
  add_count("--echo-buffer-batches", options.echo_buffer_batches, 1, 1024,
            "Batches that echoing shuffles among each other (device; default 4 with --echo)");
  add_size(app, "--memory-budget", options.memory_budget,
           "Of the loader, in host memory (default 1GiB); so much again while TEST.h5 is read");
  add_size(app, "--window-bytes", options.window_bytes,
           "Images mixed together (default 256MiB, at most a quarter of the budget)");
  app.add_flag("--direct-io", options.direct_io, "Bypass the page cache");
  add_switch(app, "--resident", options.resident, "auto", "off",
             "Keep the images on the GPU if they fit there");
  add_count("--threads", options.threads, 1, 1024, "Of the loader (default: the CPUs, at most 8)");
  app.add_option("--json", options.json, "Also write one line of JSON an epoch, and one for all")
      ->type_name("FILE");
  app.footer("Exit codes: 0 done, 1 failed (a file, a GPU that is not there), 2 wrong usage.");
  app.callback([&options] {
    if (options.loader == LoaderKind::naive && options.echo > 1) {
      throw CLI::ValidationError("--echo", "needs --loader device or host");
    }
    if (options.echo_buffer_batches > 1 && options.loader && options.loader != LoaderKind::device) {
      throw CLI::ValidationError("--echo-buffer-batches", "needs --loader device");
    }
  });
}

}  // namespace trainer
