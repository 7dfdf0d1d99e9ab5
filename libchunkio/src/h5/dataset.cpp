#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <iterator>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <hdf5.h>

#include <chunkio/dataset.hpp>

#include "base/checked_math.hpp"
#include "base/element_fill.hpp"
#include "base/shard_names.hpp"
#include "h5/chunk_check.hpp"
#include "h5/dataset_impl.hpp"
#include "h5/decoded_rows.hpp"
#include "h5/error_stack.hpp"
#include "h5/file_contents.hpp"
#include "h5/library.hpp"
#include "h5/schema.hpp"
#include "h5/shard_set.hpp"
#include "h5/stored_array.hpp"

namespace chunkio {
namespace {

using namespace h5;  // NOLINT(google-build-using-namespace): this file is part of that layer

/// In what people call labels; a blank stands for where a word begins or ends.
constexpr std::array<std::string_view, 7> kLabelWords = {"label",    "target",  " y ", " class",
                                                         " categor", " truth ", " gt "};

std::string without_leading_slash(const std::string& name) {
  return name.substr(std::min(name.find_first_not_of('/'), name.size()));
}

struct stat status_of(const base::FileDescriptor& file, const std::string& path) {
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) throw base::system_error(errno, "inspect", path);
  return status;
}

std::int64_t modified_at(const struct stat& status) {
  return std::int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec;
}

/// "2026-01-31 12:00:00.000000001 UTC".
std::string time_text(std::int64_t nanoseconds) {
  constexpr std::int64_t kSecond = 1'000'000'000;
  const std::int64_t fraction = (nanoseconds % kSecond + kSecond) % kSecond;
  const auto seconds = static_cast<std::time_t>((nanoseconds - fraction) / kSecond);
  std::tm parts{};
  std::array<char, 64> text{};
  if (::gmtime_r(&seconds, &parts) == nullptr) return std::to_string(nanoseconds) + " ns";
  const std::size_t size = std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%S", &parts);
  std::snprintf(text.data() + size, text.size() - size, ".%09d UTC", static_cast<int>(fraction));
  return text.data();
}

/// X-*-of-00008.h5 for X-00003-of-00008.h5; absent for a file of another name.
std::optional<std::string> pattern_of(const std::string& file) {
  const std::size_t end = file.rfind("-of-");
  if (end == std::string::npos) return std::nullopt;
  const std::size_t before = file.find_last_not_of("0123456789", end - 1);
  if (before == std::string::npos || before + 1 == end || file[before] != '-') return std::nullopt;
  const std::string pattern = file.substr(0, before + 1) + "*" + file.substr(end);
  try {
    if (!base::ShardPattern::parse(pattern)) return std::nullopt;
  } catch (const Error&) {
    return std::nullopt;  // an impossible number of files
  }
  return pattern;
}

/// What to open instead of a folder.
std::string files_in(const std::string& folder) {
  constexpr std::size_t kMostNamed = 3;
  std::vector<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string extension = entry->path().extension().string();
    if (extension == ".h5" || extension == ".hdf5") names.push_back(entry->path().string());
  }
  if (names.empty()) return "give the path of an HDF5 file";
  std::sort(names.begin(), names.end());
  std::string text = "open one of its files: ";
  for (std::size_t i = 0; i < std::min(names.size(), kMostNamed); ++i) {
    text += (i == 0 ? "" : ", ") + printable(names[i]);
  }
  if (names.size() > kMostNamed) {
    text += " and " + std::to_string(names.size() - kMostNamed) + " more";
  }
  if (const auto pattern = pattern_of(names.front())) {
    text += "; or all files of one dataset: " + printable(*pattern);
  }
  return text;
}

/// The signature stands at byte 0, or after a user block of 512, 1024, 2048, ... bytes.
/// \throws Error corrupt_data if it is nowhere.
void check_signature(const base::FileDescriptor& file, std::int64_t size, const std::string& path) {
  constexpr std::array<unsigned char, 8> kSignature = {0x89, 'H', 'D', 'F', '\r', '\n', 0x1a, '\n'};
  for (std::int64_t offset = 0; offset + 8 <= size; offset = offset == 0 ? 512 : offset * 2) {
    std::array<std::byte, 8> bytes{};
    base::read_at(file.get(), offset, bytes, path);
    if (std::equal(
            bytes.begin(), bytes.end(), kSignature.begin(),
            [](std::byte a, unsigned char b) { return std::to_integer<unsigned char>(a) == b; })) {
      return;
    }
  }
  throw Error(ErrorCode::corrupt_data,
              path + (size == 0 ? " is empty, not an HDF5 file" : " is not an HDF5 file") +
                  "; make one with h5pack");
}

