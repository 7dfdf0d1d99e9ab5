#include "h5/image_discovery.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <iterator>
#include <limits>
#include <optional>
#include <string>

#include "base/checked_math.hpp"
#include "h5/attributes.hpp"
#include "h5/description_reader.hpp"
#include "h5/error_stack.hpp"
#include "h5/schema.hpp"
#include "h5/stored_array.hpp"

namespace chunkio::h5 {
namespace {

/// Images by their shape, [N,H,W,C], [N,C,H,W] or [N,H,W]; of whatever numbers.
bool has_image_shape(const DatasetSummary& dataset) {
  return dataset.dtype && dataset.shape &&
         (dataset.shape->rank() == 4 || dataset.shape->rank() == 3);
}

bool is_image_dataset(const DatasetSummary& dataset) {
  return has_image_shape(dataset) && dataset.dtype == DType::uint8;
}

/// Datasets that may be the images, of the likeliest kind that there is.
FileContents image_candidates(const FileContents& contents) {
  const auto of = [&](auto fits) {
    FileContents found;
    std::copy_if(contents.datasets.begin(), contents.datasets.end(),
                 std::back_inserter(found.datasets), [&](const DatasetSummary& dataset) {
                   return has_image_shape(dataset) &&
                          fits(dataset.shape->rank(), *dataset.dtype == DType::uint8);
                 });
    return found;
  };
  FileContents found = of([](std::size_t rank, bool uint8) { return rank == 4 && uint8; });
  // Beside images of floats, a dataset [N,H,W] may be masks.
  if (found.datasets.empty()) {
    found = of([](std::size_t rank, bool uint8) { return (rank == 3) == uint8; });
  }
  if (found.datasets.empty()) {
    found = of([](std::size_t rank, bool uint8) { return rank == 3 && !uint8; });
  }
  return found;
}

std::string find_images(const FileId& file, const std::string& wanted, const FileContents& contents,
                        const std::string& path, External external) {
  if (!wanted.empty()) return find_named(file, wanted, contents, path, external);

  std::string refusal;
  const LinkState state = follow_links(file, kImages, path, external, refusal);
  if (state == LinkState::refused) throw refused(path, refusal);
  if (state == LinkState::present && is_dataset(file, kImages, path)) {
    const DatasetSummary images =
        summarize(open_dataset(file, kImages, path), kImages, path, external);
    // If they are of floats, that is said, and nothing else taken for them.
    if (has_image_shape(images) || !images.refusal.empty()) return kImages;
  }

  const FileContents candidates = image_candidates(contents);
  if (candidates.datasets.size() == 1 && contents.complete) return candidates.datasets.front().name;
  if (candidates.datasets.empty()) {
    throw Error(ErrorCode::unsupported,
                path + " holds no images, a uint8 dataset [N,H,W,C], [N,C,H,W] or [N,H,W]" +
                    (contents.complete ? "; it holds "
                                       : " among the objects that are looked at; if it has one, "
                                         "name it with the option images; it holds ") +
                    contents.describe(),
                "images");
  }
  throw Error(ErrorCode::unsupported,
              path + " holds several datasets that may be the images" +
                  (contents.complete ? "" : " or more objects than are looked at") + ": " +
                  candidates.describe() + "; name one with the option images",
              "images");
}

/// \throws Error invalid_argument, unsupported.
void check_scale(const DatasetSummary& images, const std::optional<PixelScale>& scale,
                 const std::string& path) {
  const std::string what = path + ": " + images.describe();
  if (!scale) {
    if (images.dtype == DType::uint8) return;
    throw Error(ErrorCode::unsupported,
                what +
                    " has other numbers than uint8; h5pack repack writes them again as uint8, if "
                    "its option scale says which of them are black and white: scale = 0..1",
                "scale = 0..1");
  }
  if (images.dtype == DType::uint8) {
    throw Error(ErrorCode::invalid_argument, what + " is uint8 already; leave out the option scale",
                "scale");
  }
  if (!std::isfinite(scale->black) || !std::isfinite(scale->white) ||
      !std::isfinite(scale->white - scale->black) || scale->black == scale->white) {
    throw Error(ErrorCode::invalid_argument, "the option scale needs two finite, different numbers",
                "scale");
  }
}

/// \param ours  of a file of this format, where images have four axes.
/// \throws Error refused_by_policy, unsupported, corrupt_data, invalid_argument.
void check_images(const DatasetSummary& images, const std::optional<PixelScale>& scale, bool ours,
                  const std::string& path) {
  if (!images.refusal.empty()) throw refused(path, images.describe());
  if (!has_image_shape(images) ||
      (ours && (!is_image_dataset(images) || images.shape->rank() != 4))) {
    throw Error(ErrorCode::unsupported,
                path + ": " + images.describe() +
                    " are no images: a uint8 dataset [N,H,W,C], [N,C,H,W] or [N,H,W] is needed");
  }
  check_scale(images, scale, path);
  const Shape& shape = *images.shape;
  for (const std::int64_t dim : shape.dims()) {
    if (dim == 0) {
      throw Error(ErrorCode::corrupt_data,
                  path + ": " + images.describe() + " is empty; there is nothing to read");
    }
  }
  auto sample_bytes = base::checked_product(shape.dims().subspan(1));
  if (scale && sample_bytes) {
    // Read as such before they are scaled.
    sample_bytes = base::checked_multiply(*sample_bytes, std::int64_t{sizeof(double)});
  }
  if (!sample_bytes || *sample_bytes > kMaxSampleBytes || shape[0] > kMaxSamples ||
      !base::checked_multiply(shape[0], *sample_bytes)) {
    throw Error(ErrorCode::corrupt_data,
                path + ": " + images.describe() + " is larger than any dataset of images");
  }
}

bool is_channel_count(std::int64_t dim) { return dim == 1 || dim == 3 || dim == 4; }

std::optional<Layout> parse_layout(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](char c) {
    return static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  });
  if (text == to_string(Layout::nhwc)) return Layout::nhwc;
  if (text == to_string(Layout::nchw)) return Layout::nchw;
  return std::nullopt;
}

