// Trains a softmax regression on the CPU from the batches of a chunkio::Loader: the smallest
// complete trainer. Nothing but the standard library and <chunkio/chunkio.hpp>.
//
//     chunkio-train-softmax TRAIN.h5 [TEST.h5]
//
// Held-out images come from TEST.h5, or are every fifth row of TRAIN.h5, which are then not
// trained on.

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <chunkio/chunkio.hpp>

namespace {

constexpr std::int64_t kHoldOutEvery = 5;
constexpr std::int64_t kMaxClasses = 65536;
/// Images are averaged down to at most this many cells a side.
constexpr std::int64_t kMaxCells = 16;

constexpr std::int64_t kBatch = 64;
constexpr double kRate = 10;

constexpr std::string_view kUsage =
    "usage: chunkio-train-softmax TRAIN.h5 [TEST.h5] [--epochs N] [--seed N] [--shuffle-labels]\n"
    "  --epochs N         passes over the training images (default 5)\n"
    "  --seed N           of the order and of --shuffle-labels (default 0)\n"
    "  --shuffle-labels   deal all labels anew, at random: accuracy must fall to chance\n";

struct Options {
  std::vector<std::string> files;
  std::int64_t epochs = 5;
  std::uint64_t seed = 0;
  bool shuffle_labels = false;
};

template <class T>
void parse_number(const std::string& option, std::string_view text, T& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) {
    throw std::invalid_argument(option + " " + std::string(text) + ": not a number");
  }
}

Options parse(std::span<char*> arguments) {
  Options options;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string argument = arguments[i];
    const std::string_view next = i + 1 < arguments.size() ? arguments[i + 1] : "";
    if (argument == "--shuffle-labels") {
      options.shuffle_labels = true;
    } else if (argument == "--epochs" || argument == "--seed") {
      if (argument == "--seed") parse_number(argument, next, options.seed);
      if (argument == "--epochs") parse_number(argument, next, options.epochs);
      ++i;
    } else if (argument.starts_with("--")) {
      throw std::invalid_argument("unknown option " + argument);
    } else {
      options.files.push_back(argument);
    }
  }
  if (options.epochs < 1) throw std::invalid_argument("--epochs must be at least 1");
  if (options.files.empty() || options.files.size() > 2) {
    throw std::invalid_argument("expected TRAIN.h5 and, if you have one, TEST.h5");
  }
  return options;
}

/// The label of every row of the file.
std::vector<std::int64_t> read_labels(const chunkio::Dataset& dataset) {
  const chunkio::DatasetInfo& info = dataset.info();
  if (!info.labels || info.labels->dtype != chunkio::DType::int64 ||
      info.labels->row_shape.rank() != 0) {
    throw std::runtime_error(info.path +
                             " has no class labels: pack a folder with one folder a class");
  }
  std::vector<std::int64_t> labels(static_cast<std::size_t>(dataset.size()));
  dataset.read_field(info.labels->name, 0, dataset.size(),
                     std::as_writable_bytes(std::span(labels)));
  const auto [lowest, highest] = std::minmax_element(labels.begin(), labels.end());
  if (*lowest < 0 || *highest >= kMaxClasses) {
    throw std::runtime_error(info.path + " has labels outside 0 to " +
                             std::to_string(kMaxClasses - 1) + ": they are not class numbers");
  }
  return labels;
}

/// Fisher-Yates: the same everywhere, unlike std::shuffle.
void permute(std::vector<std::int64_t>& labels, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  for (std::size_t i = labels.size(); i > 1; --i) std::swap(labels[i - 1], labels[random() % i]);
}

/// uint8 image [H,W,C] or [C,H,W] -> features [cells_y, cells_x, C]: cell averages, minus the
/// data set's mean, over its standard deviation, over the square root of their number, so that one
/// learning rate fits every image size.
class Features {
 public:
  explicit Features(const chunkio::DatasetInfo& info)
      : height_(info.height),
        width_(info.width),
        channels_(info.channels),
        nchw_(info.layout == chunkio::Layout::nchw),
        cells_y_(std::min(height_, kMaxCells)),
        cells_x_(std::min(width_, kMaxCells)) {
    const auto per_value = 1 / std::sqrt(static_cast<double>(size()));
    for (std::int64_t c = 0; c < channels_; ++c) {
      const auto i = static_cast<std::size_t>(c);
      // A file that other programs wrote may not say; any usual values do for images.
      const double mean = info.statistics ? info.statistics->mean[i] : 0.5;
      const double deviation = info.statistics ? std::max(info.statistics->std[i], 1e-3) : 0.25;
      offset_.push_back(static_cast<float>(mean));
      scale_.push_back(static_cast<float>(per_value / deviation));
    }
  }

  [[nodiscard]] std::int64_t size() const { return cells_y_ * cells_x_ * channels_; }