/// libhdf5 opens by name, so somebody could have put another file there meanwhile.
void check_same_file(const Dataset::Impl& impl) {
  const std::string& path = impl.info.path;
  void* handle = nullptr;
  check_status(H5Fget_vfd_handle(impl.file.get(), H5P_DEFAULT, &handle), "inspect", path);
  struct stat ours {};
  struct stat theirs {};
  if (::fstat(impl.descriptor.get(), &ours) != 0 ||
      ::fstat(*static_cast<const int*>(handle), &theirs) != 0) {
    throw base::system_error(errno, "inspect", path);
  }
  if (ours.st_dev != theirs.st_dev || ours.st_ino != theirs.st_ino) {
    throw Error(ErrorCode::io_failed, path + " was replaced while it was opened; open it again");
  }
}

Error refused(const std::string& path, const std::string& what) {
  return Error(ErrorCode::refused_by_policy,
               path + ": " + what +
                   ", and only what lies in the file itself is read; name the dataset that has the "
                   "data, copy it all into one file, or set the option allow_external",
               "allow_external");
}

/// A link over shards says what to open instead. Asked before any dataset is opened: libhdf5
/// decodes the mappings of a virtual dataset with the dataset, from a heap without checksums, and
/// some damage there ends the process. \throws Error refused_by_policy.
void refuse_link(const FileId& file, const std::string& path) {
  const auto pattern =
      AttributeReader(file.get(), "the root group", path).text(root_attribute::kShardPattern);
  if (!pattern || !base::ShardPattern::parse(*pattern)) return;
  const std::size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "" : path.substr(0, slash + 1);
  throw Error(ErrorCode::refused_by_policy, path +
                                                " holds no images, it links files that do; open '" +
                                                folder + printable(*pattern) + "' instead");
}

/// What is to be read must have been opened the first time: libhdf5 keeps a header of which it
/// found a part damaged, and later opens the object without that part, attributes missing. \throws
/// Error corrupt_data.
void refuse_damaged(const FileContents& contents, const OpenOptions& options) {
  for (const std::string& wanted :
       {options.images.empty() ? std::string(kImages) : without_leading_slash(options.images),
        without_leading_slash(options.labels), std::string(kLabels), std::string("label"),
        std::string(kSampleDigests)}) {
    for (const DamagedObject& object : contents.damaged) {
      if (wanted != object.name && !wanted.starts_with(object.name + "/")) continue;
      throw Error(ErrorCode::corrupt_data,
                  object.reason + "; the file is damaged, copy or download it again");
    }
  }
}

External policy(const OpenOptions& options) {
  return options.allow_external ? External::allowed : External::refused;
}

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

/// The path of the dataset `name`.
/// \throws Error not_found, refused_by_policy, unsupported.
std::string find_named(const FileId& file, const std::string& wanted, const OpenOptions& options,
                       const FileContents& contents, const std::string& path) {
  std::string name = without_leading_slash(wanted);
  std::string refusal;
  const LinkState state = follow_links(file, name, path, policy(options), refusal);
  if (state == LinkState::refused) throw refused(path, refusal);
  if (state == LinkState::absent) {
    throw Error(ErrorCode::not_found, "no dataset " + printable(wanted) + " in " + path +
                                          "; it holds " + contents.describe());
  }
  if (!is_dataset(file, name, path)) {
    throw Error(ErrorCode::unsupported, printable(name) + " in " + path +
                                            " is not a dataset; the file holds " +
                                            contents.describe());
  }
  return name;
}

