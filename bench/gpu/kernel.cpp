// The table of figures about the GPU path: the kernel against copies in device memory and PyTorch,
// uploads against bare copies to the device, and DeviceLoader against its slower part.
//
// Every figure is a ratio of two things interleaved in the same round; the median and range
// of the rounds are printed, with the target and whether the median meets it. What is timed was
// compared with the CPU first, bit for bit. See gpu_case.hpp for the parts.
//
// Arguments are taken apart by hand: CLI11 is one package less to carry to a GPU host.

#include <charconv>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <chunkio/error.hpp>

#include "gpu_case.hpp"
#include "machine.hpp"
#include "write_report.hpp"

namespace bench {
namespace {

constexpr const char* kUsage =
    "usage: kernel [--rounds N] [--bytes N] [--threads N] [--dir FOLDER] [--torch FILE]\n"
    "              [--json FILE] [--markdown FILE]\n"
    "\n"
    "Prints the table of figures about the GPU path.\n"
    "\n"
    "  --rounds N       interleaved rounds, 5 or more for a figure to quote (9)\n"
    "  --bytes N        image bytes of each file that is read (2147483648)\n"
    "  --threads N      of the loader (0: the CPUs, at most 8)\n"
    "  --dir FOLDER     where the files go; they are removed at the end\n"
    "  --torch FILE     what compare_torch.py printed\n"
    "  --json FILE      also write everything to this file\n"
    "  --markdown FILE  also write the table to its section of this file\n";

class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct Arguments {
  Options options;
  std::string torch;
  std::string json;
  std::string markdown;
  bool help = false;
};

std::int64_t parse_number(const std::string& name, std::string_view text, std::int64_t lowest) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < lowest) {
    throw UsageError(name + " needs a number from " + std::to_string(lowest) + " on, got '" +
                     std::string(text) + "'");
  }
  return value;
}

Arguments parse(const std::vector<std::string>& arguments) {
  Arguments parsed;
  Options& options = parsed.options;
  options.bytes = std::int64_t{2} << 30;
  options.folder = std::filesystem::temp_directory_path().string();
  options.threads = 0;
  options.rounds = 9;
  options.batch_size = 512;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& name = arguments[i];
    if (name == "--help" || name == "-h") {
      parsed.help = true;
      return parsed;
    }
    if (i + 1 == arguments.size()) throw UsageError("unknown argument, or no value: " + name);
    const std::string& value = arguments[++i];
    if (name == "--rounds") {
      options.rounds = parse_number(name, value, 1);
    } else if (name == "--bytes") {
      options.bytes = parse_number(name, value, 1 << 20);
    } else if (name == "--threads") {
      options.threads = parse_number(name, value, 0);
    } else if (name == "--dir") {
      options.folder = value;
    } else if (name == "--torch") {
      parsed.torch = value;
    } else if (name == "--json") {
      parsed.json = value;
    } else if (name == "--markdown") {
      parsed.markdown = value;
    } else {
      throw UsageError("unknown argument: " + name);
    }
  }
  return parsed;
}

std::string version(int number) {
  return std::to_string(number / 1000) + "." + std::to_string(number % 1000 / 10);
}

void describe_gpu(Report& report) {
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
}

nlohmann::ordered_json read_json(const std::string& path) {
  if (path.empty()) return nullptr;
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot read " + path);
  return nlohmann::ordered_json::parse(file);
}

/// One experiment that fails does not end the others.
template <class Measure>
void attempt(const char* name, const PictureSize& size, Report& report, Measure measure) {
  try {
    measure();
  } catch (const std::exception& error) {
    report.add({std::string("experiment '") + name + "'", size.name, {}, {}, error.what(), true});
  }
}

int run(const Arguments& arguments) {
  const Options& options = arguments.options;
  const GpuRun run{chunkio::device::open_gpu(0), options, read_json(arguments.torch)};
  Report report;
  describe_machine(report);
  describe_gpu(report);
  report.add_line(
      "kernel: batches of 512 (218x178x3) and 65536 (32x32x3); uploads and files: batches of " +
      std::to_string(options.batch_size) + ", files of " + gibibytes(options.bytes) +
      " in the page cache, to float16 NCHW; " + std::to_string(options.rounds) +
      " interleaved rounds, median (range)");
  const ScratchFolder scratch(options.folder);
  for (const PictureSize& size : kPictureSizes) {
    std::printf("\n%s, %lldx%lldx%lld\n", size.name, static_cast<long long>(size.height),
                static_cast<long long>(size.width), static_cast<long long>(size.channels));
    attempt("kernel", size, report, [&] { measure_kernel(run, size, report); });
    attempt("file", size, report, [&] {
      const Case pictures = make_case(options, scratch, size);
      attempt("uploads", size, report, [&] { measure_uploads(run, pictures, report); });
      attempt("file to device", size, report,
              [&] { measure_file_to_device(run, pictures, report); });
      std::filesystem::remove(pictures.path);
    });
    // Whatever ends the program during the next size, this one's figures are there.
    write_report(report, "gpu/kernel", arguments.json, arguments.markdown);
  }
  return report.anything_failed() ? 1 : 0;
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  try {
    const bench::Arguments arguments = bench::parse({argv + 1, argv + argc});
    if (arguments.help) {
      std::fputs(bench::kUsage, stdout);
      return 0;
    }
    return bench::run(arguments);
  } catch (const bench::UsageError& error) {
    std::fprintf(stderr, "kernel: %s\n%s", error.what(), bench::kUsage);
    return 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "kernel: %s\n", error.what());
    return 1;
  }
}
