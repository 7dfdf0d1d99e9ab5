#include "h5pack/pack/encoded_repacker.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <utility>

#include <tbb/enumerable_thread_specific.h>
#include <tbb/global_control.h>
#include <tbb/info.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <chunkio/error.hpp>
#include <chunkio/statistics.hpp>

#include "cli/progress.hpp"
#include "cli/quote.hpp"
#include "cli/resume_hint.hpp"
#include "cli/stop_signal.hpp"
#include "h5pack/image/decode.hpp"
#include "h5pack/image/image_codecs.hpp"
#include "h5pack/image/jpeg_decoder.hpp"
#include "h5pack/image/png_encoder.hpp"
#include "h5pack/pack/noted_writer.hpp"
#include "h5pack/pack/row_window.hpp"

namespace h5pack {
namespace {

using chunkio::Error;
using chunkio::ErrorCode;
using chunkio::PixelStatistics;
using Rows = std::vector<std::int64_t>;

constexpr std::int64_t kRgb = 3;

PixelStatistics no_pixels() { return {kRgb, chunkio::Layout::nhwc}; }

/// An image of the new file, and what is to be known of it.
struct NewImage {
  chunkio::EncodedImage image = {};
  std::optional<PixelStatistics> pixels = {};  ///< Absent: nobody asks.
};

std::string row_name(const chunkio::DatasetInfo& info, std::int64_t row) {
  return "row " + std::to_string(row) + " of " + info.path;
}

bool is_everything(const chunkio::DatasetInfo& info, const Rows& rows) {
  return std::cmp_equal(rows.size(), info.num_samples);
}

/// Gives the images of some rows, in the order of the rows.
class ImageMaker {
 public:
  ImageMaker() = default;
  ImageMaker(const ImageMaker&) = delete;
  ImageMaker& operator=(const ImageMaker&) = delete;
  virtual ~ImageMaker() = default;

  /// Blocks on I/O. \returns absent: they take more memory than there is; ask for fewer.
  /// \param rows  at least one; of one there is always an answer.
  virtual std::optional<std::vector<NewImage>> make(const Rows& rows, cli::Progress& progress) = 0;
  /// Rows that are asked for at once, at most.
  [[nodiscard]] virtual std::int64_t rows_at_once() const = 0;
};

/// Copies encoded images.
class Copier : public ImageMaker {
 public:
  Copier(const chunkio::Dataset& dataset, const Rows& rows, const RepackOptions& options)
      : dataset_(dataset),
        memory_(options.memory_budget / 2),
        count_pixels_(!is_everything(dataset.info(), rows)),
        decoders_([] {
          return Decoder(ImageDecoder(ColorMode::rgb, OrientationMode::ignore, kHighestMaxPixels));
        }) {}

  std::optional<std::vector<NewImage>> make(const Rows& rows, cli::Progress& progress) override {
    // In the order of the file, for the sake of the disk.
    std::vector<std::size_t> places(rows.size());
    std::iota(places.begin(), places.end(), std::size_t{0});
    std::sort(places.begin(), places.end(),
              [&](std::size_t a, std::size_t b) { return rows[a] < rows[b]; });
    std::vector<NewImage> images(rows.size());
    std::int64_t bytes = 0;
    for (const std::size_t place : places) {
      cli::StopSignal::check();
      images[place].image = dataset_.read_encoded(rows[place]);
      bytes += std::ssize(images[place].image.bytes);
      if (bytes > memory_ && rows.size() > 1) return std::nullopt;
    }
    if (count_pixels_) {
      tbb::parallel_for(std::size_t{0}, rows.size(), [&](std::size_t i) {
        cli::StopSignal::check();
        look_at(images[i], row_name(dataset_.info(), rows[i]));
      });
    }
    progress.add(std::ssize(rows));
    return images;
  }

  [[nodiscard]] std::int64_t rows_at_once() const override {
    return std::max<std::int64_t>(memory_ / 2 / dataset_.info().sample_bytes(), 1);
  }