std::string find_images(const FileId& file, const OpenOptions& options,
                        const FileContents& contents, const std::string& path) {
  if (!options.images.empty()) return find_named(file, options.images, options, contents, path);

  std::string refusal;
  const LinkState state = follow_links(file, kImages, path, policy(options), refusal);
  if (state == LinkState::refused) throw refused(path, refusal);
  if (state == LinkState::present && is_dataset(file, kImages, path)) {
    const DatasetSummary images =
        summarize(open_dataset(file, kImages, path), kImages, path, policy(options));
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
void check_pictures(const DatasetSummary& images, const std::optional<PixelScale>& scale, bool ours,
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

/// Whether the file is marked as one of this library's format.
bool has_format(const Dataset::Impl& impl) {
  return check_status(H5Aexists(impl.file.get(), root_attribute::kFormat), "look for attributes in",
                      impl.info.path) > 0;
}

/// The `layout` attribute. Third-party files may use the name for anything, so there it only counts
/// if it fits.
std::optional<Layout> stored_layout(const Dataset::Impl& impl) {
  const AttributeReader attributes(impl.images->dataset.get(), printable(impl.info.images_path),
                                   impl.info.path);
  const bool ours = has_format(impl);
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

void set_layout(Dataset::Impl& impl, const std::optional<Layout>& wanted) {
  DatasetInfo& info = impl.info;
  const Shape& shape = info.stored.shape;
  if (shape.rank() == 3) {  // one channel: both orders are the same bytes
    info.layout = wanted.value_or(Layout::nhwc);
    info.height = shape[1];
    info.width = shape[2];
    info.channels = 1;
    return;
  }
  const bool ours = has_format(impl);
  std::optional<Layout> layout = wanted && !ours ? wanted : stored_layout(impl);
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

/// Numbers for each image, without being refused.
bool is_parallel(const DatasetSummary& dataset, std::int64_t num_samples) {
  return dataset.dtype && dataset.shape && dataset.refusal.empty() && dataset.shape->rank() > 0 &&
         (*dataset.shape)[0] == num_samples;
}

/// Whether the bytes of its rows can be counted: no file holds more, but any file can say so.
/// \pre is_parallel.
bool is_oversized(const DatasetSummary& dataset) {
  const auto elements = base::checked_product(dataset.shape->dims().subspan(1));
  if (!elements || *elements > kMaxSampleBytes) return true;
  const auto row_bytes = *elements * static_cast<std::int64_t>(size_of(*dataset.dtype));
  return !base::checked_multiply((*dataset.shape)[0], row_bytes);
}

Error oversized(const DatasetSummary& dataset, const std::string& path) {
  return Error(ErrorCode::unsupported, path + ": " + dataset.describe() +
                                           " is larger than any dataset with a row for each "
                                           "image; leave it out, or write the file again");
}

/// The dataset as a field, if it runs parallel to the images.
std::optional<FieldInfo> as_field(const DatasetSummary& dataset, std::int64_t num_samples) {
  if (!is_parallel(dataset, num_samples) || is_oversized(dataset)) return std::nullopt;
  const Shape row_shape = dataset.shape->without_first_axis();
  if (row_shape.num_elements() < 1) return std::nullopt;
  return FieldInfo{dataset.name, *dataset.dtype, row_shape};
}

bool is_integer(DType dtype) { return dtype < DType::float32; }

/// The field as labels: integers [N] or [N,1] are delivered as int64 [N], uint8 [N,A] as it is.
/// \param own  of a file of this format, where uint8 [N,1] is a table of one attribute.
std::optional<FieldInfo> as_labels(std::optional<FieldInfo> field, bool own) {
  if (!field || field->row_shape.rank() > 1) return std::nullopt;
  const bool column = field->row_shape.rank() == 1;
  const bool table = column && field->dtype == DType::uint8;
  if (table && (own || field->row_shape[0] > 1)) return field;
  if (!is_integer(field->dtype) || field->row_shape.num_elements() != 1) return std::nullopt;
  return FieldInfo{field->name, DType::int64, Shape{}};
}

/// "labels float32 [40] cannot be labels of 40 images: WHAT CAN".
std::string cannot_be_labels(const std::string& dataset, std::int64_t num_samples) {
  const std::string n = std::to_string(num_samples);
  return dataset + " cannot be labels of " + n + " images: integers [" + n + "] or [" + n +
         ",1], or uint8 [" + n + ",A], are needed";
}

/// Whether people call labels so: "y_train", "data/Labels", "targets".
bool sounds_like_labels(std::string name) {
  std::transform(name.begin(), name.end(), name.begin(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0
               ? static_cast<char>(std::tolower(static_cast<unsigned char>(c)))
               : ' ';
  });
  const std::string words = " " + name + " ";
  return std::any_of(kLabelWords.begin(), kLabelWords.end(),
                     [&](std::string_view word) { return words.find(word) != std::string::npos; });
}

/// Images whose labels are passed over would be a surprise.
/// \param unfit  what is called labels and cannot be, if there is that.
/// \returns DatasetInfo::why_no_labels.
std::string why_no_labels(const DatasetInfo& info, const FileContents& contents,
                          const std::string& unfit) {
  std::string why = unfit.empty() ? "" : cannot_be_labels(unfit, info.num_samples);
  FileContents candidates;
  for (const DatasetSummary& dataset : contents.datasets) {
    if (dataset.name == info.images_path || !sounds_like_labels(dataset.name)) continue;
    if (as_labels(as_field(dataset, info.num_samples), false)) {
      candidates.datasets.push_back(dataset);
    } else if (why.empty() && dataset.shape && dataset.shape->rank() > 0 &&
               (*dataset.shape)[0] == info.num_samples) {
      why = cannot_be_labels(dataset.describe(), info.num_samples);
    }
  }
  if (candidates.datasets.empty()) return why;
  return why + (why.empty() ? "" : "; ") + candidates.describe() +
         (candidates.datasets.size() == 1 ? " looks" : " look") + " like labels: set labels = \"" +
         printable(candidates.datasets.front().name) + "\" to have them";
}

void find_labels(Dataset::Impl& impl, const OpenOptions& options, const FileContents& contents) {
  DatasetInfo& info = impl.info;
  const auto summary_of = [&](const std::string& name) {
    return summarize(open_dataset(impl.file, name, info.path), name, info.path, impl.external);
  };
  const auto labels_from = [&](const DatasetSummary& labels) {
    if (is_parallel(labels, info.num_samples) && is_oversized(labels)) {
      throw oversized(labels, info.path);
    }
    return as_labels(as_field(labels, info.num_samples), info.format_version.has_value());
  };
  if (!options.labels.empty()) {
    const DatasetSummary labels =
        summary_of(find_named(impl.file, options.labels, options, contents, info.path));
    if (!labels.refusal.empty()) throw refused(info.path, labels.describe());
    info.labels = labels_from(labels);
    if (!info.labels) {
      throw Error(ErrorCode::unsupported,
                  info.path + ": " + cannot_be_labels(labels.describe(), info.num_samples));
    }
    return;
  }
  std::string unfit;
  for (const char* name : {kLabels, "label"}) {
    std::string refusal;
    const LinkState state = follow_links(impl.file, name, info.path, impl.external, refusal);
    // Images without their labels would be a surprise, so what looks like labels is not passed
    // over.
    if (state == LinkState::refused) throw refused(info.path, refusal);
    if (state == LinkState::absent) continue;
    if (!is_dataset(impl.file, name, info.path)) {
      if (unfit.empty()) unfit = name + std::string(", which is no dataset,");
      continue;
    }
    const DatasetSummary labels = summary_of(name);
    if (!labels.refusal.empty()) throw refused(info.path, labels.describe());
    info.labels = labels_from(labels);
    if (info.labels) return;
    if (info.format_version) {
      throw Error(ErrorCode::corrupt_data, info.path + ": " + labels.describe() + " does not fit " +
                                               std::to_string(info.num_samples) +
                                               " images; write the file again");
    }
    if (unfit.empty()) unfit = labels.describe();
  }
  // A file of this format says what its labels are.
  if (!info.format_version) info.why_no_labels = why_no_labels(info, contents, unfit);
}

/// Whether the dataset is that of the digests, which is no field.
bool holds_digests(const DatasetInfo& info, const std::string& name) {
  return info.format_version.value_or(1) > 1 && name == kSampleDigests;
}

/// Finds out what the digests of samples cover. \throws Error corrupt_data.
void find_digests(Dataset::Impl& impl) {
  DatasetInfo& info = impl.info;
  std::string refusal;
  if (!holds_digests(info, kSampleDigests) ||
      follow_links(impl.file, kSampleDigests, info.path, External::refused, refusal) !=
          LinkState::present ||
      !is_dataset(impl.file, kSampleDigests, info.path)) {
    return;
  }
  const DatasetId dataset = open_dataset(impl.file, kSampleDigests, info.path);
  std::vector<std::string> names = read_covered_names(dataset.get(), info.path);
  if (names.empty()) return;
  const DatasetSummary digests = summarize(dataset, kSampleDigests, info.path, External::refused);
  if (digests.dtype != DType::uint64 || digests.shape != Shape{info.num_samples} ||
      !digests.refusal.empty()) {
    throw Error(ErrorCode::corrupt_data,
                info.path + ": " + digests.describe() + " are no digests of " +
                    std::to_string(info.num_samples) + " samples; write the file again");
  }
  // Those of other images than these say nothing.
  if (names.front() == info.images_path) info.digests_cover = std::move(names);
}

/// Sets the fields, and what is left out.
void find_fields(Dataset::Impl& impl, const FileContents& contents) {
  DatasetInfo& info = impl.info;
  for (const DatasetSummary& dataset : contents.datasets) {
    if (dataset.name == info.images_path || (info.labels && dataset.name == info.labels->name) ||
        holds_digests(info, dataset.name)) {
      continue;
    }
    if (auto field = as_field(dataset, info.num_samples)) {
      info.fields.push_back(*std::move(field));
      continue;
    }
    if (is_parallel(dataset, info.num_samples) && is_oversized(dataset)) {
      impl.oversized_fields.push_back(dataset);
    }
    info.left_out.push_back(dataset.describe());
  }
  if (!contents.complete) info.left_out.emplace_back("more objects than are looked at");
}

/// Whether every label has bytes of its own in the file. Those that have none read as the fill
/// value, and a small file can claim any number of them.
bool are_stored(const StoredArray& labels, const DatasetInfo& info) {
  const std::string action = "inspect the labels of";
  const ListId creation(check_id(H5Dget_create_plist(labels.dataset.get()), action, info.path));
  if (H5Pget_layout(creation.get()) == H5D_VIRTUAL) return true;  // stored elsewhere
  if (check_status(H5Pget_nfilters(creation.get()), action, info.path) > 0) {
    // Chunks that are there are bounded by the file: what they decode to has one possible size.
    const SpaceId space(check_id(H5Dget_space(labels.dataset.get()), action, info.path));
    hsize_t num_chunks = 0;
    check_status(H5Dget_num_chunks(labels.dataset.get(), space.get(), &num_chunks), action,
                 info.path);
    return num_chunks >= static_cast<hsize_t>(labels.num_chunks);
  }
  const TypeId type(check_id(H5Dget_type(labels.dataset.get()), action, info.path));
  return labels.stored_bytes / static_cast<std::int64_t>(H5Tget_size(type.get())) >=
         info.num_samples;
}

/// Opens a field, or the labels, to be read through libhdf5.
/// \throws Error as open_array: what cannot be decoded within bounds is not read.
std::shared_ptr<const StoredArray> open_field(const Dataset::Impl& impl, const FieldInfo& field) {
  // Two of the largest chunks that are decoded.
  constexpr std::int64_t kMaxCacheBytes = std::int64_t{512} << 20;
  return open_array(impl, field.name, field.row_shape.with_first_axis(impl.info.num_samples),
                    field.dtype, kMaxCacheBytes);
}

/// Whether a file may have that many labels to be read when it is opened. Filters make a thousand
/// out of one byte, and those of a virtual dataset can be claimed without any; but no image takes
/// less than a byte.
bool is_large_enough(const Dataset::Impl& impl) {
  constexpr std::int64_t kAlwaysRead = std::int64_t{1} << 24;
  return impl.info.num_samples <= std::max(kAlwaysRead, impl.file_bytes);
}

/// Labels index class names, so one out of range would be read beyond a table.
void check_labels(const Dataset::Impl& impl, LinkFiles link_files) {
  const DatasetInfo& info = impl.info;
  if (!info.labels) return;
  const std::shared_ptr<const StoredArray> array = open_field(impl, *info.labels);
  const auto num_classes = static_cast<std::int64_t>(info.class_names.size());
  if (num_classes == 0 || info.labels->dtype != DType::int64) return;
  constexpr std::int64_t kPiece = 1 << 16;
  if (!are_stored(*array, info)) {
    throw Error(ErrorCode::corrupt_data,
                info.path + ": " + printable(info.labels->name) + " lacks some of its " +
                    std::to_string(info.num_samples) + " values; write the file again");
  }
  // The images of a link lie in files that were opened themselves.
  if (link_files == LinkFiles::refused && !is_large_enough(impl)) {
    throw Error(ErrorCode::corrupt_data,
                info.path + ": " + printable(info.labels->name) + " has " +
                    std::to_string(info.num_samples) + " rows, the file only " +
                    std::to_string(impl.file_bytes) + " bytes; write the file again");
  }
  std::vector<std::int64_t> values(static_cast<std::size_t>(std::min(kPiece, info.num_samples)));
  for (std::int64_t first = 0; first < info.num_samples; first += kPiece) {
    const std::int64_t count = std::min(kPiece, info.num_samples - first);
    const std::span piece(values.data(), static_cast<std::size_t>(count));
    read_rows(*array, first, count, std::as_writable_bytes(piece), info.path);
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t label = piece[static_cast<std::size_t>(i)];
      if (label < 0 || label >= num_classes) {
        throw Error(ErrorCode::corrupt_data, info.path + ": label " + std::to_string(label) +
                                                 " of sample " + std::to_string(first + i) +
                                                 " is none of the " + std::to_string(num_classes) +
                                                 " classes; write the file again");
      }
    }
  }
}

void check_range(std::int64_t size, std::int64_t first, std::int64_t count, const std::string& name,
                 const std::string& path) {
  if (first < 0 || count < 0 || first > size || count > size - first) {
    throw Error(ErrorCode::invalid_argument,
                "rows [" + std::to_string(first) + ", " + std::to_string(first) + " + " +
                    std::to_string(count) + ") do not lie in the " + std::to_string(size) +
                    " rows of " + printable(name) + " in " + path);
  }
}

/// Puts the fill value into `out` if libhdf5 will not: it leaves memory as it is, with what another
/// row left there, where a chunk has no storage and the file says never to fill.
void fill_if_never_filled(const DatasetId& dataset, DType dtype, std::span<std::byte> out,
                          const std::string& action, const std::string& path) {
  const ListId creation(check_id(H5Dget_create_plist(dataset.get()), action, path));
  H5D_fill_time_t fill = H5D_FILL_TIME_ERROR;
  H5D_alloc_time_t allocation = H5D_ALLOC_TIME_ERROR;
  check_status(H5Pget_fill_time(creation.get(), &fill), action, path);
  check_status(H5Pget_alloc_time(creation.get(), &allocation), action, path);
  // Files of DatasetWriter: nothing is missing.
  if (fill != H5D_FILL_TIME_NEVER || allocation == H5D_ALLOC_TIME_EARLY) return;
  std::vector<std::byte> element(size_of(dtype));
  H5D_fill_value_t defined = H5D_FILL_VALUE_UNDEFINED;
  check_status(H5Pfill_value_defined(creation.get(), &defined), action, path);
  if (defined == H5D_FILL_VALUE_USER_DEFINED) {
    check_status(H5Pget_fill_value(creation.get(), memory_type(dtype), element.data()), action,
                 path);
  }
  base::fill_elements(out, element);
}

/// libhdf5 takes some 1.5 KiB for each chunk that a call of H5Dread touches.
std::int64_t rows_at_once(const StoredArray& array) {
  constexpr std::int64_t kMaxChunks = 1024;
  const std::int64_t num_rows = array.stored.shape[0];
  if (array.num_chunks <= kMaxChunks) return num_rows;
  const std::int64_t chunk_rows = array.stored.chunk_shape[0];
  const std::int64_t columns = array.num_chunks / base::ceil_divide(num_rows, chunk_rows);
  return std::max<std::int64_t>(kMaxChunks / columns, 1) * chunk_rows;
}

/// Called by libhdf5 for a number that the delivered type cannot hold, which it would clip: a label
/// of type uint64 beyond int64. \param beyond set to true.
H5T_conv_ret_t stop_at_clipped(H5T_conv_except_t what, hid_t /*from*/, hid_t /*to*/,
                               void* /*source*/, void* /*target*/, void* beyond) {
  if (what != H5T_CONV_EXCEPT_RANGE_HI && what != H5T_CONV_EXCEPT_RANGE_LOW) {
    return H5T_CONV_UNHANDLED;
  }
  *static_cast<bool*>(beyond) = true;
  return H5T_CONV_ABORT;
}

/// One call of H5Dread, or what stands for it. \param dtype  of `out`.
void read_block(const StoredArray& array, DType dtype, std::int64_t first, std::int64_t count,
                std::span<std::byte> out, const std::string& path) {
  // Both dataspaces have the same rank: libhdf5 maps selections of unequal rank element by element.
  const Shape& shape = array.stored.shape;
  std::array<hsize_t, Shape::kMaxRank> start{};
  std::array<hsize_t, Shape::kMaxRank> block{};
  for (std::size_t axis = 0; axis < shape.rank(); ++axis) {
    block[axis] = static_cast<hsize_t>(axis == 0 ? count : shape[axis]);
  }
  start[0] = static_cast<hsize_t>(first);
  const std::string action = "read rows " + std::to_string(first) + " to " +
                             std::to_string(first + count - 1) + " of " + printable(array.name) +
                             " in";
  const hid_t dataset = array.dataset.get();
  const SpaceId file_space(check_id(H5Dget_space(dataset), action, path));
  check_status(H5Sselect_hyperslab(file_space.get(), H5S_SELECT_SET, start.data(), nullptr,
                                   block.data(), nullptr),
               action, path);
  const SpaceId memory_space(check_id(
      H5Screate_simple(static_cast<int>(shape.rank()), block.data(), nullptr), action, path));
  fill_if_never_filled(array.dataset, dtype, out, action, path);
  const ListId transfer(check_id(H5Pcreate(H5P_DATASET_XFER), action, path));
  bool beyond = false;
  check_status(H5Pset_type_conv_cb(transfer.get(), &stop_at_clipped, &beyond), action, path);
  const herr_t status =
      array.decoded_here ? read_decoded_rows(array, dtype, first, count, out, transfer.get(), path)
                         : H5Dread(dataset, memory_type(dtype), memory_space.get(),
                                   file_space.get(), transfer.get(), out.data());
  if (beyond) {
    throw Error(ErrorCode::unsupported, path + ": rows " + std::to_string(first) + " to " +
                                            std::to_string(first + count - 1) + " of " +
                                            printable(array.name) +
                                            " have a number that int64 cannot hold; write smaller "
                                            "ones");
  }
  check_status(status, action, path);
}

std::string number_text(double number) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%g", number);
  return text.data();
}

/// Rows that are scaled at a time.
std::int64_t rows_to_scale(const StoredArray& array) noexcept {
  constexpr std::int64_t kBytes = std::int64_t{8} << 20;
  const std::int64_t numbers = kBytes / static_cast<std::int64_t>(sizeof(double));
  return std::clamp<std::int64_t>(numbers / array.row_bytes, 1, array.stored.shape[0]);
}

/// Makes pixels of the numbers of whole rows. \param first  row of the dataset.
/// \throws Error unsupported naming the row.
void scale_rows(std::span<const double> numbers, const StoredArray& array, std::int64_t first,
                std::span<std::byte> pixels, const std::string& path) {
  const PixelScale& scale = *array.scale;
  const double low = std::min(scale.black, scale.white);
  const double high = std::max(scale.black, scale.white);
  const double range = scale.white - scale.black;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const bool inside = numbers[i] >= low && numbers[i] <= high;
    if (!inside && (!scale.clip || std::isnan(numbers[i]))) {
      const auto row = first + static_cast<std::int64_t>(i) / array.row_bytes;
      throw Error(ErrorCode::unsupported,
                  path + ": row " + std::to_string(row) + " of " + printable(array.name) +
                      (std::isnan(numbers[i])
                           ? " has a NaN, which no pixel can be"
                           : " has the number " + number_text(numbers[i]) + ", outside of " +
                                 number_text(scale.black) + ".." + number_text(scale.white) +
                                 "; choose another scale, or set clip"),
                  "scale", "clip");
    }
    const double number = inside ? numbers[i] : std::clamp(numbers[i], low, high);
    // In 0..255, so adding a half and cutting rounds to nearest.
    pixels[i] = static_cast<std::byte>((number - scale.black) / range * 255 + 0.5);
  }
}

}  // namespace

namespace {

/// What is wrong with a request for rows. \throws Error invalid_argument.
void check_request(std::int64_t num_rows, std::int64_t first, std::int64_t count,
                   std::size_t row_bytes, std::size_t room, const std::string& name,
                   const std::string& path) {
  check_range(num_rows, first, count, name, path);
  const auto expected = base::checked_multiply(static_cast<std::size_t>(count), row_bytes);
  if (!expected || room != *expected) {
    throw Error(ErrorCode::invalid_argument,
                std::to_string(count) + " rows of " + printable(name) + " in " + path + " take " +
                    std::to_string(row_bytes) + " bytes each, the buffer has " +
                    std::to_string(room));
  }
}

/// Calls read(i, first, count, out) for each file i of several that holds some of the rows: which
/// of its own, and where they go.
template <class Read>
void for_each_shard(const DatasetInfo& info, std::int64_t first, std::int64_t count,
                    std::span<std::byte> out, std::size_t row_bytes, Read read) {
  for (std::size_t i = 0; i < info.shards.size(); ++i) {
    const ShardFile& shard = info.shards[i];
    const std::int64_t begin = std::max(first, shard.first_row);
    const std::int64_t end = std::min(first + count, shard.first_row + shard.num_samples);
    if (begin >= end) continue;
    read(i, begin - shard.first_row, end - begin,
         out.subspan(static_cast<std::size_t>(begin - first) * row_bytes,
                     static_cast<std::size_t>(end - begin) * row_bytes));
  }
}

}  // namespace

void h5::read_rows(const StoredArray& array, std::int64_t first, std::int64_t count,
                   std::span<std::byte> out, const std::string& path) {
  const auto row_bytes = static_cast<std::size_t>(array.row_bytes);
  check_request(array.stored.shape[0], first, count, row_bytes, out.size(), array.name, path);
  if (count == 0) return;
  const auto guard = Library::lock();
  if (has_checkable_chunks(array)) check_chunks(array, first, count, path);
  if (array.scale) {
    const std::int64_t piece = std::min(rows_at_once(array), rows_to_scale(array));
    std::vector<double> numbers(static_cast<std::size_t>(std::min(piece, count) * array.row_bytes));
    for (std::int64_t done = 0; done < count; done += piece) {
      const auto pixels = static_cast<std::size_t>(std::min(piece, count - done) * array.row_bytes);
      const auto part = std::span(numbers).first(pixels);
      read_block(array, DType::float64, first + done, std::min(piece, count - done),
                 std::as_writable_bytes(part), path);
      scale_rows(part, array, first + done,
                 out.subspan(static_cast<std::size_t>(done) * row_bytes, pixels), path);
    }
    return;
  }
  const std::int64_t piece = rows_at_once(array);
  for (std::int64_t done = 0; done < count; done += piece) {
    const std::int64_t rows = std::min(piece, count - done);
    read_block(array, array.stored.dtype, first + done, rows,
               out.subspan(static_cast<std::size_t>(done) * row_bytes,
                           static_cast<std::size_t>(rows) * row_bytes),
               path);
  }
}

std::int64_t h5::scaling_bytes(const StoredArray& array) noexcept {
  if (!array.scale) return 0;
  return rows_to_scale(array) * array.row_bytes * static_cast<std::int64_t>(sizeof(double));
}

void Dataset::Impl::check_unchanged() const {
  for (const auto& shard : shards) shard->check_unchanged();
  if (!shards.empty()) return;
  const struct stat status = status_of(descriptor, info.path);
  if (status.st_size == file_bytes && modified_at(status) == modified_nanoseconds) return;
  const std::string change = status.st_size != file_bytes
                                 ? "it has " + std::to_string(status.st_size) + " bytes, it had " +
                                       std::to_string(file_bytes)
                                 : "it was written to at " + time_text(modified_at(status)) +
                                       ", it was last changed at " +
                                       time_text(modified_nanoseconds);
  throw Error(ErrorCode::corrupt_data,
              info.path + " was changed while being read: " + change +
                  " when it was opened; open it again when its writer is done");
}

Dataset::Dataset(std::shared_ptr<const Impl> impl) noexcept : impl_(std::move(impl)) {}

Dataset Dataset::open(const std::string& path, const OpenOptions& options) {
  // A file of that very name is what is meant.
  if (path.find('*') == std::string::npos || ::access(path.c_str(), F_OK) == 0) {
    return Dataset(h5::open_dataset_file(path, options));
  }
  const std::optional<base::ShardPattern> pattern = base::ShardPattern::parse(path);
  if (!pattern) {
    throw Error(ErrorCode::not_found,
                "no file " + path +
                    ", and as a pattern it does not say how many files there are; write it as in "
                    "'train-*-of-00008.h5'");
  }
  return Dataset(h5::open_shards(*pattern, options));
}

std::shared_ptr<const Dataset::Impl> h5::open_dataset_file(const std::string& path,
                                                           const OpenOptions& options,
                                                           LinkFiles link_files) try {
  auto impl = std::make_shared<Dataset::Impl>();
  DatasetInfo& info = impl->info;
  info.path = path;
  if (std::error_code error; std::filesystem::is_directory(path, error)) {
    throw Error(ErrorCode::unsupported, path + " is a folder; " + files_in(path));
  }
  impl->descriptor = base::FileDescriptor::open_for_reading(path);
  const struct stat status = status_of(impl->descriptor, path);
  impl->file_bytes = status.st_size;
  impl->modified_nanoseconds = modified_at(status);
  check_signature(impl->descriptor, impl->file_bytes, path);

  const auto guard = Library::lock();
  impl->file = open_file(path);
  check_same_file(*impl);
  impl->external = policy(options);
  if (link_files == LinkFiles::refused) refuse_link(impl->file, path);
  const FileContents contents = list_datasets(impl->file, path, impl->external);
  refuse_damaged(contents, options);
  info.damaged_objects = contents.damaged;
  info.images_path = find_images(impl->file, options, contents, path);
  const DatasetSummary images = summarize(open_dataset(impl->file, info.images_path, path),
                                          info.images_path, path, impl->external);
  check_pictures(images, options.scale, has_format(*impl), path);
  impl->images = open_array(*impl, info.images_path, *images.shape, DType::uint8,
                            std::numeric_limits<std::int64_t>::max(), options.scale);
  info.stored = impl->images->stored;
  info.num_chunks = impl->images->num_chunks;
  info.stored_bytes = impl->images->stored_bytes;
  info.num_samples = info.stored.shape[0];
  set_layout(*impl, options.layout);
  read_description(impl->file.get(), impl->images->dataset.get(), info);
  find_digests(*impl);
  find_labels(*impl, options, contents);
  find_fields(*impl, contents);
  check_labels(*impl, link_files);
  return impl;
} catch (const Error& error) {
  if (error.code() != ErrorCode::hdf5_failed) throw;
  // What libhdf5 cannot make sense of in a file that it opened is damage.
  throw Error(ErrorCode::corrupt_data,
              std::string(error.what()) + "; the file is damaged, copy or download it again");
}

const DatasetInfo& Dataset::info() const noexcept { return impl_->info; }

void Dataset::read_images(std::int64_t first, std::int64_t count, std::span<std::byte> out) const {
  if (!impl_->shards.empty()) {
    const auto row_bytes = static_cast<std::size_t>(info().sample_bytes());
    check_request(size(), first, count, row_bytes, out.size(), info().images_path, info().path);
    for_each_shard(info(), first, count, out, row_bytes,
                   [&](std::size_t i, std::int64_t from, std::int64_t rows, auto part) {
                     Dataset(impl_->shards[i]).read_images(from, rows, part);
                   });
    return;
  }
  h5::read_rows(*impl_->images, first, count, out, info().path);
  impl_->check_unchanged();
}

void Dataset::read_field(std::string_view name, std::int64_t first, std::int64_t count,
                         std::span<std::byte> out) const {
  const auto field = find_field(name);
  if (!field) {
    throw Error(ErrorCode::not_found, "no field " + printable(name) + " in " + info().path);
  }
  if (!impl_->shards.empty()) {
    const std::size_t bytes = row_bytes(*field);
    check_request(size(), first, count, bytes, out.size(), field->name, info().path);
    for_each_shard(info(), first, count, out, bytes,
                   [&](std::size_t i, std::int64_t from, std::int64_t rows, auto part) {
                     Dataset(impl_->shards[i]).read_field(name, from, rows, part);
                   });
    return;
  }
  const auto guard = Library::lock();
  std::shared_ptr<const StoredArray>& array = impl_->field_in_use;
  if (!array || array->name != field->name) {
    array.reset();
    array = open_field(*impl_, *field);
  }
  h5::read_rows(*array, first, count, out, info().path);
  if (first + count == size()) array.reset();
  impl_->check_unchanged();
}

std::optional<FieldInfo> Dataset::find_field(std::string_view name) const {
  const DatasetInfo& about = info();
  for (const DatasetSummary& dataset : impl_->oversized_fields) {
    if (dataset.name == name) throw oversized(dataset, about.path);
  }
  for (const DamagedObject& object : about.damaged_objects) {
    if (name == object.name || name.starts_with(object.name + "/")) {
      throw Error(ErrorCode::corrupt_data,
                  object.reason + "; the file is damaged, copy or download it again");
    }
  }
  if (about.labels && about.labels->name == name) return about.labels;
  const auto found = std::find_if(about.fields.begin(), about.fields.end(),
                                  [&](const FieldInfo& field) { return field.name == name; });
  if (found == about.fields.end()) return std::nullopt;
  return *found;
}

std::size_t Dataset::row_bytes(const FieldInfo& field) {
  return static_cast<std::size_t>(field.row_shape.num_elements()) * size_of(field.dtype);
}

}  // namespace chunkio
