#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <iterator>
#include <limits>
#include <utility>

#include <hdf5.h>
#if __has_include(<H5develop.h>)
#include <H5develop.h>  // H5Dget_chunk_index_type, in newer versions
#endif

#include <chunkio/dataset.hpp>

#include "base/checked_math.hpp"
#include "h5/dataset_impl.hpp"
#include "h5/error_stack.hpp"
#include "h5/file_contents.hpp"
#include "h5/library.hpp"
#include "h5/schema.hpp"

namespace chunkio {
namespace {

using namespace h5;  // NOLINT(google-build-using-namespace): this file is part of that layer

/// Whole chunks of compressed data are held in memory, so a small file could ask for a lot of it.
constexpr std::int64_t kMaxFilteredChunkBytes = std::int64_t{256} << 20;

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
  return Error(
      ErrorCode::refused_by_policy,
      path + ": " + what +
          ", and chunkio reads only what lies in the file itself; name the dataset that has "
          "the data, or copy it all into one file");
}

bool is_picture_dataset(const DatasetSummary& dataset) {
  return dataset.dtype == DType::uint8 && dataset.shape && dataset.shape->rank() == 4;
}

/// The path of the dataset `name`.
/// \throws Error not_found, refused_by_policy, unsupported.
std::string find_named(const FileId& file, const std::string& wanted, const FileContents& contents,
                       const std::string& path) {
  std::string name = without_leading_slash(wanted);
  std::string refusal;
  const LinkState state = follow_links(file, name, path, refusal);
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
  if (!options.images.empty()) return find_named(file, options.images, contents, path);

  std::string refusal;
  const LinkState state = follow_links(file, kImages, path, refusal);
  if (state == LinkState::refused) throw refused(path, refusal);
  if (state == LinkState::hard && is_dataset(file, kImages, path)) {
    const DatasetSummary images = summarize(open_dataset(file, kImages, path), kImages, path);
    if (is_picture_dataset(images) || !images.refusal.empty()) return kImages;
  }

  FileContents candidates;
  std::copy_if(contents.datasets.begin(), contents.datasets.end(),
               std::back_inserter(candidates.datasets), &is_picture_dataset);
  if (candidates.datasets.size() == 1 && contents.complete) return candidates.datasets.front().name;
  if (candidates.datasets.empty()) {
    throw Error(ErrorCode::unsupported,
                path + " holds no 4-D uint8 dataset of pictures" +
                    (contents.complete ? "; it holds "
                                       : " among the objects that are looked at; if it has one, "
                                         "name it with the option images (--images); it holds ") +
                    contents.describe());
  }
  throw Error(ErrorCode::unsupported,
              path + " holds several 4-D uint8 datasets" +
                  (contents.complete ? "" : " or more objects than are looked at") + ": " +
                  candidates.describe() + "; name one with the option images (--images)");
}

/// \throws Error refused_by_policy, unsupported, corrupt_data.
void check_pictures(const DatasetSummary& images, const std::string& path) {
  if (!images.refusal.empty()) throw refused(path, images.describe());
  if (!is_picture_dataset(images)) {
    throw Error(ErrorCode::unsupported, path + ": " + images.describe() +
                                            " are no pictures: a 4-D uint8 dataset is needed");
  }
  const Shape& shape = *images.shape;
  for (const std::int64_t dim : shape.dims()) {
    if (dim == 0) {
      throw Error(ErrorCode::corrupt_data,
                  path + ": " + images.describe() + " is empty; there is nothing to read");
    }
  }
  const auto sample_bytes = base::checked_product(shape.dims().subspan(1));
  if (!sample_bytes || *sample_bytes > kMaxSampleBytes || shape[0] > kMaxSamples ||
      !base::checked_multiply(shape[0], *sample_bytes)) {
    throw Error(ErrorCode::corrupt_data,
                path + ": " + images.describe() + " is larger than any dataset of pictures");
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

/// The `layout` attribute. Foreign files may use the name for anything, so there it only counts if
/// it fits.
std::optional<Layout> stored_layout(const Dataset::Impl& impl) {
  const AttributeReader attributes(impl.images.get(), printable(impl.info.images_path),
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
  const bool ours = has_format(impl);
  std::optional<Layout> layout = wanted && !ours ? wanted : stored_layout(impl);
  if (wanted && layout && *wanted != *layout) {
    throw Error(ErrorCode::invalid_argument, info.path + " says that its pictures are " +
                                                 std::string(to_string(*layout)) +
                                                 "; leave out the option layout (--layout)");
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
                      " like channels; set the option layout (--layout nhwc or nchw)");
    }
    layout = last ? Layout::nhwc : Layout::nchw;
  }
  info.layout = *layout;
  const bool channels_last = *layout == Layout::nhwc;
  info.height = shape[channels_last ? 1 : 2];
  info.width = shape[channels_last ? 2 : 3];
  info.channels = shape[channels_last ? 3 : 1];
}

std::string filter_name(H5Z_filter_t filter) {
  switch (filter) {
    case H5Z_FILTER_DEFLATE:
      return "deflate";
    case H5Z_FILTER_SHUFFLE:
      return "shuffle";
    case H5Z_FILTER_FLETCHER32:
      return "fletcher32";
    case H5Z_FILTER_SZIP:
      return "szip";
    case H5Z_FILTER_NBIT:
      return "nbit";
    case H5Z_FILTER_SCALEOFFSET:
      return "scaleoffset";
    default:
      return "filter " + std::to_string(filter);
  }
}

/// Names of the filters. \throws Error unsupported if libhdf5 lacks one; plugins are not looked
/// for.
std::vector<std::string> read_filters(hid_t creation, const DatasetInfo& info) {
  std::vector<std::string> names;
  const int count = check_status(H5Pget_nfilters(creation), "inspect the pictures of", info.path);
  for (int i = 0; i < count; ++i) {
    unsigned int flags = 0;
    std::size_t num_values = 0;
    unsigned int config = 0;
    const H5Z_filter_t filter = H5Pget_filter2(creation, static_cast<unsigned int>(i), &flags,
                                               &num_values, nullptr, 0, nullptr, &config);
    check_status(filter, "inspect the filters of", info.path);
    names.push_back(filter_name(filter));
    if (check_status(H5Zfilter_avail(filter), "look for filters of", info.path) == 0) {
      throw Error(ErrorCode::unsupported,
                  info.path + ": " + printable(info.images_path) + " is stored with " +
                      names.back() +
                      ", which this libhdf5 lacks (plugins are not loaded); rewrite the "
                      "file with h5repack -f NONE or -f GZIP=1");
    }
  }
  return names;
}

/// Where row 0 of unfiltered chunks of whole samples lies, if libhdf5 computes chunk addresses
/// instead of looking them up: it then keeps all chunks in one run. Only the file can say so;
/// addresses of some chunks that happen to fit prove nothing about the others.
std::optional<std::int64_t> implicit_chunk_base(const Dataset::Impl& impl, std::string& reason) {
  const DatasetInfo& info = impl.info;
  const std::string action = "locate the chunks of " + printable(info.images_path) + " in";
  H5D_chunk_index_t index = H5D_CHUNK_IDX_BTREE;
  check_status(H5Dget_chunk_index_type(impl.images.get(), &index), action, info.path);
  if (index != H5D_CHUNK_IDX_NONE && index != H5D_CHUNK_IDX_SINGLE) {
    reason = "chunks lie anywhere in the file";
    return std::nullopt;
  }
  const auto chunk_bytes = static_cast<hsize_t>(info.stored.chunk_shape.num_elements());
  const auto address_of = [&](std::int64_t chunk) -> haddr_t {
    const std::array<hsize_t, 4> origin = {
        static_cast<hsize_t>(chunk) * static_cast<hsize_t>(info.stored.chunk_shape[0]), 0, 0, 0};
    unsigned int mask = 0;
    haddr_t address = HADDR_UNDEF;
    hsize_t size = 0;
    check_status(
        H5Dget_chunk_info_by_coord(impl.images.get(), origin.data(), &mask, &address, &size),
        action, info.path);
    if (address != HADDR_UNDEF && size != chunk_bytes) {
      throw Error(ErrorCode::corrupt_data, info.path + ": chunk " + std::to_string(chunk) + " of " +
                                               printable(info.images_path) + " has " +
                                               std::to_string(size) + " bytes, expected " +
                                               std::to_string(chunk_bytes));
    }
    return address;
  };
  const haddr_t first = address_of(0);
  const haddr_t last = address_of(info.num_chunks - 1);
  if (first == HADDR_UNDEF || last == HADDR_UNDEF) {
    reason = "storage is not allocated";
    return std::nullopt;
  }
  const hsize_t span = static_cast<hsize_t>(info.num_chunks - 1) * chunk_bytes;
  if (last < first || last - first != span) {
    throw Error(ErrorCode::corrupt_data, info.path + ": the chunks of " +
                                             printable(info.images_path) +
                                             " do not lie where its index says");
  }
  return static_cast<std::int64_t>(first);
}

std::optional<std::int64_t> find_linear_offset(const Dataset::Impl& impl, H5D_layout_t layout,
                                               std::string& reason) {
  const DatasetInfo& info = impl.info;
  const ListId creation(check_id(H5Fget_create_plist(impl.file.get()), "inspect", info.path));
  hsize_t user_block = 0;
  check_status(H5Pget_userblock(creation.get(), &user_block), "inspect", info.path);
  if (user_block != 0) {
    // Versions of libhdf5 differ in whether reported addresses count it.
    reason = "the file has a user block";
    return std::nullopt;
  }
  if (layout == H5D_COMPACT) {
    reason = "compact storage";
    return std::nullopt;
  }
  if (layout == H5D_CONTIGUOUS) {
    const haddr_t address = H5Dget_offset(impl.images.get());
    if (address == HADDR_UNDEF) {
      reason = "storage is not allocated";
      return std::nullopt;
    }
    return static_cast<std::int64_t>(address);
  }
  if (!info.stored.filters.empty()) {
    reason = info.stored.filters.back() +
             (info.stored.filters.back().starts_with("filter") ? "" : " filter");
    return std::nullopt;
  }
  if (info.stored.chunk_shape.without_first_axis() != info.sample_shape()) {
    reason = "chunks cut samples";
    return std::nullopt;
  }
  return implicit_chunk_base(impl, reason);
}

/// Fills what the storage of the pictures says, checks it against the file, and reopens the dataset
/// with the chunk cache it needs: libhdf5 takes the cache of whoever opens a dataset first.
void inspect_storage(Dataset::Impl& impl) {
  DatasetInfo& info = impl.info;
  StoredLayout& stored = info.stored;
  const std::string action = "inspect the storage of " + printable(info.images_path) + " in";
  const ListId creation(check_id(H5Dget_create_plist(impl.images.get()), action, info.path));
  const H5D_layout_t layout = H5Pget_layout(creation.get());
  stored.chunked = layout == H5D_CHUNKED;
  std::int64_t chunk_bytes = 0;
  std::int64_t group_chunks = 1;
  if (stored.chunked) {
    std::array<hsize_t, 4> dims{};
    if (check_status(H5Pget_chunk(creation.get(), 4, dims.data()), action, info.path) != 4) {
      throw Error(ErrorCode::corrupt_data, info.path + ": chunks of " +
                                               printable(info.images_path) +
                                               " have another rank than the dataset");
    }
    std::array<std::int64_t, 4> chunk{};
    info.num_chunks = 1;
    for (std::size_t axis = 0; axis < 4; ++axis) {
      if (dims[axis] == 0 || !std::in_range<std::uint32_t>(dims[axis])) {
        throw Error(ErrorCode::corrupt_data,
                    info.path + ": impossible chunk shape of " + printable(info.images_path));
      }
      chunk[axis] = static_cast<std::int64_t>(dims[axis]);
      // Cannot overflow: at most one chunk an element.
      const std::int64_t along = base::ceil_divide(stored.shape[axis], chunk[axis]);
      info.num_chunks *= along;
      if (axis > 0) group_chunks *= along;
    }
    stored.chunk_shape = Shape(chunk);
    stored.filters = read_filters(creation.get(), info);
    const auto product = base::checked_product(stored.chunk_shape.dims());
    if (!product || (!stored.filters.empty() && *product > kMaxFilteredChunkBytes)) {
      throw Error(ErrorCode::unsupported,
                  info.path + ": chunks " + stored.chunk_shape.to_string() + " of " +
                      printable(info.images_path) +
                      " are too large to decode; rewrite the file with smaller ones (h5repack)");
    }
    chunk_bytes = *product;
  }
  info.stored_bytes = static_cast<std::int64_t>(
      std::min<hsize_t>(H5Dget_storage_size(impl.images.get()),
                        static_cast<hsize_t>(std::numeric_limits<std::int64_t>::max())));

  impl.linear_offset = find_linear_offset(impl, layout, impl.nonlinear_reason);
  if (impl.linear_offset) {
    const auto bytes = stored.chunked
                           ? base::checked_multiply(info.num_chunks, chunk_bytes)
                           : base::checked_multiply(info.num_samples, info.sample_bytes());
    const auto end = bytes ? base::checked_add(*impl.linear_offset, *bytes) : std::nullopt;
    const std::int64_t size = impl.file_bytes;
    if (!end || *impl.linear_offset < 0 || *end > size) {
      throw Error(ErrorCode::corrupt_data, info.path + " is truncated: the pictures end at byte " +
                                               (end ? std::to_string(*end) : "2^63") +
                                               ", the file at " + std::to_string(size) +
                                               "; copy or download it again");
    }
  }

  std::size_t cache_slots = 1;
  if (stored.chunked &&
      (!stored.filters.empty() || stored.chunk_shape.without_first_axis() != info.sample_shape())) {
    const auto group_bytes = base::checked_multiply(group_chunks, chunk_bytes);
    const auto cache_bytes =
        group_bytes ? base::checked_multiply(*group_bytes, std::int64_t{2}) : std::nullopt;
    if (!cache_bytes) {
      throw Error(ErrorCode::unsupported, info.path + ": the chunks of one sample are too large");
    }
    const ChunkCacheSettings cache = recommend_cache(info.num_chunks, chunk_bytes, *cache_bytes);
    cache_slots = cache.rdcc_nslots;
    impl.chunk_cache_bytes = *cache_bytes + static_cast<std::int64_t>(cache_slots * sizeof(void*));
  }
  if (!stored.chunked) return;
  const ListId access(check_id(H5Pcreate(H5P_DATASET_ACCESS), action, info.path));
  const auto nbytes = static_cast<std::size_t>(impl.chunk_cache_bytes);
  check_status(H5Pset_chunk_cache(access.get(), cache_slots, nbytes, 1.0), action, info.path);
  impl.images.reset();
  impl.images = open_dataset(impl.file, info.images_path, info.path, access.get());
}

/// The dataset as a field, if it runs parallel to the pictures.
std::optional<FieldInfo> as_field(const DatasetSummary& dataset, std::int64_t num_samples) {
  if (!dataset.dtype || !dataset.shape || !dataset.refusal.empty()) return std::nullopt;
  const Shape& shape = *dataset.shape;
  if (shape.rank() == 0 || shape[0] != num_samples) return std::nullopt;
  const auto elements = base::checked_product(shape.dims().subspan(1));
  if (!elements || *elements < 1 || *elements > kMaxSampleBytes) return std::nullopt;
  return FieldInfo{dataset.name, *dataset.dtype, shape.without_first_axis()};
}

bool is_integer(DType dtype) { return dtype != DType::float32 && dtype != DType::float64; }

/// The field as labels: integers [N] are delivered as int64, uint8 [N,A] as it is.
std::optional<FieldInfo> as_labels(std::optional<FieldInfo> field) {
  if (!field) return std::nullopt;
  if (field->row_shape.rank() == 0 && is_integer(field->dtype)) {
    field->dtype = DType::int64;
    return field;
  }
  if (field->row_shape.rank() == 1 && field->dtype == DType::uint8) return field;
  return std::nullopt;
}

void find_labels(Dataset::Impl& impl, const OpenOptions& options, const FileContents& contents) {
  DatasetInfo& info = impl.info;
  const auto summary_of = [&](const std::string& name) {
    return summarize(open_dataset(impl.file, name, info.path), name, info.path);
  };
  if (!options.labels.empty()) {
    const DatasetSummary labels =
        summary_of(find_named(impl.file, options.labels, contents, info.path));
    if (!labels.refusal.empty()) throw refused(info.path, labels.describe());
    info.labels = as_labels(as_field(labels, info.num_samples));
    if (!info.labels) {
      throw Error(ErrorCode::unsupported, info.path + ": " + labels.describe() +
                                              " cannot be labels: integers [" +
                                              std::to_string(info.num_samples) + "] or uint8 [" +
                                              std::to_string(info.num_samples) + ",A] are needed");
    }
    return;
  }
  for (const char* name : {kLabels, "label"}) {
    std::string refusal;
    const LinkState state = follow_links(impl.file, name, info.path, refusal);
    // Pictures without their labels would be a surprise, so what looks like labels is not passed
    // over.
    if (state == LinkState::refused) throw refused(info.path, refusal);
    if (state == LinkState::absent || !is_dataset(impl.file, name, info.path)) continue;
    const DatasetSummary labels = summary_of(name);
    if (!labels.refusal.empty()) throw refused(info.path, labels.describe());
    info.labels = as_labels(as_field(labels, info.num_samples));
    if (info.labels) return;
    if (info.format_version) {
      throw Error(ErrorCode::corrupt_data, info.path + ": " + labels.describe() + " does not fit " +
                                               std::to_string(info.num_samples) +
                                               " pictures; write the file again");
    }
  }
}

void find_fields(DatasetInfo& info, const FileContents& contents) {
  for (const DatasetSummary& dataset : contents.datasets) {
    if (dataset.name == info.images_path || (info.labels && dataset.name == info.labels->name)) {
      continue;
    }
    if (auto field = as_field(dataset, info.num_samples)) info.fields.push_back(*std::move(field));
  }
}

/// Missing labels read as the fill value, and a small file can lack any number of them.
void check_stored(const DatasetId& labels, const DatasetInfo& info) {
  const std::string action = "inspect the labels of";
  const ListId creation(check_id(H5Dget_create_plist(labels.get()), action, info.path));
  if (check_status(H5Pget_nfilters(creation.get()), action, info.path) > 0) return;
  const TypeId type(check_id(H5Dget_type(labels.get()), action, info.path));
  if (H5Dget_storage_size(labels.get()) / H5Tget_size(type.get()) >=
      static_cast<hsize_t>(info.num_samples)) {
    return;
  }
  throw Error(ErrorCode::corrupt_data,
              info.path + ": " + printable(info.labels->name) + " lacks some of its " +
                  std::to_string(info.num_samples) + " values; write the file again");
}

/// Labels index class names, so one out of range would be read beyond a table.
void check_labels(const Dataset::Impl& impl) {
  const DatasetInfo& info = impl.info;
  const auto num_classes = static_cast<std::int64_t>(info.class_names.size());
  if (!info.labels || num_classes == 0 || info.labels->dtype != DType::int64) return;
  constexpr std::int64_t kPiece = 1 << 16;
  const DatasetId labels = open_dataset(impl.file, info.labels->name, info.path);
  check_stored(labels, info);
  std::vector<std::int64_t> values(static_cast<std::size_t>(std::min(kPiece, info.num_samples)));
  for (std::int64_t first = 0; first < info.num_samples; first += kPiece) {
    const std::int64_t count = std::min(kPiece, info.num_samples - first);
    const std::span piece(values.data(), static_cast<std::size_t>(count));
    read_rows(labels, Shape{info.num_samples}, DType::int64, first, count,
              std::as_writable_bytes(piece), info.labels->name, info.path);
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

}  // namespace

void h5::read_rows(const DatasetId& dataset, const Shape& shape, DType dtype, std::int64_t first,
                   std::int64_t count, std::span<std::byte> out, const std::string& name,
                   const std::string& path) {
  check_range(shape[0], first, count, name, path);
  const std::size_t row_bytes =
      static_cast<std::size_t>(shape.without_first_axis().num_elements()) * size_of(dtype);
  const auto expected = base::checked_multiply(static_cast<std::size_t>(count), row_bytes);
  if (!expected || out.size() != *expected) {
    throw Error(ErrorCode::invalid_argument,
                std::to_string(count) + " rows of " + printable(name) + " in " + path + " take " +
                    std::to_string(row_bytes) + " bytes each, the buffer has " +
                    std::to_string(out.size()));
  }
  if (count == 0) return;
  const auto guard = Library::lock();
  // Both dataspaces have the same rank: libhdf5 maps selections of unequal rank element by element.
  std::array<hsize_t, Shape::kMaxRank> start{};
  std::array<hsize_t, Shape::kMaxRank> block{};
  for (std::size_t axis = 0; axis < shape.rank(); ++axis) {
    block[axis] = static_cast<hsize_t>(axis == 0 ? count : shape[axis]);
  }
  start[0] = static_cast<hsize_t>(first);
  const std::string action =
      "read rows from " + std::to_string(first) + " of " + printable(name) + " in";
  const SpaceId file_space(check_id(H5Dget_space(dataset.get()), action, path));
  check_status(H5Sselect_hyperslab(file_space.get(), H5S_SELECT_SET, start.data(), nullptr,
                                   block.data(), nullptr),
               action, path);
  const SpaceId memory_space(check_id(
      H5Screate_simple(static_cast<int>(shape.rank()), block.data(), nullptr), action, path));
  check_status(H5Dread(dataset.get(), memory_type(dtype), memory_space.get(), file_space.get(),
                       H5P_DEFAULT, out.data()),
               action, path);
}

void Dataset::Impl::check_unchanged() const {
  const struct stat status = status_of(descriptor, info.path);
  if (status.st_size == file_bytes && modified_at(status) == modified_nanoseconds) return;
  throw Error(ErrorCode::corrupt_data,
              info.path + " was changed while being read: it has " +
                  std::to_string(status.st_size) + " bytes, it had " + std::to_string(file_bytes) +
                  " when it was opened; open it again when its writer is done");
}

Dataset::Impl::~Impl() {
  const auto guard = Library::lock();
  images.reset();
  file.reset();
}

Dataset::Dataset(std::shared_ptr<const Impl> impl) noexcept : impl_(std::move(impl)) {}

Dataset Dataset::open(const std::string& path, const OpenOptions& options) try {
  auto impl = std::make_shared<Impl>();
  DatasetInfo& info = impl->info;
  info.path = path;
  impl->descriptor = base::FileDescriptor::open_for_reading(path);
  const struct stat status = status_of(impl->descriptor, path);
  impl->file_bytes = status.st_size;
  impl->modified_nanoseconds = modified_at(status);
  check_signature(impl->descriptor, impl->file_bytes, path);

  const auto guard = Library::lock();
  impl->file = open_file(path);
  check_same_file(*impl);
  const FileContents contents = list_datasets(impl->file, path);
  info.images_path = find_images(impl->file, options, contents, path);
  impl->images = open_dataset(impl->file, info.images_path, path);
  const DatasetSummary images = summarize(impl->images, info.images_path, path);
  check_pictures(images, path);
  info.stored.shape = *images.shape;
  info.stored.dtype = DType::uint8;
  info.num_samples = info.stored.shape[0];
  set_layout(*impl, options.layout);
  inspect_storage(*impl);
  read_description(impl->file.get(), impl->images.get(), info);
  find_labels(*impl, options, contents);
  find_fields(info, contents);
  check_labels(*impl);
  return Dataset(std::move(impl));
} catch (const Error& error) {
  if (error.code() != ErrorCode::hdf5_failed) throw;
  // What libhdf5 cannot make sense of in a file that it opened is damage.
  throw Error(ErrorCode::corrupt_data,
              std::string(error.what()) + "; the file is damaged, copy or download it again");
}

const DatasetInfo& Dataset::info() const noexcept { return impl_->info; }

void Dataset::read_images(std::int64_t first, std::int64_t count, std::span<std::byte> out) const {
  const DatasetInfo& about = info();
  h5::read_rows(impl_->images, about.stored.shape, DType::uint8, first, count, out,
                about.images_path, about.path);
  impl_->check_unchanged();
}

void Dataset::read_field(std::string_view name, std::int64_t first, std::int64_t count,
                         std::span<std::byte> out) const {
  const auto field = find_field(name);
  if (!field) {
    throw Error(ErrorCode::not_found, "no field " + printable(name) + " in " + info().path);
  }
  const auto guard = Library::lock();
  const DatasetId dataset = open_dataset(impl_->file, field->name, info().path);
  h5::read_rows(dataset, field->row_shape.with_first_axis(size()), field->dtype, first, count, out,
                field->name, info().path);
  impl_->check_unchanged();
}

std::optional<FieldInfo> Dataset::find_field(std::string_view name) const {
  const DatasetInfo& about = info();
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
