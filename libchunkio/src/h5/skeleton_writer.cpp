#include "h5/skeleton_writer.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <set>
#include <string_view>
#include <vector>

#include "base/checked_math.hpp"
#include "base/digest.hpp"
#include "h5/deferred_writes.hpp"
#include "h5/description_reader.hpp"
#include "h5/description_writer.hpp"
#include "h5/element_type.hpp"
#include "h5/error_stack.hpp"
#include "h5/file_contents.hpp"
#include "h5/handle.hpp"
#include "h5/library.hpp"
#include "h5/placed_bytes.hpp"
#include "h5/schema.hpp"

namespace chunkio::h5 {
namespace {

/// Large objects start at multiples of a page, so that they can be mapped and read without the
/// cache.
constexpr hsize_t kAlignment = 4096;
constexpr hsize_t kAlignedBytes = 64 << 10;

[[nodiscard]] Error invalid(const std::string& what) {
  return Error(ErrorCode::invalid_argument, "dataset specification: " + what);
}

void check_text(const std::string& text, std::int64_t max_bytes, const std::string& what) {
  if (std::cmp_greater(text.size(), max_bytes)) {
    throw invalid(what + " is longer than " + std::to_string(max_bytes) + " bytes");
  }
  if (text.find('\0') != std::string::npos) throw invalid(what + " contains a zero byte");
}

void check_names(const std::vector<std::string>& names, std::int64_t most,
                 const std::string& what) {
  if (std::cmp_greater(names.size(), most)) {
    throw invalid(what + " has more than " + std::to_string(most) + " entries");
  }
  std::size_t longest = 1;
  for (const std::string& name : names) {
    check_text(name, kMaxNameBytes, what + " entry " + printable(name));
    longest = std::max(longest, name.size());
  }
  if (std::cmp_greater(longest * names.size(), kMaxNamesBytes)) {
    throw invalid(what + " takes more than " + std::to_string(kMaxNamesBytes) + " bytes");
  }
}

void check_field_name(const std::string& name, std::set<std::string>& taken) {
  const std::string shown = "field name '" + printable(name) + "'";
  if (name.empty() || name.front() == '/' || name.back() == '/' ||
      name.find("//") != std::string::npos || ("/" + name + "/").find("/./") != std::string::npos ||
      ("/" + name + "/").find("/../") != std::string::npos) {
    throw invalid(shown + " is no path of a dataset");
  }
  check_text(name, kMaxNameBytes, shown);
  if (name == kImages || name == kSampleDigests) {
    throw invalid(shown + " is that of a dataset which every file has; choose another");
  }
  if (!taken.insert(name).second) throw invalid(shown + " is taken");
  for (const std::string& other : taken) {
    if (other.starts_with(name + "/") || name.starts_with(other + "/")) {
      throw invalid(shown + " and '" + printable(other) + "' exclude each other");
    }
  }
}

void check_field(const DatasetSpec& spec, const FieldData& field) {
  const FieldInfo& info = field.info;
  const std::string shown = "field " + printable(info.name);
  const std::size_t element_bytes = size_of(info.dtype);
  if (element_bytes == 0) throw invalid(shown + " has no known element type");
  if (info.dtype == DType::float16 || info.dtype == DType::bfloat16) {
    throw invalid(shown + " is " + std::string(to_string(info.dtype)) +
                  ", which files do not have; give float32");
  }
  const auto elements = base::checked_product(info.row_shape.dims());
  if (info.row_shape.rank() >= Shape::kMaxRank || !elements || *elements < 1) {
    throw invalid(shown + " has an impossible row shape " + info.row_shape.to_string());
  }
  const std::array<std::int64_t, 3> factors = {spec.num_samples, *elements,
                                               static_cast<std::int64_t>(element_bytes)};
  const auto bytes = base::checked_product<std::int64_t>(factors);
  std::size_t there = 0;
  field.for_each_block([&](std::span<const std::byte> rows) {
    there += rows.size();
    if (bytes && rows.size() % Dataset::row_bytes(info) != 0) {
      throw invalid(shown + ": a block of " + std::to_string(rows.size()) +
                    " bytes is no whole number of rows of " +
                    std::to_string(Dataset::row_bytes(info)) + " bytes");
    }
  });
  if (!bytes || !std::cmp_equal(*bytes, there)) {
    throw invalid(shown + " " + info.row_shape.to_string() + " " +
                  std::string(to_string(info.dtype)) + " has " + std::to_string(there) +
                  " bytes for " + std::to_string(spec.num_samples) + " samples");
  }
}

void check_labels(const DatasetSpec& spec, const FieldData& labels) {
  const bool classes = labels.info.dtype == DType::int64 && labels.info.row_shape.rank() == 0;
  const bool table = labels.info.dtype == DType::uint8 && labels.info.row_shape.rank() == 1;
  if (!classes && !table) throw invalid("labels must be int64 [N] or uint8 [N,A]");
  if (table && !spec.attribute_names.empty() &&
      !std::cmp_equal(spec.attribute_names.size(), labels.info.row_shape[0])) {
    throw invalid(std::to_string(spec.attribute_names.size()) + " attribute names for " +
                  std::to_string(labels.info.row_shape[0]) + " attributes");
  }
  if (!classes || spec.class_names.empty()) return;
  std::int64_t sample = 0;
  labels.for_each_block([&](std::span<const std::byte> rows) {
    for (std::size_t at = 0; at < rows.size(); at += sizeof(std::int64_t), ++sample) {
      std::int64_t label = 0;
      std::memcpy(&label, rows.data() + at, sizeof(label));
      if (label < 0 || std::cmp_greater_equal(label, spec.class_names.size())) {
        throw invalid("label " + std::to_string(label) + " of sample " + std::to_string(sample) +
                      " is none of the " + std::to_string(spec.class_names.size()) + " classes");
      }
    }
  });
}

Shape image_shape(const DatasetSpec& spec) {
  return spec.layout == Layout::nhwc
             ? Shape{spec.num_samples, spec.height, spec.width, spec.channels}
             : Shape{spec.num_samples, spec.channels, spec.height, spec.width};
}

std::vector<hsize_t> extent(const Shape& shape) {
  std::vector<hsize_t> dims;
  for (const std::int64_t dim : shape.dims()) dims.push_back(static_cast<hsize_t>(dim));
  return dims;
}

/// No fill values, which would only be overwritten.
/// \param allocation  early: space for all data at once.
ListId dataset_creation(const std::string& path,
                        H5D_alloc_time_t allocation = H5D_ALLOC_TIME_EARLY) {
  ListId creation(check_id(H5Pcreate(H5P_DATASET_CREATE), "prepare to write", path));
  check_status(H5Pset_alloc_time(creation.get(), allocation), "prepare to write", path);
  check_status(H5Pset_fill_time(creation.get(), H5D_FILL_TIME_NEVER), "prepare to write", path);
  // The same input gives the same bytes.
  check_status(H5Pset_obj_track_times(creation.get(), false), "prepare to write", path);
  return creation;
}

SpaceId simple_space(std::span<const hsize_t> dims, const std::string& action,
                     const std::string& path) {
  return SpaceId(check_id(H5Screate_simple(static_cast<int>(dims.size()), dims.data(), nullptr),
                          action, path));
}

/// A dataset [N,...] in one run, whose place is found at once.
DatasetId create_contiguous(const FileId& file, const FieldInfo& field, std::int64_t num_samples,
                            const std::string& path) {
  return create_in_one_run(file.get(), field.name, memory_type(field.dtype),
                           field.row_shape.with_first_axis(num_samples), path);
}

/// Consecutive rows of a dataset, selected in both dataspaces of a transfer.
struct RowSpaces {
  SpaceId memory;
  SpaceId file;
};

RowSpaces select_rows(const DatasetId& dataset, const FieldInfo& field, hsize_t first,
                      hsize_t count, const std::string& action, const std::string& path) {
  const auto block = extent(field.row_shape.with_first_axis(static_cast<std::int64_t>(count)));
  std::vector<hsize_t> start(block.size(), 0);
  start[0] = first;
  RowSpaces spaces{.memory = simple_space(block, action, path),
                   .file = SpaceId(check_id(H5Dget_space(dataset.get()), action, path))};
  check_status(H5Sselect_hyperslab(spaces.file.get(), H5S_SELECT_SET, start.data(), nullptr,
                                   block.data(), nullptr),
               action, path);
  return spaces;
}

void write_field(const FileId& file, const DatasetSpec& spec, const FieldData& field,
                 const std::string& path) {
  const std::string action = "write dataset " + printable(field.info.name) + " of";
  DatasetId dataset = create_contiguous(file, field.info, spec.num_samples, path);
  const std::size_t row_bytes = Dataset::row_bytes(field.info);
  hsize_t first = 0;
  field.for_each_block([&](std::span<const std::byte> rows) {
    if (rows.empty()) return;
    const hsize_t count = rows.size() / row_bytes;
    const RowSpaces spaces = select_rows(dataset, field.info, first, count, action, path);
    check_status(H5Dwrite(dataset.get(), memory_type(field.info.dtype), spaces.memory.get(),
                          spaces.file.get(), H5P_DEFAULT, rows.data()),
                 action, path);
    first += count;
  });
  check_status(dataset.reset(), action, path);
}

/// The fields in the order in which their rows are chained on: by name, so that a file that is
/// written again has the same digests.
std::vector<FieldInfo> covered_fields(std::span<const FieldData> fields) {
  std::vector<FieldInfo> covered;
  for (const FieldData& field : fields) covered.push_back(field.info);
  std::sort(covered.begin(), covered.end(),
            [](const FieldInfo& a, const FieldInfo& b) { return a.name < b.name; });
  return covered;
}

/// Their place; the digests are known at the end.
void create_sample_digests(const FileId& file, const DatasetSpec& spec, const std::string& path) {
  DatasetId dataset =
      create_contiguous(file, {kSampleDigests, DType::uint64, Shape{}}, spec.num_samples, path);
  std::vector<std::string> names = {kImages};
  for (const FieldInfo& field : covered_fields(spec.fields)) names.push_back(field.name);
  write_covered_names(dataset.get(), names, path);
  check_status(dataset.reset(), "finish the digests of", path);
}

/// Chains the rows of a field, as they are in the file, onto the digests of those before.
void chain_field(const FileId& file, const FieldInfo& field, std::span<std::uint64_t> digests,
                 const std::string& path) {
  constexpr std::size_t kBlockBytes = std::size_t{4} << 20;
  const std::string action = "read dataset " + printable(field.name) + " of";
  const DatasetId dataset = open_dataset(file, field.name, path);
  const std::size_t row_bytes = Dataset::row_bytes(field);
  const std::size_t rows_at_once = std::max<std::size_t>(1, kBlockBytes / row_bytes);
  std::vector<std::byte> block;
  for (std::size_t first = 0; first < digests.size(); first += rows_at_once) {
    const std::size_t count = std::min(rows_at_once, digests.size() - first);
    block.resize(count * row_bytes);
    const RowSpaces spaces = select_rows(dataset, field, first, count, action, path);
    check_status(H5Dread(dataset.get(), memory_type(field.dtype), spaces.memory.get(),
                         spaces.file.get(), H5P_DEFAULT, block.data()),
                 action, path);
    base::chain_digests(digests.subspan(first, count), block);
  }
}

void write_sample_digests(const FileId& file, std::span<const std::uint64_t> digests,
                          const std::string& path) {
  DatasetId dataset = open_dataset(file, kSampleDigests, path);
  check_status(H5Dwrite(dataset.get(), memory_type(DType::uint64), H5S_ALL, H5S_ALL, H5P_DEFAULT,
                        digests.data()),
               "write the digests of", path);
  check_status(dataset.reset(), "finish the digests of", path);
}

DatasetId create_images(const FileId& file, const DatasetSpec& spec, const SkeletonOptions& options,
                        const std::string& path) {
  const std::string action = "create the images of";
  const Shape shape = image_shape(spec);
  const auto dims = extent(shape);
  const auto chunk = extent(shape.without_first_axis().with_first_axis(options.chunk_samples));
  const bool filtered = options.filter.deflate_level > 0;
  // What filtered chunks take is known when they are there.
  const ListId creation =
      dataset_creation(path, filtered ? H5D_ALLOC_TIME_INCR : H5D_ALLOC_TIME_EARLY);
  check_status(H5Pset_chunk(creation.get(), 4, chunk.data()), action, path);
  if (filtered && options.filter.shuffle) {
    check_status(H5Pset_shuffle(creation.get()), action, path);
  }
  if (filtered) {
    check_status(
        H5Pset_deflate(creation.get(), static_cast<unsigned>(options.filter.deflate_level)), action,
        path);
  }
  const SpaceId space(check_id(H5Screate_simple(4, dims.data(), nullptr), action, path));
  DatasetId images(check_id(H5Dcreate2(file.get(), kImages, H5T_NATIVE_UINT8, space.get(),
                                       H5P_DEFAULT, creation.get(), H5P_DEFAULT),
                            action, path));
  write_image_description(images.get(), spec, path);
  return images;
}

/// Digests and statistics.
void write_final_values(const FileId& file, const DatasetId& images,
                        std::span<const FieldData> fields, const Completion& completion,
                        const std::string& path) {
  for (const FieldInfo& field : covered_fields(fields)) {
    chain_field(file, field, completion.row_digests, path);
  }
  write_sample_digests(file, completion.row_digests, path);
  if (completion.statistics) write_statistics(images.get(), *completion.statistics, path);
}

/// Creates the file with everything but the images.
FileId create_file(DeferredWrites& writes, const std::string& path, const DatasetSpec& spec,
                   const SkeletonOptions& options) {
  const ListId access = file_access(writes, path);
  FileId file(
      check_id(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access.get()), "create", path));
  write_root_description(file.get(), spec, {options.creator, options.uuid, options.cache}, path);
  for (const FieldData& field : spec.fields) write_field(file, spec, field, path);
  create_sample_digests(file, spec, path);
  return file;
}

}  // namespace

