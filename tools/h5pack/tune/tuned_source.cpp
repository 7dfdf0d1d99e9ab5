#include "h5pack/tune/tuned_source.hpp"

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include <chunkio/chunk_layout.hpp>
#include <chunkio/error.hpp>

#include "cli/image_shape.hpp"
#include "cli/snippets.hpp"
#include "h5pack/image/transform.hpp"
#include "h5pack/pack/pack_plan.hpp"
#include "h5pack/sources/source_kind.hpp"

namespace h5pack {
namespace {

constexpr std::string_view kHdf5 = "hdf5";
constexpr std::string_view kPlanned = "planned";

[[noreturn]] void refuse(const std::string& what) {
  throw chunkio::Error(chunkio::ErrorCode::invalid_argument, what);
}

/// Those that decide on pixels, as they are written on a command line, with a blank in front.
std::string pixel_options(const PackRequest& request) {
  std::string text;
  for (const auto& [name, value] : {std::pair{" --resize ", &request.resize},
                                    {" --center-crop ", &request.center_crop},
                                    {" --pad ", &request.pad}}) {
    if (!value->empty()) text += name + cli::shell_word(*value);
  }
  return text + (request.options.image.color == ColorMode::gray ? " --channels gray" : "");
}

/// Likewise, those that one kind of source has.
std::string own_options(const SourceKind& kind, const SourceRequest& request) {
  std::string text;
  for (const SourceOption& option : kind.options) {
    const auto given = request.options.find(option.flag);
    if (given == request.options.end() || given->second.empty()) continue;
    text += " " + given->first + " " + cli::shell_word(given->second);
  }
  return text;
}

/// Likewise, those of an HDF5 file.
std::string open_options(const chunkio::OpenOptions& open) {
  std::string text;
  if (!open.images.empty()) text += " --images " + cli::shell_word(open.images);
  if (!open.labels.empty()) text += " --label-field " + cli::shell_word(open.labels);
  if (open.layout) text += " --layout " + std::string(to_string(*open.layout));
  if (open.decode) {
    const chunkio::DecodeOptions& decode = *open.decode;
    text += " --decode " + std::to_string(decode.height) + "x" + std::to_string(decode.width);
    if (decode.crop != chunkio::CropMode::center) {
      text += decode.crop == chunkio::CropMode::whole ? " --crop whole" : " --crop random-resized";
    }
  }
  return text + (open.allow_external ? " --allow-external" : "");
}

/// Options that SOURCE has no use for would be lost without a word.
void require_use(const std::string& found, const PackRequest& request,
                 const chunkio::OpenOptions& open) {
  if (found == kHdf5 && !pixel_options(request).empty()) {
    refuse(
        "--resize, --center-crop, --pad and --channels are for images that are still to be packed, "
        "not for an HDF5 file");
  }
  if (found != kHdf5 && !open_options(open).empty()) {
    refuse(
        "--images, --label-field, --layout, --decode and --allow-external are for an HDF5 file, "
        "not "
        "for images that are still to be packed");
  }
  for (const SourceKind* kind : source_kinds()) {
    if (kind->name == found || own_options(*kind, request.source).empty()) continue;
    std::string flags;
    for (const SourceOption& option : kind->options) {
      const bool last = &option == &kind->options.back();
      flags += (flags.empty() ? "" : last ? " and " : ", ") + std::string(option.flag);
    }
    refuse(flags + " are for " + kind->what);
  }
}

/// "NxHxWxC" of images that do not exist yet; absent if it is not that.
std::optional<TunedSource> planned_source(const PackRequest& request) {
  const std::string& text = request.source.input;
  const std::optional<cli::ImageShape> shape = cli::parse_image_shape(text);
  if (!shape) return std::nullopt;
  constexpr std::int64_t kMostPixels = std::int64_t{1} << 20;  // along an axis
  if (shape->num_samples > (std::int64_t{1} << 40) || shape->height > kMostPixels ||
      shape->width > kMostPixels || shape->channels > 64) {
    refuse(text +
           ": images are counted to 2^40, and have at most 2^20 rows, 2^20 columns and 64 "
           "channels");
  }
  std::int64_t image_bytes = 1;
  for (const std::int64_t size :
       {shape->num_samples, shape->height, shape->width, shape->channels}) {
    if (__builtin_mul_overflow(image_bytes, size, &image_bytes)) {
      refuse(text + ": all images together must be less than 2^63 bytes");
    }
  }
  const ImageOptions& image = request.options.image;
  if (image.color == ColorMode::gray && shape->channels != 1) {
    refuse(text + ": gray images (--channels) have 1 channel, not " +
           std::to_string(shape->channels));
  }
  const ImageSize size{.height = shape->height, .width = shape->width};
  if (ImageTransform(image).output_size(size, text) != size) {
    refuse(text + ": no images have this size after" + pixel_options(request) +
           "; name the size that they are packed in");
  }
  TunedSource source;
  source.path = text;
  source.kind = kPlanned;
  source.num_samples = shape->num_samples;
  source.height = shape->height;
  source.width = shape->width;
  source.channels = shape->channels;
  source.options = pixel_options(request);
  if (shape->channels == 1 && image.color != ColorMode::gray) source.options += " --channels gray";
  return source;
}

std::int64_t row_bytes(const chunkio::DatasetInfo& info) {
  // Only labels are read unless fields are asked for by name.
  return info.labels ? static_cast<std::int64_t>(chunkio::Dataset::row_bytes(*info.labels)) : 0;
}

OpenedSource open_file(const std::string& path, const chunkio::OpenOptions& open) {
  OpenedSource opened;
  opened.dataset = chunkio::Dataset::open(path, open);
  const chunkio::DatasetInfo& info = opened.dataset->info();
  if (info.encoded && !open.decode) {
    refuse(info.path +
           ": its images are encoded, each in a size of its own; say with --decode at which size "
           "to train");
  }
  require_images(info);
  TunedSource& source = opened.source;
  source.path = path;
  source.kind = kHdf5;
  source.options = open_options(open);
  source.open = open;
  source.num_samples = info.num_samples;
  source.height = info.height;
  source.width = info.width;
  source.channels = info.channels;
  source.row_bytes = row_bytes(info);
  if (info.encoded) source.encoded_bytes = info.encoded->num_bytes;
  source.stored = chunkio::stored_groups(info);
  source.several_files = !info.shards.empty();
  if (info.stored.chunked && !source.several_files) {
    const std::int64_t chunk_bytes = info.stored.chunk_shape.num_elements() *
                                     static_cast<std::int64_t>(chunkio::size_of(info.stored.dtype));
    source.random_h5py =
        chunkio::predict_hdf5_reads(info.stored, info.stored_bytes, {}, chunkio::OrderMode::random);
    source.chunk_order_h5py = chunkio::predict_hdf5_reads(
        info.stored, info.stored_bytes, chunkio::recommend_cache(info.num_chunks, chunk_bytes),
        chunkio::OrderMode::chunk_shuffled);
  }
  return opened;
}

}  // namespace

OpenedSource open_tuned_source(PackRequest request, const std::string& kind,
                               const chunkio::OpenOptions& open) {
  std::error_code unknown;
  if (kind.empty() && !std::filesystem::exists(request.source.input, unknown)) {
    if (std::optional<TunedSource> planned = planned_source(request)) {
      require_use(std::string(kPlanned), request, open);
      return {.source = *std::move(planned)};
    }
  }
  const auto found_at = [](const std::string& path) {
    const SourceKind* const source_kind = source_kind_at(path);
    return source_kind == nullptr ? std::string(kHdf5) : std::string(source_kind->name);
  };
  const std::string found = kind.empty() ? found_at(request.source.input) : kind;
  require_use(found, request, open);
  if (found == kHdf5) return open_file(request.source.input, open);

  const SourceKind& source_kind = *find_source_kind(found);
  request.name = found;
  const Listing listing = source_kind.list(request.source);
  const Split& split = *std::max_element(
      listing.splits.begin(), listing.splits.end(),
      [](const Split& a, const Split& b) { return a.images->count() < b.images->count(); });
  const PackPlan plan = plan_pack(split, request.options);
  OpenedSource opened;
  TunedSource& source = opened.source;
  source.path = request.source.input;
  source.kind = found;
  source.options = own_options(source_kind, request.source) + pixel_options(request);
  source.output_is_folder = listing.output_is_folder;
  source.split = split.name;
  source.num_samples = plan.num_samples;
  source.height = plan.size.height;
  source.width = plan.size.width;
  source.channels = plan.channels;
  for (const chunkio::FieldData& field : split.fields) {
    if (field.info.name == "labels") {
      source.row_bytes = static_cast<std::int64_t>(chunkio::Dataset::row_bytes(field.info));
    }
  }
  return opened;
}

}  // namespace h5pack
