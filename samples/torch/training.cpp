#include "training.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <exception>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string_view>

#include <ATen/Context.h>
#include <ATen/autocast_mode.h>
#include <torch/cuda.h>
#include <torch/optim/sgd.h>
#include <torch/utils.h>

#include <chunkio/error.hpp>

#include "batch_source.hpp"
#include "compute_stream.hpp"
#include "epoch_report.hpp"
#include "gpu_utilization.hpp"
#include "network.hpp"
#include "stall_meter.hpp"

namespace trainer {
namespace {

/// Convolutions and matrix products in bfloat16 while it exists, on a GPU. The range of bfloat16 is
/// that of float32, so losses need not be scaled.
class MixedPrecision {
 public:
  explicit MixedPrecision(torch::Device device) : active_(device.is_cuda()) {
    if (!active_) return;
    at::autocast::set_autocast_enabled(at::kCUDA, true);
    at::autocast::set_autocast_dtype(at::kCUDA, at::kBFloat16);
    at::autocast::increment_nesting();
  }
  MixedPrecision(const MixedPrecision&) = delete;
  MixedPrecision& operator=(const MixedPrecision&) = delete;
  ~MixedPrecision() {
    if (!active_) return;
    // Weights were converted once for all their uses; they are about to change.
    if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
    at::autocast::set_autocast_enabled(at::kCUDA, false);
  }

 private:
  bool active_;
};

/// Sums on the device, read once: asking for a number waits for all the steps before it.
class Tally {
 public:
  explicit Tally(torch::Device device)
      : sums_(torch::zeros({2}, torch::TensorOptions().dtype(torch::kFloat64).device(device))) {}

  void add(const torch::Tensor& mean_loss, const torch::Tensor& correct, std::int64_t images) {
    sums_ += torch::stack(
        {mean_loss.detach().to(torch::kFloat64) * images, correct.to(torch::kFloat64)});
    images_ += images;
  }

  [[nodiscard]] std::int64_t images() const { return images_; }
  /// Waits for the device.
  [[nodiscard]] Score score() const {
    const torch::Tensor sums = sums_.cpu();
    const auto images = static_cast<double>(images_);
    return {sums[0].item<double>() / images, sums[1].item<double>() / images};
  }

