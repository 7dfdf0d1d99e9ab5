#include "options.hpp"

#include <charconv>
#include <cmath>
#include <limits>
#include <vector>

namespace trainer {
namespace {

template <class T>
T parse_number(const std::string& option, std::string_view text, T lowest,
               T highest = std::numeric_limits<T>::max()) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() ||
      !(value >= lowest && value <= highest)) {
    throw UsageError(option + " " + std::string(text) + ": not a number in range");
  }
  return value;
}

/// "65536", "64KiB", "64MiB" or "64GiB".
std::int64_t parse_bytes(const std::string& option, std::string_view text) {
  constexpr std::string_view units[] = {"KiB", "MiB", "GiB"};
  int shift = 0;
  std::string_view digits = text;
  for (int i = 0; i < 3; ++i) {
    if (text.ends_with(units[i])) {
      shift = 10 * (i + 1);
      digits.remove_suffix(units[i].size());
    }
  }
  const auto highest = std::numeric_limits<std::int64_t>::max() >> shift;
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc{} || end != digits.data() + digits.size() || value < 1 ||
      value > highest) {
    throw UsageError(option + " " + std::string(text) + ": not a size such as 512MiB");
  }
  return value << shift;
}

template <class Value, std::size_t kCount>
Value parse_word(const std::string& option, std::string_view text,
                 const std::pair<std::string_view, Value> (&words)[kCount]) {
  std::string known;
  for (const auto& [word, value] : words) {
    if (word == text) return value;
    known += (known.empty() ? "" : ", ") + std::string(word);
  }
  throw UsageError(option + " " + std::string(text) + ": expected one of " + known);
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

Options parse_options(std::span<char*> arguments, Options options) {
  std::vector<std::string> files;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string argument = arguments[i];
    const auto value = [&]() -> std::string_view {
      if (++i == arguments.size()) throw UsageError(argument + " needs a value");
      return arguments[i];
    };
    const auto count = [&](std::int64_t lowest, std::int64_t highest) {
      return parse_number<std::int64_t>(argument, value(), lowest, highest);
    };
    if (argument == "--help" || argument == "-h") {
      options.help = true;
      return options;
    } else if (argument == "--loader") {
      options.loader = parse_word<LoaderKind>(argument, value(),
                                              {{"device", LoaderKind::device},
                                               {"host", LoaderKind::host},
                                               {"naive", LoaderKind::naive}});
    } else if (argument == "--order") {
      options.order =
          parse_word<chunkio::OrderMode>(argument, value(),
                                         {{"chunk_shuffled", chunkio::OrderMode::chunk_shuffled},
                                          {"random", chunkio::OrderMode::random}});
    } else if (argument == "--eval") {
      options.eval_each_epoch =
          parse_word<bool>(argument, value(), {{"each", true}, {"last", false}});
    } else if (argument == "--resident") {
      options.resident = parse_word<bool>(argument, value(), {{"auto", true}, {"off", false}});
    } else if (argument == "--seed") {
      options.seed = parse_number<std::uint64_t>(argument, value(), 0);
    } else if (argument == "--epochs") {
      options.epochs = count(1, 1'000'000);
    } else if (argument == "--batch") {
      options.batch = count(2, 1 << 20);
    } else if (argument == "--lr") {
      options.learning_rate = parse_number<double>(argument, value(), 0, 1e6);
    } else if (argument == "--width") {
      options.width = count(1, 1024);
    } else if (argument == "--stem-stride") {
      options.stem_stride = count(1, 16);
    } else if (argument == "--echo") {
      options.echo = count(1, 1024);
    } else if (argument == "--big-batch") {
      options.big_batch = count(1, 1024);
    } else if (argument == "--limit-images") {
      options.limit_images = count(1, std::numeric_limits<std::int64_t>::max());
    } else if (argument == "--threads") {
      options.threads = count(1, 1024);
    } else if (argument == "--memory-budget") {
      options.memory_budget = parse_bytes(argument, value());
    } else if (argument == "--window-bytes") {
      options.window_bytes = parse_bytes(argument, value());
    } else if (argument == "--direct-io") {
      options.direct_io = true;
    } else if (argument == "--no-augment") {
      options.augment = false;
    } else if (argument == "--json") {
      options.json = value();
      if (options.json.empty()) throw UsageError("--json needs the name of a file");
    } else if (argument.starts_with("-")) {
      throw UsageError("unknown option " + argument);
    } else {
      files.push_back(argument);
    }
  }
  if (files.empty() || files.size() > 2) {
    throw UsageError("expected TRAIN.h5 and, if you have one, TEST.h5");
  }
  options.train_file = files.front();
  if (files.size() == 2) options.test_file = files.back();
  if (options.loader == LoaderKind::naive && options.echo > 1) {
    throw UsageError("--echo needs --loader device or host");
  }
  if (options.big_batch > 1 && options.loader && options.loader != LoaderKind::device) {
    throw UsageError("--big-batch needs --loader device");
  }
  return options;
}

std::string describe_options(const Options& defaults) {
  const auto number = [](std::int64_t value) { return std::to_string(value); };
  std::string lr = std::to_string(defaults.learning_rate);
  lr.erase(lr.find_last_not_of('0') + 1);
  return "  --loader KIND        device (chunkio::cuda::DeviceLoader; needs a GPU), host "
         "(chunkio::Loader, and\n"
         "                       normalising on the CPU) or naive (one read an image, float32 by "
         "one worker,\n"
         "                       pageable copies); default: device where there is a GPU, else "
         "host\n"
         "  --order MODE         chunk_shuffled (default) or random: one permutation of all "
         "pictures\n"
         "  --seed N             of order, crops, flips and the network (default 0)\n"
         "  --epochs N           passes over the training images (default " +
         number(defaults.epochs) +
         ")\n"
         "  --batch N            images a step (default " +
         number(defaults.batch) +
         ")\n"
         "  --lr X               highest step size, for 256 images a step (default " +
         lr +
         ")\n"
         "  --width N            channels of the first convolution (default " +
         number(defaults.width) +
         ")\n"
         "  --stem-stride N      the first convolution makes images N times smaller a side "
         "(default " +
         number(defaults.stem_stride) +
         ")\n"
         "  --no-augment         no random crops and flips\n"
         "  --limit-images N     train on N images, taken evenly from the file\n"
         "  --eval WHEN          look at TEST.h5 after each epoch (default) or after the last one\n"
         "  --echo N             use each image N times an epoch, cropped and flipped anew\n"
         "  --big-batch N        batches that echoing shuffles among each other (device; default 4 "
         "with --echo)\n"
         "  --memory-budget SIZE of the loader, in host memory (default 1GiB); so much again while "
         "TEST.h5 is read\n"
         "  --window-bytes SIZE  images mixed together (default 256MiB, at most a quarter of the "
         "budget)\n"
         "  --direct-io          bypass the page cache\n"
         "  --resident auto|off  keep the images on the GPU if they fit there (default auto)\n"
         "  --threads N          of the loader (default: the CPUs, at most 8)\n"
         "  --json FILE          also write one line of JSON for each epoch, and one for all\n"
         "\n"
         "Exit codes: 0 done, 1 failed (a file, a GPU that is not there), 2 wrong usage.\n";
}

}  // namespace trainer
