#include "h5/attributes.hpp"

#include <algorithm>
#include <limits>
#include <string_view>
#include <utility>

#include "base/checked_math.hpp"
#include "h5/element_type.hpp"
#include "h5/error_stack.hpp"
#include "h5/handle.hpp"

namespace chunkio::h5 {
namespace {

struct OpenAttribute {
  AttrId id;
  TypeId type;
  SpaceId space;
  std::int64_t count = 0;
};

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

}  // namespace

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
    strings.emplace_back(unpadded(std::string_view(values.data() + i * size, size), padding));
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
  // Without texts, too, libhdf5 wants to be given something.
  std::vector<char> values(std::max(size, size * texts.size()), '\0');
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

}  // namespace chunkio::h5
