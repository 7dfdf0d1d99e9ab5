#include "h5/schema.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include <chunkio/shards.hpp>

#include "base/checked_math.hpp"
#include "h5/error_stack.hpp"
#include "h5/handle.hpp"
#include "h5/source_sizes.hpp"

namespace chunkio::h5 {
namespace {

struct OpenAttribute {
  AttrId id;
  TypeId type;
  SpaceId space;
  std::int64_t count = 0;
};

/// Text up to the padding.
std::string unpadded(const char* data, std::size_t size, H5T_str_t padding) {
  std::string_view text(data, size);
  if (padding == H5T_STR_NULLTERM) {
    text = text.substr(0, text.find('\0'));
  } else {
    const char pad = padding == H5T_STR_SPACEPAD ? ' ' : '\0';
    const std::size_t last = text.find_last_not_of(pad);
    text = last == std::string_view::npos ? std::string_view{} : text.substr(0, last + 1);
  }
  return std::string(text);
}

/// Absent if `object` has no attribute of that name.
std::optional<OpenAttribute> open_attribute(hid_t object, const char* name,
                                            const std::string& path) {
  if (check_status(H5Aexists(object, name), "look for attributes in", path) == 0) {
    return std::nullopt;
  }
  OpenAttribute attribute;
  attribute.id = AttrId(check_id(H5Aopen(object, name, H5P_DEFAULT), "open an attribute of", path));
  attribute.type =
      TypeId(check_id(H5Aget_type(attribute.id.get()), "inspect an attribute of", path));
  attribute.space =
      SpaceId(check_id(H5Aget_space(attribute.id.get()), "inspect an attribute of", path));
  // Counted by ourselves: H5Sget_simple_extent_npoints lets the product of large dimensions wrap.
  const int rank = H5Sget_simple_extent_ndims(attribute.space.get());
  attribute.count = H5Sget_simple_extent_type(attribute.space.get()) == H5S_NULL ? 0 : 1;
  if (rank > 0) {
    std::vector<hsize_t> dims(static_cast<std::size_t>(rank));
    check_status(H5Sget_simple_extent_dims(attribute.space.get(), dims.data(), nullptr),
                 "inspect an attribute of", path);
    const auto product = base::checked_product<hsize_t>(dims);
    attribute.count = product && std::in_range<std::int64_t>(*product)
                          ? static_cast<std::int64_t>(*product)
                          : std::numeric_limits<std::int64_t>::max();
  }
  // Nothing in a file is larger than the file: no memory for what only claims to be there.
  if (attribute.count > kMaxEntries) {
    hsize_t file_bytes = 0;
    const FileId file(check_id(H5Iget_file_id(object), "inspect", path));
    check_status(H5Fget_filesize(file.get(), &file_bytes), "inspect", path);
    if (std::cmp_greater(attribute.count, file_bytes / H5Tget_size(attribute.type.get()))) {
      attribute.count = std::numeric_limits<std::int64_t>::max();
    }
  }
  return attribute;
}

/// libhdf5 hands out variable-length strings that it wants back.
class VariableStrings {
 public:
  VariableStrings(const OpenAttribute& attribute, std::size_t count)
      : attribute_(attribute), strings_(count, nullptr) {}
  VariableStrings(const VariableStrings&) = delete;
  VariableStrings& operator=(const VariableStrings&) = delete;
  ~VariableStrings() {
    reclaim_variable_length(attribute_.type.get(), attribute_.space.get(), strings_.data());
  }
  [[nodiscard]] std::vector<char*>& get() noexcept { return strings_; }