 private:
  torch::Tensor sums_;
  std::int64_t images_ = 0;
};

/// The step size grows over the first fifth of all steps, and shrinks to zero over the others.
double rate_at(double highest, std::int64_t step, std::int64_t num_steps) {
  const double at = (static_cast<double>(step) + 1) / static_cast<double>(num_steps);
  constexpr double kPeak = 0.2;
  return highest * (at < kPeak ? at / kPeak : (1 - at) / (1 - kPeak));
}

void check_images(const chunkio::DatasetInfo& info, const NetworkShape& shape) {
  if (std::min(info.height, info.width) < shape.smallest_side()) {
    throw std::runtime_error(info.path + " has images of " + std::to_string(info.height) + "x" +
                             std::to_string(info.width) + "; with --stem-stride " +
                             std::to_string(shape.stem_stride) + " they need " +
                             std::to_string(shape.smallest_side()) + " pixels a side");
  }
}

torch::Device choose_device(std::optional<LoaderKind> loader) {
  if (torch::cuda::is_available()) return {torch::kCUDA, 0};
  if (loader == LoaderKind::device) {
    throw std::runtime_error(
        "--loader device needs a GPU, and LibTorch finds none; --loader host trains on the CPU");
  }
  return torch::kCPU;
}

Score evaluate(Network& network, const Task& task, const chunkio::Dataset& dataset,
               const Options& options, BatchRequest request) {
  request.training = false;
  if (request.kind == LoaderKind::naive) request.kind = LoaderKind::host;
  const auto source = make_batch_source(dataset, options, request);
  const torch::NoGradGuard no_gradients;
  network->eval();
  Tally tally(request.device);
  source->start_epoch(0);
  while (const std::optional<TrainingBatch> batch = source->next()) {
    const MixedPrecision mixed(request.device);
    const torch::Tensor scores = network(batch->images);
    tally.add(task.loss(scores, batch->labels), task.correct(scores, batch->labels),
              batch->labels.size(0));
  }
  network->train();
  return tally.score();
}

void train(const Trainer& trainer, const Options& options) {
  const chunkio::Dataset training = chunkio::Dataset::open(options.train_file);
  require_images(training.info());
  std::optional<chunkio::Dataset> held_out;
  if (!options.test_file.empty()) {
    held_out = chunkio::Dataset::open(options.test_file);
    if (held_out->info().sample_shape() != training.info().sample_shape() ||
        held_out->info().layout != training.info().layout) {
      throw std::runtime_error(options.test_file + " holds images of another shape than " +
                               options.train_file);
    }
  }
  const Task task = trainer.task(training, held_out ? &*held_out : nullptr);
  const NetworkShape shape{.channels = training.info().channels,
                           .width = options.width,
                           .stem_stride = options.stem_stride,
                           .outputs = task.outputs};
  check_images(training.info(), shape);

  const torch::Device device = choose_device(options.loader);
  use_own_stream(device);
  BatchRequest request{
      .kind = options.loader.value_or(device.is_cuda() ? LoaderKind::device : LoaderKind::host),
      .training = true,
      .label_dtype = task.label_dtype,
      .device = device};
  if (options.echo_buffer_batches > 1 && request.kind != LoaderKind::device) {
    throw std::runtime_error(
        "--echo-buffer-batches needs --loader device, and LibTorch finds no GPU");
  }
  std::unique_ptr<BatchSource> source;
  try {
    source = make_batch_source(training, options, request);
  } catch (const chunkio::Error& error) {
    // The library may have been built without CUDA, and LibTorch with it.
    if (options.loader || request.kind != LoaderKind::device ||
        error.code() != chunkio::ErrorCode::unsupported) {
      throw;
    }
    std::fprintf(stderr, "%s: %s; going on with --loader host\n", trainer.program.c_str(),
                 error.what());
    request.kind = LoaderKind::host;
    source = make_batch_source(training, options, request);
  }
  // Before the first epoch, because a file that cannot be written is known by now.
  Reporter reporter(trainer.program, options, request.kind);

  torch::manual_seed(options.seed);
  at::globalContext().setBenchmarkCuDNN(true);
  Network network(shape);
  network->to(device);
  for (torch::Tensor& parameter : network->parameters()) {
    if (parameter.dim() == 4) {
      parameter.set_data(parameter.contiguous(torch::MemoryFormat::ChannelsLast));
    }
  }
  const double highest = options.learning_rate * static_cast<double>(options.batch) / 256;
  torch::optim::SGD optimizer(
      network->parameters(),
      torch::optim::SGDOptions(highest).momentum(0.9).nesterov(true).weight_decay(5e-4));
  auto& rate = static_cast<torch::optim::SGDOptions&>(optimizer.param_groups().front().options());

  std::printf("%lld images of %s, %s; %s on the %s; images are %s\n",
              static_cast<long long>(options.limit_images > 0
                                         ? std::min(options.limit_images, training.size())
                                         : training.size()),
              training.info().sample_shape().to_string().c_str(), task.answers.c_str(),
              device.is_cuda() ? "bfloat16" : "float32", device.is_cuda() ? "GPU" : "CPU",
              source->description().c_str());
  std::fflush(stdout);

  const std::int64_t num_steps = options.epochs * source->num_steps();
  std::int64_t step = 0;
  StallMeter stall(device);
  GpuUtilization utilization(pci_bus_id(device));
  for (std::int64_t epoch = 0; epoch < options.epochs; ++epoch) {
    Tally tally(device);
    wait_for_stream(device);
    const auto start = std::chrono::steady_clock::now();
    utilization.start();
    stall.begin_epoch();
    source->start_epoch(epoch);
    while (const std::optional<TrainingBatch> batch = source->next()) {
      stall.begin_step();
      rate.lr(rate_at(highest, step++, num_steps));
      optimizer.zero_grad();
      torch::Tensor scores;
      torch::Tensor loss;
      {
        const MixedPrecision mixed(device);
        scores = network(batch->images);
        loss = task.loss(scores, batch->labels);
      }
      loss.backward();
      optimizer.step();
      {
        const torch::NoGradGuard no_gradients;
        tally.add(loss, task.correct(scores, batch->labels), batch->labels.size(0));
      }
      stall.end_step();
    }
    wait_for_stream(device);
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    EpochReport report;
    report.epoch = epoch;
    report.images = tally.images();
    report.seconds = seconds.count();
    report.stall_seconds = stall.stall_seconds();
    report.gpu_percent = utilization.mean();
    report.training = tally.score();
    if (held_out && (options.eval_each_epoch || epoch + 1 == options.epochs)) {
      report.held_out = evaluate(network, task, *held_out, options, request);
    }
    reporter.epoch(report);
    if (!std::isfinite(report.training.loss)) {
      throw std::runtime_error("the loss is not a number any more: try a smaller --lr than " +
                               std::to_string(options.learning_rate));
    }
  }
  reporter.all();
  const std::optional<std::int64_t> echo = reporter.echo_needed();
  if (echo && *echo > options.echo) {
    std::printf("the GPU waits for images: --echo %lld would keep it busy\n",
                static_cast<long long>(*echo));
    const std::string advice = source->advice();
    if (!advice.empty()) std::printf("the loader says: %s\n", advice.c_str());
  }
}

/// The first line: LibTorch adds where in its source an error came from.
std::string first_line(std::string_view text) {
  return std::string(text.substr(0, text.find('\n')));
}

}  // namespace

int run_trainer(const Trainer& trainer, int argc, char** argv) {
  CLI::App app(trainer.purpose, trainer.program);
  Options options = trainer.defaults;
  add_options(app, options);
  try {
    app.parse(argc, argv);
    train(trainer, options);
    return 0;
  } catch (const CLI::CallForHelp& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& error) {
    std::fprintf(stderr, "%s: %s (--help)\n", trainer.program.c_str(), error.what());
    return 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", trainer.program.c_str(), first_line(error.what()).c_str());
    return 1;
  }
}

}  // namespace trainer
