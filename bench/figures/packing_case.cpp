#include "figures/packing_case.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <span>
#include <stdexcept>
#include <system_error>

#include <chunkio/dataset.hpp>
#include <chunkio/loader.hpp>

#include "base/positional_io.hpp"
#include "base/stopwatch.hpp"
#include "harness/child_process.hpp"
#include "harness/in_parallel.hpp"

namespace bench {
namespace {

void read_all(const JpegFolder& images) {
  FileReader reader;
  for (const std::string& file : images.files) static_cast<void>(reader.read(file));
}

void sync(const std::string& path) {
  const chunkio::base::FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid() || ::fsync(file.get()) != 0) {
    throw std::system_error(errno, std::generic_category(), path);
  }
}

}  // namespace

const JpegFolder& PackingCase::images(const ImageSize& size) {
  const bool is_large = size.height == kLarge.height;
  std::optional<JpegFolder>& folder = is_large ? large_ : small_;
  if (!folder) {
    if (!is_large && !options.small_folder.empty()) {
      folder = find_jpeg_folder(options.small_folder, size);
    } else {
      folder = draw_jpeg_folder(scratch.file(std::string(size.name) + "-jpeg"), size,
                                is_large ? options.large_images : options.small_images);
    }
    read_all(*folder);
  }
  return *folder;
}

PackRun PackingCase::run_h5pack(std::vector<std::string> arguments) const {
  arguments.insert(arguments.begin(), options.h5pack);
  for (const char* word : {"--json", "--quiet"}) arguments.emplace_back(word);
  if (arguments[1] != "verify") {
    arguments.insert(arguments.end(), {"--threads", std::to_string(options.threads)});
  }
  settle(scratch.file(""));
  PackRun run;
  chunkio::base::Stopwatch watch;
  const ChildResult result = run_child(arguments);
  run.seconds = watch.lap();
  if (result.exit_code != 0) throw std::runtime_error("h5pack: " + result.complaint());
  run.report = nlohmann::ordered_json::parse(result.out);
  if (run.report.contains("outputs")) {
    for (const auto& output : run.report["outputs"]) {
      run.read_back_seconds += output.at("read_back_seconds").get<double>();
    }
  }
  return run;
}

PackRun PackingCase::pack_folder(const JpegFolder& images, const std::string& output) const {
  std::filesystem::remove(output);
  return run_h5pack({"folder", images.path, "-o", output});
}

void settle(const std::string& folder) {
  const chunkio::base::FileDescriptor any(
      ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!any.valid() || ::syncfs(any.get()) != 0) {
    throw std::system_error(errno, std::generic_category(), folder);
  }
}

double copy_files(const PackingCase& packing, const std::vector<std::string>& files) {
  const std::string target = packing.scratch.file("copy");
  std::filesystem::remove_all(target);
  std::filesystem::create_directory(target);
  settle(target);
  std::vector<std::string> arguments = {"cp", "--reflink=never"};
  arguments.insert(arguments.end(), files.begin(), files.end());
  arguments.push_back(target);
  chunkio::base::Stopwatch watch;
  const ChildResult result = run_child(arguments);
  if (result.exit_code != 0) throw std::runtime_error("cp: " + result.complaint());
  for (const std::string& file : files) {
    sync((std::filesystem::path(target) / std::filesystem::path(file).filename()).string());
  }
  sync(target);
  const double seconds = watch.lap();
  std::filesystem::remove_all(target);
  return seconds;
}

void check_packed(const std::string& path, const JpegFolder& images, std::int64_t threads) {
  const chunkio::Dataset dataset = chunkio::Dataset::open(path);
  if (dataset.size() != images.count()) {
    throw std::runtime_error(path + " holds " + std::to_string(dataset.size()) + " of " +
                             std::to_string(images.count()) + " images");
  }
  std::vector<std::int64_t> source(images.files.size());
  dataset.read_field("source_index", 0, dataset.size(), std::as_writable_bytes(std::span(source)));
  std::vector<bool> seen(source.size());
  chunkio::Loader loader(dataset, {.batch_size = 64,
                                   .order = {.mode = chunkio::OrderMode::sequential},
                                   .io = {.num_epochs = 1}});
  const auto sample_bytes = static_cast<std::size_t>(dataset.info().sample_bytes());
  for (const chunkio::Batch& batch : loader.epoch(0)) {
    const auto rows = batch.sample_ids();
    for (const std::int64_t row : rows) {
      seen.at(static_cast<std::size_t>(source.at(static_cast<std::size_t>(row)))) = true;
    }
    in_parallel(batch.size(), threads, [&] {
      return [&, files = FileReader(), decoder = JpegReader()](std::int64_t i) mutable {
        const auto row = static_cast<std::size_t>(rows[static_cast<std::size_t>(i)]);
        const std::string& file = images.files[static_cast<std::size_t>(source[row])];
        const auto pixels = decoder.decode(files.read(file));
        const std::byte* const packed =
            batch.images().data() + static_cast<std::size_t>(i) * sample_bytes;
        if (pixels.size() != sample_bytes ||
            std::memcmp(pixels.data(), packed, sample_bytes) != 0) {
          throw std::runtime_error(path + " holds other pixels than " + file);
        }
      };
    });
  }
  for (const bool is_there : seen) {
    if (!is_there) throw std::runtime_error(path + " leaves out images");
  }
}

}  // namespace bench