 private:
  const OpenAttribute& attribute_;
  std::vector<char*> strings_;
};

template <class T>
hid_t number_type() {
  return memory_type(dtype_of<T>());
}

TypeId string_type(std::size_t size, const std::string& path) {
  TypeId type(check_id(H5Tcopy(H5T_C_S1), "create a string type for", path));
  // libhdf5 has no strings of length 0.
  check_status(H5Tset_size(type.get(), std::max<std::size_t>(size, 1)), "size a string type for",
               path);
  check_status(H5Tset_strpad(type.get(), H5T_STR_NULLPAD), "pad a string type for", path);
  check_status(H5Tset_cset(type.get(), H5T_CSET_UTF8), "set the encoding of a string for", path);
  return type;
}

void write_attribute(hid_t object, const char* name, hid_t type, hid_t space, const void* data,
                     const std::string& path) {
  const std::string action = std::string("write attribute ") + name + " to";
  AttrId attribute(
      check_id(H5Acreate2(object, name, type, space, H5P_DEFAULT, H5P_DEFAULT), action, path));
  check_status(H5Awrite(attribute.get(), type, data), action, path);
  check_status(attribute.reset(), action, path);
}

SpaceId vector_space(std::size_t size, const std::string& path) {
  const hsize_t dim = size;
  return SpaceId(check_id(H5Screate_simple(1, &dim, nullptr), "create a dataspace for", path));
}

bool all_finite(std::span<const double> values) {
  return std::all_of(values.begin(), values.end(), [](double v) { return std::isfinite(v); });
}

}  // namespace

std::optional<DType> element_type(hid_t type) {
  const std::size_t size = H5Tget_size(type);
  switch (H5Tget_class(type)) {
    case H5T_INTEGER: {
      // Padded integers (fewer bits than bytes) are left alone: nothing writes images so.
      if (H5Tget_precision(type) != size * 8) return std::nullopt;
      const bool is_signed = H5Tget_sign(type) == H5T_SGN_2;
      switch (size) {
        case 1:
          return is_signed ? DType::int8 : DType::uint8;
        case 2:
          return is_signed ? DType::int16 : DType::uint16;
        case 4:
          return is_signed ? DType::int32 : DType::uint32;
        case 8:
          return is_signed ? DType::int64 : DType::uint64;
        default:
          return std::nullopt;
      }
    }
    case H5T_FLOAT:
      if (size == 4) return DType::float32;
      if (size == 8) return DType::float64;
      return std::nullopt;
    case H5T_ENUM: {
      const TypeId values(H5Tget_super(type));
      return values ? element_type(values.get()) : std::nullopt;
    }
    default:
      return std::nullopt;
  }
}

hid_t memory_type(DType dtype) {
  switch (dtype) {
    case DType::uint8:
      return H5T_NATIVE_UINT8;
    case DType::int8:
      return H5T_NATIVE_INT8;
    case DType::uint16:
      return H5T_NATIVE_UINT16;
    case DType::int16:
      return H5T_NATIVE_INT16;
    case DType::uint32:
      return H5T_NATIVE_UINT32;
    case DType::int32:
      return H5T_NATIVE_INT32;
    case DType::uint64:
      return H5T_NATIVE_UINT64;
    case DType::int64:
      return H5T_NATIVE_INT64;
    case DType::float32:
      return H5T_NATIVE_FLOAT;
    case DType::float64:
      return H5T_NATIVE_DOUBLE;
    case DType::float16:
    case DType::bfloat16:
      break;  // No file has them.
  }
  return H5I_INVALID_HID;
}

std::string describe_type(hid_t type) {
  const auto dtype = element_type(type);
  if (dtype && H5Tget_class(type) != H5T_ENUM) return std::string(to_string(*dtype));
  switch (H5Tget_class(type)) {
    case H5T_INTEGER:
      return std::to_string(H5Tget_precision(type)) + "-bit integer";
    case H5T_FLOAT:
      return std::to_string(H5Tget_precision(type)) + "-bit float";
    case H5T_STRING:
      return "string";
    case H5T_COMPOUND:
      return "compound";
    case H5T_ENUM:
      return dtype == DType::int8 && H5Tget_nmembers(type) == 2 ? "bool" : "enum";
    case H5T_VLEN:
      return "variable-length";
    case H5T_ARRAY:
      return "array";
    case H5T_OPAQUE:
      return "opaque";
    case H5T_REFERENCE:
      return "reference";
    case H5T_BITFIELD:
      return "bitfield";
    default:
      return "unknown type";
  }
}

void reclaim_variable_length(hid_t type, hid_t space, void* data) noexcept {
#if H5_VERSION_GE(1, 12, 0)
  H5Treclaim(type, space, H5P_DEFAULT, data);
#else
  H5Dvlen_reclaim(type, space, H5P_DEFAULT, data);
#endif
}

AttributeReader::AttributeReader(hid_t object, std::string object_name, std::string path)
    : object_(object), object_name_(std::move(object_name)), path_(std::move(path)) {}

Error AttributeReader::corrupt(const char* name, const std::string& why) const {
  return Error(ErrorCode::corrupt_data, std::string("attribute ") + name + " of " + object_name_ +
                                            " in " + path_ + " " + why +
                                            "; the file is damaged, write it again");
}

std::optional<std::string> AttributeReader::text(const char* name) const {
  const auto strings = texts(name);
  if (!strings) return std::nullopt;
  if (strings->size() != 1) throw corrupt(name, "is not one string");
  return strings->front();
}

std::optional<std::vector<std::string>> AttributeReader::texts(const char* name,
                                                               std::int64_t most) const {
  const auto attribute = open_attribute(object_, name, path_);
  if (!attribute) return std::nullopt;
  const hid_t type = attribute->type.get();
  if (H5Tget_class(type) != H5T_STRING) throw corrupt(name, "does not hold strings");
  if (attribute->count > most) throw corrupt(name, "has too many entries");
  const auto count = static_cast<std::size_t>(attribute->count);
  const auto max_bytes = static_cast<std::size_t>(count == 1 ? kMaxTextBytes : kMaxNameBytes);
  std::vector<std::string> strings;
  if (count == 0) return strings;

  if (check_status(H5Tis_variable_str(type), "inspect an attribute of", path_) > 0) {
    VariableStrings values(*attribute, count);
    check_status(H5Aread(attribute->id.get(), type, values.get().data()), "read an attribute of",
                 path_);
    for (const char* value : values.get()) {
      const std::string_view text = value == nullptr ? std::string_view{} : std::string_view(value);
      if (text.size() > max_bytes) throw corrupt(name, "is too long");
      strings.emplace_back(text);
    }
    return strings;
  }
  const std::size_t size = H5Tget_size(type);
  if (size == 0 || size > max_bytes || size * count > static_cast<std::size_t>(kMaxNamesBytes)) {
    throw corrupt(name, "is too long");
  }
  std::vector<char> values(size * count);
  check_status(H5Aread(attribute->id.get(), type, values.data()), "read an attribute of", path_);
  const H5T_str_t padding = H5Tget_strpad(type);
  for (std::size_t i = 0; i < count; ++i) {
    strings.push_back(unpadded(values.data() + i * size, size, padding));
  }
  return strings;
}

template <class T>
std::optional<std::vector<T>> AttributeReader::numbers(const char* name, std::int64_t count) const {
  auto values = up_to<T>(count, name);
  if (values && !std::cmp_equal(values->size(), count)) {
    throw corrupt(name, "has " + std::to_string(values->size()) + " entries, expected " +
                            std::to_string(count));
  }
  return values;
}

template <class T>
std::optional<std::vector<T>> AttributeReader::up_to(std::int64_t most, const char* name) const {
  const auto attribute = open_attribute(object_, name, path_);
  if (!attribute) return std::nullopt;
  if (!element_type(attribute->type.get())) throw corrupt(name, "does not hold numbers");
  if (attribute->count > most) {
    throw corrupt(name, "has " + std::to_string(attribute->count) + " entries, expected " +
                            std::to_string(most));
  }
  std::vector<T> values(static_cast<std::size_t>(attribute->count));
  if (!values.empty()) {
    check_status(H5Aread(attribute->id.get(), number_type<T>(), values.data()),
                 "read an attribute of", path_);
  }
  return values;
}

template std::optional<std::vector<std::int64_t>> AttributeReader::numbers(const char*,
                                                                           std::int64_t) const;
template std::optional<std::vector<std::uint64_t>> AttributeReader::numbers(const char*,
                                                                            std::int64_t) const;
template std::optional<std::vector<double>> AttributeReader::numbers(const char*,
                                                                     std::int64_t) const;
template std::optional<std::vector<std::int64_t>> AttributeReader::up_to(std::int64_t,
                                                                         const char*) const;
template std::optional<std::vector<std::uint64_t>> AttributeReader::up_to(std::int64_t,
                                                                          const char*) const;

void write_text(hid_t object, const char* name, const std::string& text, const std::string& path) {
  const TypeId type = string_type(text.size(), path);
  const SpaceId space(check_id(H5Screate(H5S_SCALAR), "create a dataspace for", path));
  write_attribute(object, name, type.get(), space.get(), text.c_str(), path);
}

void write_texts(hid_t object, const char* name, std::span<const std::string> texts,
                 const std::string& path) {
  std::size_t size = 1;
  for (const std::string& text : texts) size = std::max(size, text.size());
  std::vector<char> values(size * texts.size(), '\0');
  for (std::size_t i = 0; i < texts.size(); ++i) {
    std::copy(texts[i].begin(), texts[i].end(),
              values.begin() + static_cast<std::ptrdiff_t>(i * size));
  }
  const TypeId type = string_type(size, path);
  const SpaceId space = vector_space(texts.size(), path);
  write_attribute(object, name, type.get(), space.get(), values.data(), path);
}

template <class T>
void write_number(hid_t object, const char* name, T value, const std::string& path) {
  const SpaceId space(check_id(H5Screate(H5S_SCALAR), "create a dataspace for", path));
  write_attribute(object, name, number_type<T>(), space.get(), &value, path);
}

template <class T>
void write_numbers(hid_t object, const char* name, std::span<const T> values,
                   const std::string& path) {
  const SpaceId space = vector_space(values.size(), path);
  write_attribute(object, name, number_type<T>(), space.get(), values.data(), path);
}

template void write_number(hid_t, const char*, std::int64_t, const std::string&);
template void write_number(hid_t, const char*, std::uint64_t, const std::string&);
template void write_number(hid_t, const char*, double, const std::string&);
template void write_numbers(hid_t, const char*, std::span<const std::int64_t>, const std::string&);
template void write_numbers(hid_t, const char*, std::span<const std::uint64_t>, const std::string&);
template void write_numbers(hid_t, const char*, std::span<const double>, const std::string&);

namespace {

std::optional<SourceSizes> read_source_sizes(const AttributeReader& attributes,
                                             std::int64_t num_samples) {
  const auto range = attributes.numbers<std::int64_t>(image_attribute::kSourceSizeRange, 4);
  const auto triples = attributes.up_to<std::int64_t>(kMaxEntries, image_attribute::kSourceSizes);
  if (!range && !triples) return std::nullopt;
  SourceSizes sizes;
  if (range && triples && triples->size() % 3 == 0) {
    sizes = {(*range)[0], (*range)[1], (*range)[2], (*range)[3]};
    for (std::size_t i = 0; i < triples->size(); i += 3) {
      sizes.most_frequent.push_back({(*triples)[i], (*triples)[i + 1], (*triples)[i + 2]});
    }
  }
  if (!are_possible(sizes, num_samples)) {
    throw attributes.corrupt(image_attribute::kSourceSizes, "says what cannot be");
  }
  return sizes;
}

std::optional<ShardInfo> read_shard(const AttributeReader& root, std::int64_t num_rows) {
  const auto number = [&](const char* name) {
    const auto value = root.numbers<std::int64_t>(name, 1);
    return value ? value->front() : -1;
  };
  const auto set = root.text(root_attribute::kShardSet);
  if (!set) return std::nullopt;
  const ShardInfo shard{.index = number(root_attribute::kShardIndex),
                        .count = number(root_attribute::kShardCount),
                        .first_row = number(root_attribute::kShardFirstRow),
                        .total_rows = number(root_attribute::kShardTotalRows),
                        .set = *set};
  if (!is_possible(shard, num_rows)) {
    throw root.corrupt(root_attribute::kShardIndex, "and those beside it say what cannot be");
  }
  return shard;
}

/// Rows that a dataset had room for when it was created: class names may be as many, although some
/// samples were left out then.
std::int64_t planned_samples(hid_t images, const std::string& path) {
  const SpaceId space(check_id(H5Dget_space(images), "inspect the images of", path));
  std::array<hsize_t, H5S_MAX_RANK> most{};
  check_status(H5Sget_simple_extent_dims(space.get(), nullptr, most.data()),
               "inspect the images of", path);
  return static_cast<std::int64_t>(std::min(most[0], static_cast<hsize_t>(kMaxSamples)));
}

}  // namespace

bool is_possible(const ShardInfo& shard, std::int64_t num_rows) noexcept {
  return shard.count >= 1 && shard.count <= kMaxShards && shard.index >= 0 &&
         shard.index < shard.count && shard.total_rows <= kMaxSamples && shard.first_row >= 0 &&
         num_rows <= shard.total_rows && shard.first_row <= shard.total_rows - num_rows;
}

void read_description(hid_t file, hid_t images, DatasetInfo& info) {
  const AttributeReader root(file, "the root group", info.path);
  if (check_status(H5Aexists(file, root_attribute::kFormat), "look for attributes in", info.path) ==
      0) {
    return;
  }
  const std::int64_t version = root.numbers<std::int64_t>(root_attribute::kFormat, 1)->front();
  if (version < 1) throw root.corrupt(root_attribute::kFormat, "is not a version number");
  if (version > kFormatVersion) {
    throw Error(ErrorCode::unsupported,
                info.path + " has format version " + std::to_string(version) +
                    ", this library reads versions up to " + std::to_string(kFormatVersion) +
                    "; install a newer one");
  }
  info.format_version = version;
  info.creator = root.text(root_attribute::kCreator).value_or("");
  info.uuid = root.text(root_attribute::kUuid).value_or("");
  info.split = root.text(root_attribute::kSplit).value_or("");
  info.order = root.text(root_attribute::kOrder).value_or("");
  info.options_json = root.text(root_attribute::kOptions).value_or("");
  if (const auto seed = root.numbers<std::uint64_t>(root_attribute::kSeed, 1)) {
    info.seed = seed->front();
  }
  info.shard = read_shard(root, info.num_samples);

  const AttributeReader attributes(images, printable(info.images_path), info.path);
  info.channel_order = attributes.text(image_attribute::kChannelOrder).value_or("");
  const std::int64_t most_classes = max_classes(planned_samples(images, info.path));
  info.class_names = attributes.texts(image_attribute::kClassNames, most_classes)
                         .value_or(std::vector<std::string>{});
  info.attribute_names =
      attributes.texts(image_attribute::kAttributeNames).value_or(std::vector<std::string>{});

  const auto mean = attributes.numbers<double>(image_attribute::kMean, info.channels);
  const auto std = attributes.numbers<double>(image_attribute::kStd, info.channels);
  if (mean && !all_finite(*mean)) throw attributes.corrupt(image_attribute::kMean, "is not finite");
  if (std && (!all_finite(*std) ||
              std::any_of(std->begin(), std->end(), [](double v) { return v <= 0; }))) {
    throw attributes.corrupt(image_attribute::kStd, "is not finite and above 0");
  }
  if (mean.has_value() != std.has_value()) {
    throw attributes.corrupt(mean ? image_attribute::kMean : image_attribute::kStd,
                             "lacks its counterpart");
  }
  if (mean) info.statistics = ChannelStatistics{*mean, *std};

  if (const auto within =
          attributes.numbers<double>(image_attribute::kMeanPictureStd, info.channels)) {
    if (!all_finite(*within)) {
      throw attributes.corrupt(image_attribute::kMeanPictureStd, "is not finite");
    }
    info.mean_picture_std = *within;
  }
  info.source_sizes = read_source_sizes(attributes, info.num_samples);

  const std::int64_t num_classes = static_cast<std::int64_t>(info.class_names.size());
  if (const auto counts =
          num_classes > 0
              ? attributes.numbers<std::int64_t>(image_attribute::kClassCounts, num_classes)
              : attributes.up_to<std::int64_t>(most_classes, image_attribute::kClassCounts)) {
    if (std::any_of(counts->begin(), counts->end(),
                    [&](std::int64_t n) { return n < 0 || n > info.num_samples; })) {
      throw attributes.corrupt(image_attribute::kClassCounts, "counts what cannot be");
    }
    info.class_counts = *counts;
  }

  if (version > 1) return;
  const auto algorithm = attributes.text(image_attribute::kDigestAlgorithm);
  // Digests of an algorithm of the future are as good as none.
  if (algorithm && *algorithm == kDigestAlgorithm) {
    info.chunk_digests = attributes
                             .up_to<std::uint64_t>(std::max(kMaxEntries, info.num_samples),
                                                   image_attribute::kChunkDigests)
                             .value_or(std::vector<std::uint64_t>{});
  }
}

std::vector<std::string> read_covered_names(hid_t digests, const std::string& path) {
  const AttributeReader attributes(digests, kSampleDigests, path);
  const auto algorithm = attributes.text(digest_attribute::kAlgorithm);
  if (!algorithm || *algorithm != kDigestAlgorithm) return {};
  auto names = attributes.texts(digest_attribute::kCovers);
  if (!names || names->empty()) {
    throw attributes.corrupt(digest_attribute::kCovers, "names no datasets");
  }
  return *std::move(names);
}

void write_covered_names(hid_t digests, std::span<const std::string> names,
                         const std::string& path) {
  write_text(digests, digest_attribute::kAlgorithm, kDigestAlgorithm, path);
  write_texts(digests, digest_attribute::kCovers, names, path);
}

}  // namespace chunkio::h5