 private:
  struct Decoder {
    explicit Decoder(ImageDecoder made) : decoder(std::move(made)) {}
    ImageDecoder decoder;
    std::vector<std::uint8_t> pixels = {};
  };

  void look_at(NewImage& image, const std::string& name) {
    Decoder& one = decoders_.local();
    const ImageSize size = one.decoder.open_encoded(image.image.bytes, name);
    one.pixels.resize(static_cast<std::size_t>(size.pixels() * kRgb));
    one.decoder.decode(one.pixels.data());
    image.pixels.emplace(no_pixels());
    image.pixels->add(one.pixels);
  }

  const chunkio::Dataset& dataset_;
  std::int64_t memory_;
  bool count_pixels_;
  tbb::enumerable_thread_specific<Decoder> decoders_;
};

/// RGB pixels of an image [H,W,C], C = 1, 3 or 4, as its file is decoded while reading.
void to_rgb(std::span<const std::uint8_t> pixels, std::int64_t channels,
            std::vector<std::uint8_t>& rgb) {
  const auto step = static_cast<std::size_t>(channels);
  rgb.resize(pixels.size() / step * kRgb);
  for (std::size_t from = 0, to = 0; from < pixels.size(); from += step) {
    for (std::size_t c = 0; c < std::size_t{kRgb}; ++c)
      rgb[to++] = pixels[from + (step == 1 ? 0 : c)];
  }
}

/// Encodes images that are read as pixels.
class Encoder : public ImageMaker {
 public:
  Encoder(const chunkio::Dataset& dataset, const RepackOptions& options)
      : dataset_(dataset),
        memory_(options.memory_budget),
        size_{dataset.info().height, dataset.info().width},
        channels_(dataset.info().channels),
        sample_bytes_(static_cast<std::size_t>(dataset.info().sample_bytes())),
        files_([this, encoding = *options.encoding] {
          return FileMaker(encoding, size_, channels_);
        }) {}

  std::optional<std::vector<NewImage>> make(const Rows& rows, cli::Progress& progress) override {
    window_.resize(rows.size() * sample_bytes_);
    read_window(dataset_, rows, chunkio::Layout::nhwc, memory_ / 2,
                std::as_writable_bytes(std::span(window_)), progress);
    std::vector<NewImage> images(rows.size());
    tbb::parallel_for(std::size_t{0}, rows.size(), [&](std::size_t i) {
      cli::StopSignal::check();
      images[i] = files_.local().make(std::span(window_).subspan(i * sample_bytes_, sample_bytes_));
    });
    return images;
  }

  /// Pixels and files take half of the budget together: PNG files are hardly larger.
  [[nodiscard]] std::int64_t rows_at_once() const override {
    return std::max<std::int64_t>(memory_ / 4 / static_cast<std::int64_t>(sample_bytes_), 1);
  }

 private:
  /// What one thread needs.
  class FileMaker {
   public:
    FileMaker(const Encoding& encoding, ImageSize size, std::int64_t channels)
        : encoding_(encoding),
          size_(size),
          channels_(channels),
          png_(size, channels, chunkio::Layout::nhwc),
          jpeg_(encoding.quality),
          decoder_(std::make_unique<JpegDecoder>()) {}

    NewImage make(std::span<const std::uint8_t> pixels) {
      std::span<const std::uint8_t> file;
      if (encoding_.format == ImageFormat::jpeg) {
        file = jpeg_.encode(pixels, size_, channels_);
        rgb_.resize(static_cast<std::size_t>(size_.pixels() * kRgb));
        static_cast<void>(decoder_->open(file, "a new JPEG file"));
        decoder_->decode(ColorMode::rgb, rgb_.data(), "a new JPEG file");
      } else {
        file = png_.encode(std::as_bytes(pixels));
        to_rgb(pixels, channels_, rgb_);
      }
      const auto bytes = std::as_bytes(file);
      NewImage made{.image = {.bytes = {bytes.begin(), bytes.end()},
                              .height = size_.height,
                              .width = size_.width},
                    .pixels = no_pixels()};
      made.pixels->add(rgb_);
      return made;
    }

