#include "h5pack/commands/pack_options.hpp"

#include <string>

#include <chunkio/error.hpp>

#include "cli/options.hpp"
#include "h5pack/image/transform.hpp"

namespace h5pack {

namespace {

using chunkio::Error;
using chunkio::ErrorCode;

void add_image_options(CLI::App& app, PackRequest& command) {
  const cli::Heading heading(app, "Images");
  ImageOptions& image = command.options.image;
  app.add_option("--resize", command.resize, "Shorter side S, aspect ratio kept, or exactly HxW")
      ->type_name("S|HxW");
  app.add_option("--center-crop", command.center_crop, "Cut HxW from the centre, after --resize")
      ->type_name("HxW");
  app.add_option("--pad", command.pad, "Centre on a black HxW image, after --resize")
      ->type_name("HxW");
  cli::add_choice(app, "--interpolation", image.interpolation, interpolations(),
                  "How --resize samples");
  cli::add_choice<ColorMode>(app, "--channels", image.color,
                             {{"rgb", ColorMode::rgb}, {"gray", ColorMode::gray}},
                             "Channels of all images");
  cli::add_choice<OrientationMode>(
      app, "--orientation", image.orientation,
      {{"ignore", OrientationMode::ignore}, {"apply", OrientationMode::apply}},
      "Ignore the EXIF orientation, or apply it");
  app.add_flag("--shrink-on-load", image.shrink_on_load,
               "Let the JPEG decoder do part of --resize: faster, but pixels differ slightly");
  cli::add_choice<chunkio::Layout>(
      app, "--out-layout", image.layout,
      {{"nhwc", chunkio::Layout::nhwc}, {"nchw", chunkio::Layout::nchw}},
      "Axis order of the images in the file");
  SizeLimit& limit = command.options.limit;
  auto* const max_side =
      cli::add_integer(app, "--max-side", limit.max_side, 1,
                       "With --store encoded: shrink images whose longer side is above N pixels to "
                       "that, and store them as JPEG")
          ->default_str("");
  cli::add_jpeg_quality(app, limit.quality)->needs(max_side);
}

void add_error_options(CLI::App& app, PackRequest& command) {
  const cli::Heading heading(app, "Images that cannot be packed");
  cli::add_choice<OnError>(app, "--on-error", command.options.on_error,
                           {{"fail", OnError::fail}, {"skip", OnError::skip}},
                           "On an image that cannot be packed: stop, or skip and count it");
  cli::add_integer(app, "--max-errors", command.max_errors, 0, "Skip at most N images, then fail")
      ->default_str("");
  app.add_option("--report", command.report,
                 "File for a JSON line on each skipped image, with the reason")
      ->type_name("FILE");
  cli::add_integer(app, "--max-pixels", command.options.image.max_pixels, 1,
                   "Refuse images with more pixels");
}

void add_file_options(CLI::App& app, PackRequest& command) {
  const cli::Heading heading(app, "File");
  PackOptions& options = command.options;
  cli::add_choice<Store>(
      app, "--store", options.store, {{"raw", Store::raw}, {"encoded", Store::encoded}},
      "Store pixels of one size, or the files' own bytes, decoded while reading");
  add_chunk_options(app, options.writer);
  cli::add_choice<bool>(app, "--order", options.shuffled, {{"shuffled", true}, {"source", false}},
                        "Order of the samples");
  cli::add_seed(app, "--seed", options.seed, "Seed of the shuffled order");
  app.add_flag("-f,--force", options.writer.overwrite, "Replace existing output files");
  app.add_flag("--resume", options.writer.resume,
               "Continue an interrupted run with the same options");
  cli::add_integer(app, "-j,--threads", command.threads, 1,
                   "Threads that decode (default: all CPUs)")
      ->default_str("");
  app.add_flag("-n,--dry-run", command.dry_run, "Show what would be packed; write nothing");
}

}  // namespace

void add_chunk_options(CLI::App& app, chunkio::WriterOptions& writer) {
  auto* const chunk =
      cli::add_integer(app, "--chunk", writer.chunk_samples, 1, "Samples in a chunk");
  chunk->default_str("");
  cli::add_byte_size(app, "--chunk-bytes", writer.chunk_bytes, "Size of a chunk")->excludes(chunk);
}

void add_pack_options(CLI::App& app, PackRequest& command) {
  add_image_options(app, command);
  add_error_options(app, command);
  add_file_options(app, command);
}

void add_source_options(CLI::App& app, const SourceKind& kind, SourceRequest& request) {
  for (const SourceOption& option : kind.options) {
    app.add_option(option.flag, request.options[option.flag], option.description)
        ->type_name(option.type_name);
  }
}

void finish_options(PackRequest& command) {
  ImageOptions& image = command.options.image;
  const auto parse = [](const char* option, const std::string& text, const auto& parser) {
    return cli::of_option(option, [&] { return parser(text); });
  };
  if (!command.resize.empty()) image.resize = parse("--resize", command.resize, parse_resize);
  if (!command.center_crop.empty()) {
    image.center_crop = parse("--center-crop", command.center_crop, parse_image_size);
  }
  if (!command.pad.empty()) image.pad = parse("--pad", command.pad, parse_image_size);
  const ImageTransform checked(image);
  cli::check_threads(command.threads);
  if (image.max_pixels > kHighestMaxPixels) {
    throw Error(ErrorCode::invalid_argument,
                "--max-pixels must be at most " + std::to_string(kHighestMaxPixels));
  }
  if (command.options.limit.max_side > kMaxJpegSide) {
    throw Error(ErrorCode::invalid_argument,
                "--max-side must be at most " + std::to_string(kMaxJpegSide));
  }
  if (command.options.on_error == OnError::fail &&
      (command.max_errors >= 0 || !command.report.empty())) {
    throw Error(ErrorCode::invalid_argument,
                "--max-errors and --report are for --on-error skip; add it");
  }
  if (image.shrink_on_load && !image.resize) {
    throw Error(ErrorCode::invalid_argument, "--shrink-on-load is a part of --resize; add that");
  }
  command.source.keep_missing = command.options.on_error == OnError::skip;
  if (command.shard_from_env) command.options.shard = shard_from_environment();
  cli::check_output(command.output);
  command.options.threads = static_cast<int>(command.threads);
}

}  // namespace h5pack
