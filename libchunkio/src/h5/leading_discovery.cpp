#include "h5/leading_discovery.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <initializer_list>
#include <iterator>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "base/checked_math.hpp"
#include "h5/attributes.hpp"
#include "h5/description_reader.hpp"
#include "h5/encoded_images.hpp"
#include "h5/error_stack.hpp"
#include "h5/schema.hpp"
#include "h5/sparse_matrix.hpp"
#include "h5/sparse_names.hpp"
#include "h5/stored_array.hpp"

namespace chunkio::h5 {
namespace {

/// Numbers with a row for each sample.
bool has_rows(const DatasetSummary& dataset) {
  return dataset.dtype && dataset.shape && dataset.shape->rank() >= 1;
}

/// Images by their shape, [N,H,W,C], [N,C,H,W] or [N,H,W]; of whatever numbers.
bool has_image_shape(const DatasetSummary& dataset) {
  return has_rows(dataset) && (dataset.shape->rank() == 4 || dataset.shape->rank() == 3);
}

bool is_image_dataset(const DatasetSummary& dataset) {
  return has_image_shape(dataset) && dataset.dtype == DType::uint8;
}

template <class Fits>
FileContents datasets_that(const FileContents& contents, Fits fits) {
  FileContents found;
  std::copy_if(contents.datasets.begin(), contents.datasets.end(),
               std::back_inserter(found.datasets), fits);
  return found;
}

/// Datasets that may be the images, of the likeliest kind that there is.
/// \param scaled  other numbers than uint8 become images.
FileContents image_candidates(const FileContents& contents, bool scaled) {
  const auto of = [&](auto fits) {
    return datasets_that(contents, [&](const DatasetSummary& dataset) {
      return has_image_shape(dataset) &&
             fits(dataset.shape->rank(), *dataset.dtype == DType::uint8);
    });
  };
  FileContents found = of([](std::size_t rank, bool uint8) { return rank == 4 && uint8; });
  // Beside images of floats, a dataset [N,H,W] may be masks.
  if (found.datasets.empty()) {
    found = of([](std::size_t rank, bool uint8) { return (rank == 3) == uint8; });
    if (!scaled && std::none_of(found.datasets.begin(), found.datasets.end(), is_image_dataset)) {
      found.datasets.clear();
    }
  }
  if (found.datasets.empty() && scaled) {
    found = of([](std::size_t rank, bool uint8) { return rank == 3 && !uint8; });
  }
  return found;
}

/// Datasets that may lead a file without images: numbers with two axes or more that are not its
/// labels, and if it has labels, those with as many rows.
FileContents other_candidates(const FileContents& contents, const std::string& labels) {
  const auto is_labels = [&](const DatasetSummary& dataset) {
    return labels.empty() ? dataset.name == kLabels || dataset.name == kLabel
                          : dataset.name == without_leading_slash(labels);
  };
  const auto found_labels =
      std::find_if(contents.datasets.begin(), contents.datasets.end(),
                   [&](const auto& dataset) { return is_labels(dataset) && has_rows(dataset); });
  return datasets_that(contents, [&](const DatasetSummary& dataset) {
    return has_rows(dataset) && dataset.shape->rank() >= 2 && !is_labels(dataset) &&
           (found_labels == contents.datasets.end() ||
            (*dataset.shape)[0] == (*found_labels->shape)[0]);
  });
}

[[noreturn]] void refuse_several(const FileContents& candidates, bool complete,
                                 const std::string& what, const std::string& path) {
  throw Error(ErrorCode::unsupported,
              path + " holds several datasets that may " + what +
                  (complete ? "" : " or more objects than are looked at") + ": " +
                  candidates.describe() + "; name one with the option images",
              "images");
}

std::string find_leading(const Dataset::Impl& file, const FileContents& contents,
                         const OpenOptions& options) {
  const std::string& path = file.info.path;
  if (!options.images.empty()) {
    return find_named(file.file(), options.images, contents, path, file.external);
  }
  std::string refusal;
  const LinkState state = follow_links(file.file(), kImages, path, file.external, refusal);
  if (state == LinkState::refused) throw refused(path, refusal);
  bool other_images = false;  // that are numbers of another shape
  if (state == LinkState::present && is_dataset(file.file(), kImages, path)) {
    const DatasetSummary images =
        summarize(open_dataset(file.file(), kImages, path), kImages, path, file.external);
    // Also if they are floats: nothing else is taken for them.
    if (has_image_shape(images) || !images.refusal.empty()) return kImages;
    other_images = has_rows(images) && images.shape->rank() >= 2;
  }

  const FileContents images = image_candidates(contents, options.scale.has_value());
  if (images.datasets.size() == 1 && contents.complete) return images.datasets.front().name;
  if (!images.datasets.empty()) refuse_several(images, contents.complete, "be the images", path);
  if (other_images) return kImages;

  const FileContents others =
      options.scale ? FileContents() : other_candidates(contents, options.labels);
  if (others.datasets.size() == 1 && contents.complete) {
    if (contents.damaged.empty()) return others.datasets.front().name;
    throw Error(ErrorCode::corrupt_data,
                path + ": what leads it may be what cannot be opened (" +
                    contents.damaged.front().reason + "); name what leads with the option images",
                "images");
  }
  if (!others.datasets.empty()) refuse_several(others, contents.complete, "lead it", path);
  throw Error(ErrorCode::unsupported,
              path +
                  " holds no images, uint8 [N,H,W,C], [N,C,H,W] or [N,H,W], and no other numbers "
                  "[N,...] with two axes or more" +
                  (contents.complete ? "" : " among the objects that are looked at") +
                  "; if it has what is to lead, name it with the option images; it holds " +
                  contents.describe(),
              "images");
}

/// \pre images are of numbers. \throws Error invalid_argument, unsupported.
void check_scale(const DatasetSummary& images, const std::optional<PixelScale>& scale,
                 const std::string& path) {
  if (!scale) return;
  const std::string what = path + ": " + images.describe();
  if (!has_image_shape(images)) {
    throw Error(ErrorCode::unsupported,
                what + " are no images: [N,H,W,C], [N,C,H,W] or [N,H,W] is needed to scale them",
                "scale");
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

/// \param own_images  it is what a file of this format has as its images, which have four axes.
/// \throws Error refused_by_policy, unsupported, corrupt_data, invalid_argument.
void check_leading(const DatasetSummary& leading, const std::optional<PixelScale>& scale,
                   bool own_images, const std::string& path) {
  if (!leading.refusal.empty()) throw refused(path, leading.describe());
  if (own_images && (!is_image_dataset(leading) || leading.shape->rank() != 4)) {
    throw Error(ErrorCode::unsupported, path + ": " + leading.describe() +
                                            " are no images: a uint8 dataset [N,H,W,C] or "
                                            "[N,C,H,W] is needed");
  }
  if (!has_rows(leading)) {
    throw Error(ErrorCode::unsupported, path + ": " + leading.describe() +
                                            " cannot lead: numbers with a row for each sample are "
                                            "needed, [N] or [N,...]");
  }
  check_scale(leading, scale, path);
  const Shape& shape = *leading.shape;
  for (const std::int64_t dim : shape.dims()) {
    if (dim == 0) {
      throw Error(ErrorCode::corrupt_data,
                  path + ": " + leading.describe() + " is empty; there is nothing to read");
    }
  }
  auto row_bytes = base::checked_product(shape.dims().subspan(1));
  if (row_bytes) {
    // Those to be scaled are read as float64 before.
    const std::size_t element_bytes = size_of(scale ? DType::float64 : *leading.dtype);
    row_bytes = base::checked_multiply(*row_bytes, static_cast<std::int64_t>(element_bytes));
  }
  if (!row_bytes || *row_bytes > kMaxSampleBytes || shape[0] > kMaxSamples ||
      !base::checked_multiply(shape[0], *row_bytes)) {
    throw Error(ErrorCode::corrupt_data,
                path + ": " + leading.describe() + " is larger than any dataset of samples");
  }
}

/// The group of the CSR matrix that leads, if one does.
std::optional<std::string> find_sparse(const Dataset::Impl& file, const FileContents& contents,
                                       const OpenOptions& options) {
  std::vector<std::string> groups = sparse_groups(contents);
  const auto is_one = [&](const std::string& name) {
    return std::find(groups.begin(), groups.end(), name) != groups.end();
  };
  if (!options.images.empty()) {
    std::string name = without_leading_slash(options.images);
    if (is_one(name)) return name;
    return std::nullopt;
  }
  // Graphs between the samples, or the variables, of AnnData lead only if they are named.
  std::erase_if(groups, [](const std::string& name) {
    return name.starts_with("obsp/") || name.starts_with("varp/");
  });
  std::string refusal;
  if (groups.empty() || follow_links(file.file(), kImages, file.info.path, file.external,
                                     refusal) != LinkState::absent) {
    return std::nullopt;
  }
  // As AnnData and 10x Genomics call it; a dense one of AnnData leads before others.
  for (const char* name : {sparse::kMatrix, "matrix"}) {
    if (is_one(name)) return name;
  }
  const bool has_dense = std::any_of(
      contents.datasets.begin(), contents.datasets.end(),
      [](const auto& dataset) { return dataset.name == sparse::kMatrix && has_rows(dataset); });
  if (has_dense || !image_candidates(contents, options.scale.has_value()).datasets.empty()) {
    return std::nullopt;
  }
  if (groups.size() == 1 && contents.complete) return groups.front();
  std::string names;
  for (const std::string& name : groups) names += (names.empty() ? "" : ", ") + printable(name);
  throw Error(ErrorCode::unsupported,
              file.info.path + " holds several sparse matrices: " + names +
                  "; name one with the option images",
              "images");
}

struct GivenOption {
  const char* name;
  bool given;
};

/// Options that mean nothing where this leads. \param what  leads, and what it is: "X is a sparse
/// matrix, not images". \throws Error invalid_argument.
void refuse_options(std::initializer_list<GivenOption> options, const std::string& what,
                    const DatasetInfo& info) {
  for (const auto& [name, given] : options) {
    if (!given) continue;
    throw Error(ErrorCode::invalid_argument,
                info.path + ": " + what + "; leave out the option " + name, name);
  }
}

void open_sparse_leading(Dataset::Impl& file, const std::string& group,
                         const FileContents& contents, const OpenOptions& options) {
  DatasetInfo& info = file.info;
  refuse_options({{"layout", options.layout.has_value()},
                  {"scale", options.scale.has_value()},
                  {"decode", options.decode.has_value()}},
                 printable(group) + " is a sparse matrix, not images", info);
  file.sparse = open_sparse(file, group, contents, options.columns_as_rows);
  const SparseMatrix& matrix = *file.sparse;
  file.leading = matrix.values;
  info.stored = {.shape = {matrix.rows, matrix.columns},
                 .dtype = matrix.values->stored.dtype,
                 .filters = matrix.values->stored.filters};
  info.stored_bytes =
      matrix.values->stored_bytes + matrix.indices->stored_bytes + matrix.offsets->stored_bytes;
  info.num_samples = matrix.rows;
  info.leading = {group, info.stored.dtype, Shape{matrix.columns}};
  info.sparse = {.columns = matrix.columns,
                 .num_entries = matrix.num_entries,
                 .index_dtype = matrix.index_dtype(),
                 .transposed = matrix.transposed};
  MatrixNames names = matrix.transposed
                          ? find_names(file, group, contents, matrix.columns, matrix.rows)
                          : find_names(file, group, contents, matrix.rows, matrix.columns);
  if (matrix.transposed) std::swap(names.rows, names.columns);
  info.sparse->row_names = std::move(names.rows);
  info.sparse->column_names = std::move(names.columns);
}

/// The group of the encoded images that lead, if they do.
std::optional<std::string> find_encoded(const Dataset::Impl& file, const OpenOptions& options) {
  const std::string name =
      options.images.empty() ? std::string(kImages) : without_leading_slash(options.images);
  std::string refusal;
  if (follow_links(file.file(), name, file.info.path, file.external, refusal) !=
          LinkState::present ||
      is_dataset(file.file(), name, file.info.path) || !has_encoded_images(file, name)) {
    return std::nullopt;
  }
  return name;
}

void open_encoded_leading(Dataset::Impl& file, const std::string& group,
                          const FileContents& contents, const OpenOptions& options) {
  DatasetInfo& info = file.info;
  refuse_options({{"layout", options.layout.has_value()}, {"scale", options.scale.has_value()}},
                 printable(group) + " are encoded images, not stored pixels", info);
  file.encoded = open_encoded(file, group, contents, options.decode);
  const EncodedImages& images = *file.encoded;
  file.leading = images.data;
  info.stored = {
      .shape = {images.rows}, .dtype = DType::uint8, .filters = images.data->stored.filters};
  info.stored_bytes =
      images.data->stored_bytes + images.offsets->stored_bytes + images.sizes->stored_bytes;
  info.num_samples = images.rows;
  info.leading = {group, DType::uint8, {}};
  info.encoded = {
      .num_bytes = images.num_bytes,
      .max_height = images.max_height,
      .max_width = images.max_width,
      .max_pixels = images.max_pixels,
      .random_crops = images.decoding && images.decoding->crop == CropMode::random_resized};
  if (!images.decoding) return;
  info.images_path = group;
  info.height = images.decoding->output.height;
  info.width = images.decoding->output.width;
  info.channels = static_cast<std::int64_t>(images.decoding->num_channels);
  info.leading.row_shape = info.sample_shape();
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
  const AttributeReader attributes(impl.leading->dataset.get(), printable(impl.info.images_path),
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

void open_leading(Dataset::Impl& file, const FileContents& contents, const OpenOptions& options) {
  DatasetInfo& info = file.info;
  if (const auto group = find_encoded(file, options)) {
    open_encoded_leading(file, *group, contents, options);
    return;
  }
  if (const auto group = find_sparse(file, contents, options)) {
    open_sparse_leading(file, *group, contents, options);
    return;
  }
  const std::string name = find_leading(file, contents, options);
  const DatasetSummary leading =
      summarize(open_dataset(file.file(), name, info.path), name, info.path, file.external);
  const bool own_images =
      has_format(file.file().get(), info.path) && (options.images.empty() || name == kImages);
  check_leading(leading, options.scale, own_images, info.path);
  refuse_options({{"decode", options.decode.has_value()}},
                 leading.describe() + " are no encoded images", info);
  const bool images = has_image_shape(leading) && (leading.dtype == DType::uint8 || options.scale);
  const DType dtype = images ? DType::uint8 : *leading.dtype;
  file.leading = open_array(file, name, *leading.shape, dtype,
                            std::numeric_limits<std::int64_t>::max(), options.scale);
  info.stored = file.leading->stored;
  info.num_chunks = file.leading->num_chunks;
  info.stored_bytes = file.leading->stored_bytes;
  info.num_samples = info.stored.shape[0];
  info.leading = {name, dtype, info.stored.shape.without_first_axis()};
  if (images) {
    info.images_path = name;
    set_layout(file, options.layout, own_images);
    info.leading.row_shape = info.sample_shape();
  } else {
    refuse_options({{"layout", options.layout.has_value()}},
                   leading.describe() + " are no images, and have no axis order", info);
  }
}

}  // namespace chunkio::h5
