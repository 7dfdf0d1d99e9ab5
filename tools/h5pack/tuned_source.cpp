#include "tuned_source.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include <chunkio/chunk_layout.hpp>
#include <chunkio/error.hpp>

#include "pack_options.hpp"
#include "pack_plan.hpp"
#include "paste_lines.hpp"
#include "picture_transform.hpp"
#include "source_kinds.hpp"

namespace h5pack {
namespace {

constexpr std::string_view kHdf5 = "hdf5";
constexpr std::string_view kPlanned = "planned";

[[noreturn]] void refuse(const std::string& what) {
  throw chunkio::Error(chunkio::ErrorCode::invalid_argument, what);
}

/// Those that decide on pixels, as they are written on a command line, with a blank in front.
std::string pixel_options(const PackCommand& command) {
  std::string text;
  for (const auto& [name, value] : {std::pair{" --resize ", &command.resize},
                                    {" --center-crop ", &command.center_crop},
                                    {" --pad ", &command.pad}}) {
    if (!value->empty()) text += name + shell_word(*value);
  }
  return text + (command.options.picture.color == ColorMode::gray ? " --channels gray" : "");
}

/// Likewise, those of a CSV file.
std::string csv_options(const CsvOptions& csv) {
  std::string text;
  for (const auto& [name, value] : {std::pair{" --path-column ", &csv.path_column},
                                    {" --label-column ", &csv.label_column},
                                    {" --root ", &csv.root}}) {
    if (!value->empty()) text += name + shell_word(*value);
  }
  return text;
}

/// Likewise, those of an HDF5 file.
std::string open_options(const chunkio::OpenOptions& open) {
  std::string text;
  if (!open.images.empty()) text += " --images " + shell_word(open.images);
  if (!open.labels.empty()) text += " --label-field " + shell_word(open.labels);
  if (open.layout) text += " --layout " + std::string(to_string(*open.layout));
  return text + (open.allow_external ? " --allow-external" : "");
}

/// Options that SOURCE has no use for would be lost without a word.
void require_use(const std::string& found, const PackCommand& command,
                 const chunkio::OpenOptions& open) {
  if (found == kHdf5 && !pixel_options(command).empty()) {
    refuse(
        "--resize, --center-crop, --pad and --channels are for images that are still to be packed, "
        "not for an HDF5 file");
  }
  if (found != kHdf5 && !open_options(open).empty()) {
    refuse(
        "--images, --label-field, --layout and --allow-external are for an HDF5 file, not for "
        "images that are still to be packed");
  }
  if (found != "csv" && !csv_options(command.csv).empty()) {
    refuse("--path-column, --label-column and --root are for a CSV file");
  }
}

/// "NxHxWxC" of images that do not exist yet; absent if it is not that.
std::optional<TunedSource> planned_source(const PackCommand& command) {
  const std::string& text = command.input;
  std::array<std::int64_t, 4> sizes{};
  const char* at = text.data();
  const char* const end = at + text.size();
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (i > 0 && (at == end || *at++ != 'x')) return std::nullopt;
    const auto [next, error] = std::from_chars(at, end, sizes[i]);
    if (error != std::errc() || sizes[i] < 1) return std::nullopt;
    at = next;
  }
  if (at != end) return std::nullopt;
  constexpr std::int64_t kMostPixels = std::int64_t{1} << 20;  // along an axis
  if (sizes[0] > (std::int64_t{1} << 40) || sizes[1] > kMostPixels || sizes[2] > kMostPixels ||
      sizes[3] > 64) {
    refuse(text +
           ": images are counted to 2^40, and have at most 2^20 rows, 2^20 columns and 64 "
           "channels");
  }
  std::int64_t picture_bytes = 1;
  for (const std::int64_t size : sizes) {
    if (__builtin_mul_overflow(picture_bytes, size, &picture_bytes)) {
      refuse(text + ": all images together must be less than 2^63 bytes");
    }
  }
  const PictureOptions& picture = command.options.picture;
  if (picture.color == ColorMode::gray && sizes[3] != 1) {
    refuse(text + ": gray images (--channels) have 1 channel, not " + std::to_string(sizes[3]));
  }
  const PictureSize size{.height = sizes[1], .width = sizes[2]};
  if (PictureTransform(picture).output_size(size, text) != size) {
    refuse(text + ": no images have this size after" + pixel_options(command) +
           "; name the size that they are packed in");
  }
  TunedSource source;
  source.path = text;
  source.kind = kPlanned;
  source.num_samples = sizes[0];
  source.height = sizes[1];
  source.width = sizes[2];
  source.channels = sizes[3];
  source.options = pixel_options(command);
  if (sizes[3] == 1 && picture.color != ColorMode::gray) source.options += " --channels gray";
  return source;
}

/// The kind of source that is at `path`, by what it is called and holds.
std::string kind_of(const std::string& path) {
  std::error_code unknown;
  if (!std::filesystem::is_directory(path, unknown)) {
    return path.ends_with(".csv") || path.ends_with(".CSV") ? "csv" : std::string(kHdf5);
  }
  const auto holds = [&](const char* name) {
    return std::filesystem::exists(std::filesystem::path(path) / name, unknown);
  };
  if (holds("img_align_celeba")) return "celeba";
  for (const char* const name :
       {"data_batch_1.bin", "train.bin", "cifar-10-batches-bin", "cifar-100-binary"}) {
    if (holds(name)) return "cifar";
  }
  return "folder";
}

std::int64_t row_bytes(const chunkio::DatasetInfo& info) {
  // Only labels are read unless fields are asked for by name.
  return info.labels ? static_cast<std::int64_t>(chunkio::Dataset::row_bytes(*info.labels)) : 0;
}

OpenedSource open_file(const std::string& path, const chunkio::OpenOptions& open) {
  OpenedSource opened;
  opened.dataset = chunkio::Dataset::open(path, open);
  const chunkio::DatasetInfo& info = opened.dataset->info();
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
  source.stored = chunkio::stored_groups(info);
  source.stored_bytes = info.stored_bytes;
  source.filtered = !info.stored.filters.empty();
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

OpenedSource open_tuned_source(PackCommand command, const std::string& kind,
                               const chunkio::OpenOptions& open) {
  std::error_code unknown;
  if (kind.empty() && !std::filesystem::exists(command.input, unknown)) {
    if (std::optional<TunedSource> planned = planned_source(command)) {
      require_use(std::string(kPlanned), command, open);
      return {.source = *std::move(planned)};
    }
  }
  const std::string found = kind.empty() ? kind_of(command.input) : kind;
  require_use(found, command, open);
  if (found == kHdf5) return open_file(command.input, open);

  const auto& kinds = source_kinds();
  const auto* const source_kind = std::find_if(
      kinds.begin(), kinds.end(), [&](const SourceKind& each) { return each.name == found; });
  command.name = found;
  const Listing listing = source_kind->list(command);
  const Split& split =
      *std::max_element(listing.splits.begin(), listing.splits.end(),
                        [](const Split& a, const Split& b) { return a.num_rows() < b.num_rows(); });
  const PackPlan plan = plan_pack(split, command.options);
  OpenedSource opened;
  TunedSource& source = opened.source;
  source.path = command.input;
  source.kind = found;
  source.options = csv_options(command.csv) + pixel_options(command);
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