ListId file_access(DeferredWrites& writes, const std::string& path) {
  ListId access(check_id(H5Pcreate(H5P_FILE_ACCESS), "prepare to write", path));
  writes.install(access, path);
  check_status(H5Pset_libver_bounds(access.get(), H5F_LIBVER_V110, H5F_LIBVER_V110),
               "set the format of", path);
  // Closing with objects open would silently leave the file open, and unwritten.
  check_status(H5Pset_fclose_degree(access.get(), H5F_CLOSE_SEMI), "prepare to write", path);
  check_status(H5Pset_alignment(access.get(), kAlignedBytes, kAlignment), "set the alignment of",
               path);
  return access;
}

void validate(const DatasetSpec& spec, std::int64_t planned_samples) {
  const std::array<std::int64_t, 4> dims = {spec.num_samples, spec.height, spec.width,
                                            spec.channels};
  if (std::any_of(dims.begin(), dims.end(), [](std::int64_t dim) { return dim < 1; })) {
    throw invalid("num_samples, height, width and channels must be at least 1, got " +
                  std::to_string(dims[0]) + ", " + std::to_string(dims[1]) + ", " +
                  std::to_string(dims[2]) + ", " + std::to_string(dims[3]));
  }
  const auto sample_bytes = base::checked_product(std::span<const std::int64_t>(dims).subspan(1));
  if (!sample_bytes || *sample_bytes > kMaxSampleBytes || spec.num_samples > kMaxSamples ||
      !base::checked_multiply(*sample_bytes, spec.num_samples)) {
    throw invalid("images of " + std::to_string(spec.height) + " x " + std::to_string(spec.width) +
                  " x " + std::to_string(spec.channels) + " are too large or too many");
  }
  check_text(spec.channel_order, kMaxNameBytes, "channel_order");
  // "RGB" is the default, so one channel may have it.
  const bool fits = spec.channel_order == "RGB"    ? spec.channels == 3 || spec.channels == 1
                    : spec.channel_order == "gray" ? spec.channels == 1
                                                   : true;
  if (!fits) {
    throw invalid("channel_order " + spec.channel_order + " does not fit " +
                  std::to_string(spec.channels) +
                  " channels; set it to what they are, such as RGBA, or leave it empty");
  }
  check_text(spec.split, kMaxNameBytes, "split");
  check_text(spec.options_json, kMaxTextBytes, "options_json");
  if (spec.shard) {
    check_text(spec.shard->set, kMaxNameBytes, "shard set");
    if (!is_possible(*spec.shard, spec.num_samples)) {
      throw invalid("shard " + std::to_string(spec.shard->index) + " of " +
                    std::to_string(spec.shard->count) + " cannot hold rows " +
                    std::to_string(spec.shard->first_row) + " to " +
                    std::to_string(spec.shard->first_row + spec.num_samples - 1) + " of " +
                    std::to_string(spec.shard->total_rows));
    }
  }
  if (spec.order != "shuffled" && spec.order != "source") {
    throw invalid("order must be shuffled or source, got '" + printable(spec.order) + "'");
  }
  check_names(spec.class_names, max_classes(std::max(spec.num_samples, planned_samples)),
              "class_names");
  check_names(spec.attribute_names, kMaxEntries, "attribute_names");
  std::set<std::string> taken = {kImages, kSampleDigests};
  for (const FieldData& field : spec.fields) {
    check_field_name(field.info.name, taken);
    check_field(spec, field);
    if (field.info.name == kLabels) check_labels(spec, field);
    if (field.info.name == kSourceIndex &&
        (field.info.dtype != DType::int64 || field.info.row_shape.rank() != 0)) {
      throw invalid("source_index must be int64 [N]");
    }
  }
}

