// The table of figures about the GPU path. What is timed was compared with the CPU first, bit for
// bit (log1p of dense rows: to a millionth). See gpu_case.hpp for the experiments.

#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>

#include "gpu/gpu_case.hpp"
#include "harness/machine.hpp"

namespace bench {
namespace {

struct GpuState {
  Options options = {.bytes = std::int64_t{2} << 30,
                     .folder = std::filesystem::temp_directory_path().string(),
                     .threads = 0,
                     .rounds = 9,
                     .batch_size = 512};
  std::string torch_file;
  std::optional<GpuRun> run;
  std::optional<ScratchFolder> scratch;
  ImageSize size = kImageSizes[0];
  std::optional<Case> images_of_size;

  /// Made when first asked for: the kernel needs none.
  const Case& images() {
    if (!images_of_size) images_of_size.emplace(make_case(options, *scratch, size));
    return *images_of_size;
  }
};

void add_options(GpuState& state, CLI::App& app) {
  add_rounds(app, state.options.rounds);
  add_bytes(app, "--bytes", state.options.bytes, "Image bytes of each file that is read");
  add_count(app, "--threads", state.options.threads, "Of the loader; 0: the CPUs, at most 8", 0);
  add_folder(app, state.options.folder);
  app.add_option("--torch", state.torch_file, "What compare_torch.py printed");
}

std::string version(int number) {
  return std::to_string(number / 1000) + "." + std::to_string(number % 1000 / 10);
}

void describe(const Options& options, Report& report) {
  cudaDeviceProp device{};
  check_cuda(cudaGetDeviceProperties(&device, 0), "cudaGetDeviceProperties");
  int driver = 0;
  int runtime = 0;
  check_cuda(cudaDriverGetVersion(&driver), "cudaDriverGetVersion");
  check_cuda(cudaRuntimeGetVersion(&runtime), "cudaRuntimeGetVersion");
  report.add_line(std::string(device.name) + ", compute capability " +
                  std::to_string(device.major) + "." + std::to_string(device.minor) + ", " +
                  std::to_string(device.multiProcessorCount) + " multiprocessors, L2 cache " +
                  std::to_string(device.l2CacheSize >> 20) + " MiB, " +
                  gibibytes(static_cast<std::int64_t>(device.totalGlobalMem)) + "; CUDA runtime " +
                  version(runtime) + ", driver for up to CUDA " + version(driver));
  report.add_line(
      "kernel: batches of 512 (218x178x3) and 65536 (32x32x3); uploads and files: batches of " +
      std::to_string(options.batch_size) + ", files of " + gibibytes(options.bytes) +
      " in the page cache, to float16 NCHW; " + std::to_string(options.rounds) +
      " interleaved rounds, median (range)");
}

nlohmann::ordered_json read_json(const std::string& path) {
  if (path.empty()) return nullptr;
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot read " + path);
  return nlohmann::ordered_json::parse(file);
}

}  // namespace

Suite gpu_suite() {
  const auto state = std::make_shared<GpuState>();
  // What has no image size of the table is measured beside the last.
  const auto once = [state](void (*measure)(const GpuRun&, Report&)) {
    return [state, measure](Report& report) {
      if (state->size.bytes() == kImageSizes[1].bytes()) measure(*state->run, report);
    };
  };
  return {
      .name = "gpu",
      .description = "Figures about the GPU path",
      .source = "gpu/gpu_suite.cpp",
      .add_options = [state](CLI::App& app) { add_options(*state, app); },
      .begin =
          [state](Report& report) {
            state->run.emplace(
                GpuRun{chunkio::device::open_gpu(0), state->options, read_json(state->torch_file)});
            describe(state->options, report);
            state->scratch.emplace(state->options.folder);
          },
      .prepare = [state](const ImageSize& size) { state->size = size; },
      .finish =
          [state] {
            if (state->images_of_size) std::filesystem::remove(state->images_of_size->path);
            state->images_of_size.reset();
          },
      .experiments = {{"kernel",
                       [state](Report& r) { measure_kernel(*state->run, state->size, r); }},
                      {"calls", once(measure_calls)},
                      {"resized-crops", once(measure_resized_crops)},
                      {"dense-rows", once(measure_dense_rows)},
                      {"uploads",
                       [state](Report& r) { measure_uploads(*state->run, state->images(), r); }},
                      {"file-to-device", [state](Report& r) {
                         measure_file_to_device(*state->run, state->images(), r);
                       }}}};
}

}  // namespace bench