  void compute(std::span<const std::uint8_t> image, std::span<float> out) const {
    const std::int64_t channel_stride = nchw_ ? height_ * width_ : 1;
    const std::int64_t pixel_stride = nchw_ ? 1 : channels_;
    std::size_t next = 0;
    for (std::int64_t cell_y = 0; cell_y < cells_y_; ++cell_y) {
      const std::int64_t top = cell_y * height_ / cells_y_;
      const std::int64_t bottom = (cell_y + 1) * height_ / cells_y_;
      for (std::int64_t cell_x = 0; cell_x < cells_x_; ++cell_x) {
        const std::int64_t left = cell_x * width_ / cells_x_;
        const std::int64_t right = (cell_x + 1) * width_ / cells_x_;
        const auto weight = 1.0F / (255.0F * static_cast<float>((bottom - top) * (right - left)));
        for (std::int64_t c = 0; c < channels_; ++c) {
          std::int64_t sum = 0;
          for (std::int64_t y = top; y < bottom; ++y) {
            const std::int64_t row = c * channel_stride + y * width_ * pixel_stride;
            for (std::int64_t x = left; x < right; ++x) {
              sum += image[static_cast<std::size_t>(row + x * pixel_stride)];
            }
          }
          const auto i = static_cast<std::size_t>(c);
          out[next++] = (static_cast<float>(sum) * weight - offset_[i]) * scale_[i];
        }
      }
    }
  }

 private:
  std::int64_t height_, width_, channels_;
  bool nchw_;
  std::int64_t cells_y_, cells_x_;
  std::vector<float> offset_, scale_;  // per channel
};

/// Scores = W x + b, trained by plain stochastic gradient descent on the cross entropy.
class SoftmaxRegression {
 public:
  SoftmaxRegression(std::int64_t num_features, std::int64_t num_classes)
      : num_features_(static_cast<std::size_t>(num_features)),
        num_classes_(static_cast<std::size_t>(num_classes)),
        weights_(num_features_ * num_classes_),
        biases_(num_classes_),
        weight_gradient_(weights_.size()),
        bias_gradient_(biases_.size()) {}

  /// Index of the highest score.
  [[nodiscard]] std::int64_t predict(std::span<const float> features) const {
    const std::vector<float> scores = compute_scores(features);
    return std::max_element(scores.begin(), scores.end()) - scores.begin();
  }

  /// Takes an image into the next step. Returns its loss.
  double add(std::span<const float> features, std::int64_t label) {
    std::vector<float> scores = compute_scores(features);
    const float highest = *std::max_element(scores.begin(), scores.end());
    float sum = 0;
    for (float& score : scores) sum += score = std::exp(score - highest);
    const auto right = static_cast<std::size_t>(label);
    for (std::size_t k = 0; k < num_classes_; ++k) {
      const float error = scores[k] / sum - (k == right ? 1.0F : 0.0F);
      bias_gradient_[k] += error;
      float* gradient = &weight_gradient_[k * num_features_];
      for (std::size_t f = 0; f < num_features_; ++f) gradient[f] += error * features[f];
    }
    ++added_;
    return -std::log(std::max(scores[right] / sum, 1e-30F));
  }

  void step(double rate) {
    if (added_ == 0) return;
    const auto size = static_cast<float>(rate / static_cast<double>(added_));
    for (std::size_t i = 0; i < weights_.size(); ++i) weights_[i] -= size * weight_gradient_[i];
    // Biases see an input of 1 where a feature is 1/sqrt(num_features): a smaller step keeps them
    // stable.
    for (std::size_t k = 0; k < num_classes_; ++k) biases_[k] -= 0.1F * size * bias_gradient_[k];
    std::fill(weight_gradient_.begin(), weight_gradient_.end(), 0.0F);
    std::fill(bias_gradient_.begin(), bias_gradient_.end(), 0.0F);
    added_ = 0;
  }

 private:
  [[nodiscard]] std::vector<float> compute_scores(std::span<const float> features) const {
    std::vector<float> scores = biases_;
    for (std::size_t k = 0; k < num_classes_; ++k) {
      const float* weights = &weights_[k * num_features_];
      for (std::size_t f = 0; f < num_features_; ++f) scores[k] += weights[f] * features[f];
    }
    return scores;
  }

  std::size_t num_features_;
  std::size_t num_classes_;
  std::vector<float> weights_;  // [classes, features]
  std::vector<float> biases_;   // [classes]
  std::vector<float> weight_gradient_;
  std::vector<float> bias_gradient_;
  std::int64_t added_ = 0;
};

/// Calls use(features, label) for each image of a batch whose sample id `keep` selects.
template <class Keep, class Use>
void for_each(const chunkio::Batch& batch, const std::vector<std::int64_t>& labels,
              const Features& features, Keep keep, Use use) {
  const auto pixels = batch.images().values<std::uint8_t>();
  const auto ids = batch.sample_ids();
  const std::size_t image_bytes = pixels.size() / ids.size();
  std::vector<float> values(static_cast<std::size_t>(features.size()));
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (!keep(ids[i])) continue;
    features.compute(pixels.subspan(i * image_bytes, image_bytes), values);
    use(values, labels[static_cast<std::size_t>(ids[i])]);
  }
}