std::int64_t skeleton_bytes(const DatasetSpec& spec) {
  // Digests, text (names padded to the longest), field values and their alignment, and structure.
  std::size_t bytes = static_cast<std::size_t>(spec.num_samples) * sizeof(std::uint64_t) +
                      2 * kAlignment + spec.options_json.size() + (std::size_t{1} << 20);
  for (const auto* names : {&spec.class_names, &spec.attribute_names}) {
    std::size_t longest = 1;
    for (const std::string& name : *names) longest = std::max(longest, name.size());
    bytes += 2 * longest * names->size() + names->size() * sizeof(std::int64_t);  // And counts.
  }
  for (const FieldData& field : spec.fields) {
    bytes += static_cast<std::size_t>(spec.num_samples) * Dataset::row_bytes(field.info) +
             2 * kAlignment;
  }
  return static_cast<std::int64_t>(bytes);
}

void write_skeleton(int fd, const std::string& path, const DatasetSpec& spec,
                    const SkeletonOptions& options) {
  const auto guard = Library::lock();
  DeferredWrites writes(fd, path);
  FileId file = create_file(writes, path, spec, options);
  DatasetId images = create_images(file, spec, options, path);
  check_status(images.reset(), "close", path);
  check_status(file.reset(), "close", path);
  writes.apply();
}