/// The `layout` attribute. Third-party files may use the name for anything, so there it only counts
/// if it fits.
std::optional<Layout> stored_layout(const Dataset::Impl& impl, bool ours) {
  const AttributeReader attributes(impl.images->dataset.get(), printable(impl.info.images_path),
                                   impl.info.path);
  try {
    const auto text = attributes.text(image_attribute::kLayout);
    if (!text) return std::nullopt;
    const auto layout = parse_layout(*text);
    if (!layout && ours) throw attributes.corrupt(image_attribute::kLayout, "is no axis order");
    return layout;
  } catch (const Error&) {
    if (ours) throw;
    return std::nullopt;
  }
}

void set_layout(Dataset::Impl& impl, const std::optional<Layout>& wanted, bool ours) {
  DatasetInfo& info = impl.info;
  const Shape& shape = info.stored.shape;
  if (shape.rank() == 3) {  // one channel: both orders are the same bytes
    info.layout = wanted.value_or(Layout::nhwc);
    info.height = shape[1];
    info.width = shape[2];
    info.channels = 1;
    return;
  }
  std::optional<Layout> layout = wanted && !ours ? wanted : stored_layout(impl, ours);
  if (wanted && layout && *wanted != *layout) {
    throw Error(ErrorCode::invalid_argument,
                info.path + " says that its images are " + std::string(to_string(*layout)) +
                    "; leave out the option layout",
                "layout");
  }
  if (!layout) layout = wanted;
  if (!layout) {
    const bool first = is_channel_count(shape[1]);
    const bool last = is_channel_count(shape[3]);
    if (first == last) {
      throw Error(ErrorCode::invalid_argument,
                  "cannot tell the axis order of " + printable(info.images_path) + " " +
                      shape.to_string() + " in " + info.path + ": " + (first ? "both" : "neither") +
                      " of axis 1 and axis 3 " + (first ? "look" : "looks") +
                      " like channels; set the option layout to nhwc or nchw",
                  "layout");
    }
    layout = last ? Layout::nhwc : Layout::nchw;
  }
  info.layout = *layout;
  const bool channels_last = *layout == Layout::nhwc;
  info.height = shape[channels_last ? 1 : 2];
  info.width = shape[channels_last ? 2 : 3];
  info.channels = shape[channels_last ? 3 : 1];
}

}  // namespace

void open_images(Dataset::Impl& file, const FileContents& contents, const OpenOptions& options) {
  DatasetInfo& info = file.info;
  info.images_path = find_images(file.file(), options.images, contents, info.path, file.external);
  const DatasetSummary images = summarize(open_dataset(file.file(), info.images_path, info.path),
                                          info.images_path, info.path, file.external);
  const bool ours = has_format(file.file().get(), info.path);
  check_images(images, options.scale, ours, info.path);
  file.images = open_array(file, info.images_path, *images.shape, DType::uint8,
                           std::numeric_limits<std::int64_t>::max(), options.scale);
  info.stored = file.images->stored;
  info.num_chunks = file.images->num_chunks;
  info.stored_bytes = file.images->stored_bytes;
  info.num_samples = info.stored.shape[0];
  set_layout(file, options.layout, ours);
}

}  // namespace chunkio::h5
