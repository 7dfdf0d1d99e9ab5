#include "chunkbench/scratch_files.hpp"

#include <sys/statvfs.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <numeric>

#include <nlohmann/json.hpp>

#include <chunkio/chunk_layout.hpp>
#include <chunkio/dataset_writer.hpp>
#include <chunkio/error.hpp>
#include <chunkio/loader.hpp>

#include "cli/byte_size.hpp"
#include "cli/progress.hpp"
#include "cli/quote.hpp"
#include "cli/stop_signal.hpp"
#include "h5pack/pack/repacker.hpp"
#include "harness/drawn_images.hpp"
#include "harness/noise.hpp"

namespace bench {
namespace {

using chunkio::Error;
using chunkio::ErrorCode;
using cli::format_bytes;

constexpr std::int64_t kClasses = 10;
/// Beside the pixels: structure, labels, and what the file system keeps for itself.
constexpr std::int64_t kSpareBytes = std::int64_t{16} << 20;

std::string size_text(std::int64_t height, std::int64_t width, std::int64_t channels) {
  return std::to_string(height) + "x" + std::to_string(width) + "x" + std::to_string(channels);
}

/// Sorted by class, as a folder that was packed as it is listed: what a window has to make up for.
chunkio::FieldData sorted_labels(std::int64_t num_samples) {
  chunkio::FieldData labels;
  labels.info = {.name = "labels", .dtype = chunkio::DType::int64};
  labels.values.resize(static_cast<std::size_t>(num_samples) * sizeof(std::int64_t));
  for (std::int64_t i = 0; i < num_samples; ++i) {
    const std::int64_t label = i * kClasses / num_samples;
    std::memcpy(labels.values.data() + static_cast<std::size_t>(i) * sizeof(label), &label,
                sizeof(label));
  }
  return labels;
}

/// What tells these images from others, whatever the file is called.
std::string identity_of(const chunkio::Dataset& dataset) {
  const chunkio::Loader loader(
      dataset, {.batch_size = 1,
                .order = {.mode = chunkio::OrderMode::sequential, .window_bytes = 1},
                .memory = {.budget = std::int64_t{1} << 50},
                .io = {.num_threads = 1, .num_epochs = 1}});
  return nlohmann::json::parse(loader.state()).at("fingerprint").dump();
}

chunkio::WriterOptions writer_options(std::int64_t chunk_samples, const SweepOptions& options) {
  return {.chunk_samples = chunk_samples, .filter = options.filter};
}

void check_space(const Images& images, std::size_t count, const SweepOptions& options) {
  struct ::statvfs system {};
  if (::statvfs(options.scratch.c_str(), &system) != 0) return;  // making the folder says why
  const auto free =
      static_cast<std::int64_t>(system.f_bavail) * static_cast<std::int64_t>(system.f_frsize);
  const std::int64_t wanted =
      static_cast<std::int64_t>(count) * (images.description().bytes + kSpareBytes);
  // How small a filter makes them is not known before.
  if (options.filter.deflate_level > 0 || wanted <= free) return;
  throw Error(ErrorCode::no_space,
              "the images in " + std::to_string(count) + " chunk sizes need " +
                  format_bytes(wanted) + " in " + cli::quote(options.scratch) + ", where " +
                  format_bytes(free) +
                  " are free; choose another --scratch, fewer --chunk-bytes or fewer --pictures");
}

}  // namespace

std::vector<ChunkSize> choose_chunks(std::span<const std::int64_t> bytes, std::int64_t sample_bytes,
                                     std::int64_t num_samples, bool filtered,
                                     std::vector<std::string>& notes) {
  constexpr std::int64_t kLargestFiltered = std::int64_t{256} << 20;
  std::vector<ChunkSize> chunks;
  for (const std::int64_t wanted : bytes) {
    const std::int64_t samples = chunkio::choose_chunk_samples(sample_bytes, num_samples, wanted);
    const std::int64_t taken = samples * sample_bytes;
    if (filtered && taken > kLargestFiltered) {
      throw Error(ErrorCode::invalid_argument, "--chunk-bytes " + format_bytes(wanted) +
                                                   " with --filter: chunks have at most " +
                                                   format_bytes(kLargestFiltered) + " then");
    }
    const ChunkSize chunk = {std::max(wanted, sample_bytes), samples};
    const bool twin = std::any_of(chunks.begin(), chunks.end(),
                                  [&](const ChunkSize& other) { return other.samples == samples; });
    const std::string name = "chunks of " + format_bytes(wanted);
    const std::string images = samples == 1 ? "1 image" : std::to_string(samples) + " images";
    if (twin) {
      notes.push_back(name + " would have " + images + " like others, and are left out");
      continue;
    }
    if (wanted < sample_bytes) {
      notes.push_back(name + " do not hold an image of " + std::to_string(sample_bytes) +
                      " bytes; taken: 1 image");
    } else if (taken != wanted) {
      notes.push_back(name + " have " + images + ", " + std::to_string(taken) + " bytes" +
                      (samples == num_samples ? ": all of them" : ""));
    }
    chunks.push_back(chunk);
  }
  return chunks;
}

Images::Images(const SweepOptions& options) {
  if (options.file.empty()) {
    const double image = static_cast<double>(options.height) * static_cast<double>(options.width) *
                         static_cast<double>(options.channels);
    if (image > 0x1p30 || image * static_cast<double>(options.num_samples) > 0x1p50) {
      throw Error(ErrorCode::invalid_argument,
                  "--synthetic " + std::to_string(options.num_samples) + "x" +
                      size_text(options.height, options.width, options.channels) +
                      " is too large: an image has at most 1 GiB, all of them 1 PiB");
    }
    sample_bytes_ = options.height * options.width * options.channels;
    description_ = {.name = "synthetic",
                    .shape = {options.num_samples, options.height, options.width, options.channels},
                    .bytes = options.num_samples * sample_bytes_,
                    .identity = "synthetic 1",
                    .labels = "10 classes, sorted"};
  } else {
    dataset_ =
        std::make_shared<chunkio::Dataset>(chunkio::Dataset::open(options.file, options.open));
    const chunkio::DatasetInfo& info = dataset_->info();
    require_images(info);
    sample_bytes_ = info.sample_bytes();
    const std::int64_t count = options.num_samples == 0
                                   ? info.num_samples
                                   : std::min(options.num_samples, info.num_samples);
    description_ = {.name = std::filesystem::path(options.file).filename().string(),
                    .shape = {count, info.height, info.width, info.channels},
                    .bytes = count * sample_bytes_,
                    .identity = identity_of(*dataset_),
                    .labels = info.labels ? "those of the file" : ""};
  }
  if (options.filter.shuffle) description_.filters.emplace_back("shuffle");
  if (options.filter.deflate_level > 0) description_.filters.emplace_back("deflate");
}

std::vector<std::string> Images::files() const {
  if (!dataset_) return {};
  const chunkio::DatasetInfo& info = dataset_->info();
  std::vector<std::string> paths;
  for (const chunkio::ShardFile& shard : info.shards) paths.push_back(shard.path);
  if (paths.empty()) paths.push_back(info.path);
  return paths;
}

void Images::write(const std::string& path, std::int64_t chunk_samples,
                   const SweepOptions& options) const {
  if (dataset_) {
    std::vector<std::int64_t> rows(static_cast<std::size_t>(num_samples()));
    std::iota(rows.begin(), rows.end(), std::int64_t{0});
    h5pack::repack(*dataset_, rows, path,
                   {.writer = writer_options(chunk_samples, options),
                    .fields = std::vector<std::string>(),
                    .quiet = options.quiet});
    return;
  }
  const ImageSize size = {"made up", options.height, options.width, options.channels};
  chunkio::DatasetSpec spec = {.num_samples = num_samples(),
                               .height = options.height,
                               .width = options.width,
                               .channels = options.channels,
                               .channel_order = options.channels == 1 ? "gray" : "RGB"};
  spec.fields.push_back(sorted_labels(num_samples()));
  for (std::int64_t i = 0; i < kClasses; ++i) spec.class_names.push_back(std::to_string(i));
  chunkio::DatasetWriter writer(path, spec, writer_options(chunk_samples, options));
  cli::Progress progress("writing chunks of " + format_bytes(chunk_samples * sample_bytes_),
                         "images", num_samples(), options.quiet);
  write_chunks(writer, num_samples(), [&](std::int64_t first, std::span<std::byte> pixels) {
    cli::StopSignal::check();
    const auto bytes = static_cast<std::size_t>(sample_bytes_);
    const auto rows = static_cast<std::int64_t>(pixels.size() / bytes);
    if (options.filter.deflate_level > 0) {
      draw_images(size, first, pixels);
    } else {
      // Sample by sample, so that the images are the same in chunks of every size.
      for (std::int64_t row = 0; row < rows; ++row) {
        fill_with_noise(pixels.subspan(static_cast<std::size_t>(row) * bytes, bytes),
                        static_cast<std::uint64_t>(first + row));
      }
    }
    progress.add(rows);
  });
}

ScratchFiles::ScratchFiles(const Images& images, std::span<const ChunkSize> chunks,
                           const SweepOptions& options)
    : folder_(options.scratch) {
  check_space(images, chunks.size(), options);
  for (const ChunkSize& chunk : chunks) {
    const std::string path = folder_.file(std::to_string(chunk.samples) + ".h5");
    images.write(path, chunk.samples, options);
    files_.push_back({path, chunkio::Dataset::open(path).info()});
  }
}

}  // namespace bench