namespace {

/// Writes all that runs parallel to the images anew, since contiguous datasets cannot be cut.
void replace_fields(const FileId& file, const DatasetSpec& spec, const std::string& path) {
  const auto remove = [&](const std::string& name) {
    check_status(H5Ldelete(file.get(), name.c_str(), H5P_DEFAULT),
                 "replace dataset " + printable(name) + " of", path);
  };
  for (const FieldData& field : spec.fields) {
    remove(field.info.name);
    write_field(file, spec, field, path);
  }
  remove(kSampleDigests);
  create_sample_digests(file, spec, path);
}

}  // namespace

void complete_file(int fd, const std::string& path, std::span<const FieldData> fields,
                   const Completion& completion) {
  const auto guard = Library::lock();
  DeferredWrites writes(fd, path, completion.kept);
  const ListId access = file_access(writes, path);
  FileId file(check_id(H5Fopen(path.c_str(), H5F_ACC_RDWR, access.get()), "reopen", path));
  DatasetId images = open_dataset(file, kImages, path);
  if (completion.shortened != nullptr) {
    const auto dims = extent(image_shape(*completion.shortened));
    check_status(H5Dset_extent(images.get(), dims.data()), "shorten the images of", path);
    replace_fields(file, *completion.shortened, path);
  }
  write_final_values(file, images, fields, completion, path);
  check_status(images.reset(), "finish", path);
  check_status(file.reset(), "finish", path);
  writes.apply();
}