   private:
    Encoding encoding_;
    ImageSize size_;
    std::int64_t channels_;
    PngEncoder png_;
    JpegEncoder jpeg_;
    std::unique_ptr<JpegDecoder> decoder_;
    std::vector<std::uint8_t> rgb_;
  };

  const chunkio::Dataset& dataset_;
  std::int64_t memory_;
  ImageSize size_;
  std::int64_t channels_;
  std::size_t sample_bytes_;
  std::vector<std::uint8_t> window_;
  tbb::enumerable_thread_specific<FileMaker> files_;
};

void add_all(const chunkio::Dataset& dataset, const Rows& rows, const RepackOptions& options,
             ImageMaker& maker, NotedWriter& writer) {
  cli::Progress progress("repacking" + (options.split.empty() ? "" : " " + options.split), "images",
                         std::ssize(rows) - writer.num_rows(), options.quiet);
  const std::string of_input = " of " + cli::quote(dataset.info().path);
  std::int64_t at_once = maker.rows_at_once();
  for (std::int64_t first = writer.num_rows(); first < std::ssize(rows);) {
    const std::int64_t count = std::min(at_once, std::ssize(rows) - first);
    const Rows some(rows.begin() + first, rows.begin() + first + count);
    const auto images = maker.make(some, progress);
    if (!images) {
      at_once = std::max<std::int64_t>(count / 2, 1);
      continue;
    }
    for (std::size_t i = 0; i < some.size(); ++i) {
      writer.add((*images)[i].image, "row " + std::to_string(some[i]) + of_input,
                 {.pixels = (*images)[i].pixels});
    }
    first += count;
  }
}

chunkio::DatasetStatistics statistics_of(const chunkio::DatasetInfo& info, const Rows& rows,
                                         const PixelStatistics& pixels) {
  chunkio::DatasetStatistics result{.source_sizes = carried_source_sizes(info, std::ssize(rows))};
  if (pixels.num_images() > 0) {
    result.channels = pixels.result();
    result.mean_picture_std = pixels.mean_picture_std();
  } else if (info.statistics) {
    result.channels = *info.statistics;
    result.mean_picture_std = info.mean_picture_std;
  }
  return result;
}

/// \throws Error invalid_argument, unsupported.
void check_options(const chunkio::DatasetInfo& info, const RepackOptions& options) {
  const auto refuse = [](bool given, const std::string& option, const std::string& why) {
    if (given) throw Error(ErrorCode::invalid_argument, option + " " + why + "; leave it out");
  };
  const std::string raw = "is for raw images, and these are stored encoded";
  refuse(options.writer.filter.deflate_level > 0, "--filter", raw);
  refuse(options.writer.chunk_samples > 0, "--chunk", raw);
  refuse(options.writer.chunk_bytes != chunkio::kDefaultChunkBytes, "--chunk-bytes", raw);
  refuse(options.layout == chunkio::Layout::nchw, "--out-layout nchw", raw);
  refuse(options.encoding && !info.has_images(), "--encode",
         "is for raw images, and those of " + cli::quote(info.path) +
             " are encoded and stay as they are, unless --decode makes pixels of them");
  if (!options.encoding) return;
  const bool jpeg = options.encoding->format == ImageFormat::jpeg;
  if (jpeg && info.channels != 1 && info.channels != 3) {
    throw Error(ErrorCode::unsupported, "images with " + std::to_string(info.channels) +
                                            " channels cannot be JPEG files; use --encode png");
  }
  const std::int64_t most = jpeg ? kMaxJpegSide : 65535;
  if (std::max(info.height, info.width) > most) {
    throw Error(ErrorCode::unsupported, cli::quote(info.path) + " has images of " +
                                            to_string(ImageSize{info.height, info.width}) +
                                            " pixels; sides of encoded ones are at most " +
                                            std::to_string(most));
  }
  if (!jpeg) static_cast<void>(PngEncoder({1, 1}, info.channels, chunkio::Layout::nhwc));
}

chunkio::EncodedSpec make_spec(const chunkio::DatasetInfo& info, const Rows& rows,
                               const RepackOptions& options) {
  return {.class_names = info.class_names,
          .attribute_names = info.attribute_names,
          .split = options.split.empty() ? info.split : options.split,
          .order = options.order,
          .seed = options.seed,
          .options_json = options.options_json,
          // Of what is yet to be encoded, nobody knows.
          .expected_bytes = options.encoding ? 0 : info.sample_bytes() * std::ssize(rows)};
}

void write_it(const chunkio::Dataset& dataset, const Rows& rows, const RepackOptions& options,
              NotedWriter& writer, RepackResult& result) {
  const chunkio::DatasetInfo& info = dataset.info();
  result.num_resumed = writer.num_rows();
  std::vector<chunkio::FieldData> fields = carried_fields(dataset, rows, options);
  std::unique_ptr<ImageMaker> maker;
  if (options.encoding) {
    maker = std::make_unique<Encoder>(dataset, options);
  } else {
    maker = std::make_unique<Copier>(dataset, rows, options);
  }
  add_all(dataset, rows, options, *maker, writer);
  result.statistics = statistics_of(info, rows, writer.so_far().pixels);
  result.statistics.class_counts = chunkio::count_classes(fields, info.class_names);
  cli::StopSignal::check();
  writer.close(std::move(fields), result.statistics);
}

}  // namespace

bool becomes_encoded(const chunkio::DatasetInfo& info, const RepackOptions& options) {
  return options.encoding || (info.encoded && !info.has_images());
}

RepackResult plan_repack_encoded(const chunkio::Dataset& dataset, const Rows& rows,
                                 const std::string& path, const RepackOptions& options) {
  const chunkio::DatasetInfo& info = dataset.info();
  check_options(info, options);
  const std::vector<chunkio::FieldData> fields = carried_fields(dataset, rows, options);
  // Offset, size and digest of each image.
  std::int64_t row_bytes = info.sample_bytes() + 3 * std::int64_t{sizeof(std::int64_t)};
  for (const chunkio::FieldData& field : fields) {
    row_bytes += static_cast<std::int64_t>(chunkio::Dataset::row_bytes(field.info));
  }
  RepackResult result{.path = path,
                      .num_samples = std::ssize(rows),
                      .encoded = true,
                      .file_bytes = std::ssize(rows) * row_bytes,
                      .planned = true,
                      .at_most = options.encoding.has_value()};
  result.statistics.class_counts = chunkio::count_classes(fields, info.class_names);
  return result;
}

RepackResult repack_encoded(const chunkio::Dataset& dataset, const Rows& rows,
                            const std::string& path, const RepackOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  check_options(dataset.info(), options);
  // Images are encoded in parallel; threads inside one would only get in the way.
  use_one_thread_an_image();
  const OpenCvSilence silence;
  RepackResult result{.path = path, .num_samples = std::ssize(rows), .encoded = true};
  const int threads = options.threads > 0 ? options.threads : tbb::info::default_concurrency();
  const tbb::global_control parallelism(tbb::global_control::max_allowed_parallelism,
                                        static_cast<std::size_t>(threads));
  tbb::task_arena arena(threads);
  NotedWriter writer(path, make_spec(dataset.info(), rows, options), std::ssize(rows),
                     options.writer);
  cli::run_with_resume_hint(cli::resumable(writer), path, [&] {
    arena.execute([&] { write_it(dataset, rows, options, writer, result); });
  });
  result.file_bytes = static_cast<std::int64_t>(std::filesystem::file_size(path));
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return result;
}

}  // namespace h5pack