void run(const Options& options) {
  const chunkio::Dataset train_set = chunkio::Dataset::open(options.files.front());
  require_images(train_set.info());
  const bool has_test_file = options.files.size() == 2;
  const chunkio::Dataset test_set =
      has_test_file ? chunkio::Dataset::open(options.files.back()) : train_set;
  if (test_set.info().sample_shape() != train_set.info().sample_shape() ||
      test_set.info().layout != train_set.info().layout) {
    throw std::runtime_error(test_set.info().path + " holds images of another shape than " +
                             train_set.info().path);
  }
  if (!has_test_file && train_set.size() < kHoldOutEvery) {
    throw std::runtime_error(train_set.info().path + " has too few images to hold some out");
  }

  std::vector<std::int64_t> train_labels = read_labels(train_set);
  if (options.shuffle_labels) permute(train_labels, options.seed);
  std::vector<std::int64_t> test_labels = train_labels;
  if (has_test_file) {
    test_labels = read_labels(test_set);
    // The held-out ones too: then no classifier whatever can expect more than chance.
    if (options.shuffle_labels) permute(test_labels, options.seed + 1);
  }
  const std::int64_t num_classes =
      1 + std::max(*std::max_element(train_labels.begin(), train_labels.end()),
                   *std::max_element(test_labels.begin(), test_labels.end()));
  const auto held_out = [&](std::int64_t id) {
    return has_test_file || id % kHoldOutEvery == kHoldOutEvery - 1;
  };
  const auto trained_on = [&](std::int64_t id) {
    return has_test_file || id % kHoldOutEvery != kHoldOutEvery - 1;
  };

  chunkio::Loader train_loader(
      train_set,
      {.batch_size = kBatch, .seed = options.seed, .io = {.num_epochs = options.epochs}});
  chunkio::Loader test_loader(test_set, {.batch_size = kBatch,
                                         .order = {.mode = chunkio::OrderMode::sequential},
                                         .io = {.num_epochs = options.epochs}});

  const Features features(train_set.info());
  SoftmaxRegression model(features.size(), num_classes);
  std::printf("%lld classes, %lld features from images of %s\n",
              static_cast<long long>(num_classes), static_cast<long long>(features.size()),
              train_set.info().sample_shape().to_string().c_str());
  std::int64_t correct = 0;
  std::int64_t tested = 0;
  for (std::int64_t epoch = 0; epoch < options.epochs; ++epoch) {
    const auto start = std::chrono::steady_clock::now();
    double loss = 0;
    std::int64_t trained = 0;
    for (const chunkio::Batch& batch : train_loader.epoch(epoch)) {
      for_each(batch, train_labels, features, trained_on,
               [&](std::span<const float> values, std::int64_t label) {
                 loss += model.add(values, label);
                 ++trained;
               });
      model.step(kRate);
    }
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    const chunkio::LoaderStats stats = train_loader.epoch_stats(epoch);

    correct = tested = 0;
    for (const chunkio::Batch& batch : test_loader.epoch(epoch)) {
      for_each(batch, test_labels, features, held_out,
               [&](std::span<const float> values, std::int64_t label) {
                 correct += model.predict(values) == label ? 1 : 0;
                 ++tested;
               });
    }
    std::printf(
        "epoch %lld: loss %.3f, %.0f images/s, stalled %.1f %% of the time, held-out accuracy %.1f "
        "%%\n",
        static_cast<long long>(epoch), loss / static_cast<double>(trained),
        static_cast<double>(stats.images) / seconds.count(),
        100 * stats.stall_seconds / seconds.count(),
        100 * static_cast<double>(correct) / static_cast<double>(tested));
    std::fflush(stdout);
  }
  std::printf("held-out accuracy: %.1f %% (%lld of %lld images; guessing gives about %.1f %%)\n",
              100 * static_cast<double>(correct) / static_cast<double>(tested),
              static_cast<long long>(correct), static_cast<long long>(tested),
              100 / static_cast<double>(num_classes));
}

}  // namespace

int main(int argc, char** argv) {
  const std::span<char*> arguments(argv + 1, static_cast<std::size_t>(argc - 1));
  if (std::find(arguments.begin(), arguments.end(), std::string_view("--help")) !=
      arguments.end()) {
    std::fwrite(kUsage.data(), 1, kUsage.size(), stdout);
    return 0;
  }
  try {
    run(parse(arguments));
    return 0;
  } catch (const std::invalid_argument& error) {
    std::fprintf(stderr, "chunkio-train-softmax: %s\n%s", error.what(), kUsage.data());
    return 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "chunkio-train-softmax: %s\n", error.what());
    return 1;
  }
}