FilteredFile::FilteredFile(int fd, const std::string& path, const DatasetSpec& spec,
                           const SkeletonOptions& options)
    : path_(path),
      chunk_samples_(static_cast<std::uint64_t>(options.chunk_samples)),
      writes_(fd, path) {
  for (const FieldData& field : spec.fields) fields_.push_back({field.info, {}, {}});
  const auto guard = Library::lock();
  file_ = create_file(writes_, path_, spec, options);
  images_ = create_images(file_, spec, options, path_);
  writes_.check();
}

void FilteredFile::write_chunk(std::int64_t chunk, std::uint32_t mask,
                               std::span<const std::byte> stored) {
  const auto guard = Library::lock();
  const std::array<hsize_t, 4> origin = {static_cast<hsize_t>(chunk) * chunk_samples_, 0, 0, 0};
  check_status(
      H5Dwrite_chunk(images_.get(), H5P_DEFAULT, mask, origin.data(), stored.size(), stored.data()),
      "write chunk " + std::to_string(chunk) + " of", path_);
  writes_.check();
}

void FilteredFile::finish(const Completion& completion) {
  const auto guard = Library::lock();
  if (completion.shortened != nullptr) replace_fields(file_, *completion.shortened, path_);
  write_final_values(file_, images_, fields_, completion, path_);
  check_status(images_.reset(), "finish", path_);
  check_status(file_.reset(), "finish", path_);
  writes_.apply();
}

}  // namespace chunkio::h5
