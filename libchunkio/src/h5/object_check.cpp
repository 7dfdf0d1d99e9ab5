/// Reads whatever a file holds, of any type, to find what cannot be read.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include <hdf5.h>

#include <chunkio/error.hpp>
#include <chunkio/verify.hpp>

#include "base/access.hpp"
#include "base/checked_math.hpp"
#include "h5/chunk_check.hpp"
#include "h5/dataset_impl.hpp"
#include "h5/element_type.hpp"
#include "h5/error_stack.hpp"
#include "h5/file_contents.hpp"
#include "h5/library.hpp"
#include "h5/read_rows.hpp"
#include "h5/schema.hpp"
#include "h5/shard_set.hpp"
#include "h5/stored_array.hpp"
#include "io/ask_again.hpp"
#include "io/remote_file.hpp"

namespace chunkio::h5 {
namespace {

using Extent = std::vector<hsize_t>;

/// Read at a time.
constexpr std::size_t kBlockBytes = std::size_t{8} << 20;
/// libhdf5 takes some 1.5 KiB for each chunk that a call of H5Dread touches.
constexpr hsize_t kBlockChunks = 1024;
/// Of the largest chunks that are decoded, two.
constexpr std::int64_t kMaxCacheBytes = std::int64_t{512} << 20;

/// The dimensions of a dataspace; none of a scalar. Absent if it holds no elements.
std::optional<Extent> extent_of(const SpaceId& space, const std::string& action,
                                const std::string& path) {
  if (H5Sget_simple_extent_type(space.get()) == H5S_NULL) return std::nullopt;
  const int rank = check_status(H5Sget_simple_extent_ndims(space.get()), action, path);
  Extent dims(static_cast<std::size_t>(rank));
  check_status(H5Sget_simple_extent_dims(space.get(), dims.data(), nullptr), action, path);
  if (std::find(dims.begin(), dims.end(), hsize_t{0}) != dims.end()) return std::nullopt;
  return dims;
}

/// Whether elements can hold memory of libhdf5's once they were read.
bool may_be_variable(const TypeId& type) {
  return H5Tdetect_class(type.get(), H5T_VLEN) > 0 || H5Tdetect_class(type.get(), H5T_STRING) > 0 ||
         H5Tdetect_class(type.get(), H5T_REFERENCE) > 0;
}

/// H5A_operator2_t; collects names. No exception may pass through libhdf5's frames.
herr_t collect_attribute(hid_t /*object*/, const char* name, const H5A_info_t* /*info*/,
                         void* data) noexcept {
  try {
    static_cast<std::vector<std::string>*>(data)->emplace_back(name);
    return 0;
  } catch (...) {
    return -1;
  }
}

/// Looks at all objects of one file.
class ObjectCheck {
 public:
  ObjectCheck(const Dataset::Impl& file, const std::stop_token& stop)
      : file_(file), path_(file.info.path), stop_(stop) {}

  std::vector<DamagedObject> run() {
    std::vector<DamagedObject> unopened;
    visit_objects(
        file_.file(), path_,
        [&](hid_t object, const std::string& name, H5I_type_t type) {
          attempt(name, [&] { inspect(object, name); });
          read_attributes(object, name);
          if (type == H5I_DATASET) attempt(name, [&] { read_dataset(name); });
        },
        unopened);
    // Where opening the file failed, opening the object again may not: see refuse_damaged().
    for (const DamagedObject& object : file_.info.damaged_objects) {
      const auto known = [&](const DamagedObject& other) { return other.name == object.name; };
      if (std::none_of(unopened.begin(), unopened.end(), known)) unopened.push_back(object);
    }
    damaged_.insert(damaged_.end(), unopened.begin(), unopened.end());
    std::stable_sort(
        damaged_.begin(), damaged_.end(),
        [](const DamagedObject& a, const DamagedObject& b) { return a.name < b.name; });
    // A file that is being rewritten is not damaged.
    file_.check_unchanged();
    return std::move(damaged_);
  }

 private:
  void check_stop() const {
    if (!stop_.stop_requested()) return;
    throw Error(ErrorCode::cancelled, "verifying " + path_ + " was stopped");
  }

  /// Runs `read`; its failure is damage of the object `name`, unless it is about this process.
  template <class Read>
  void attempt(const std::string& name, const Read& read) {
    check_stop();
    try {
      read();
    } catch (const Error& error) {
      switch (error.code()) {
        case ErrorCode::io_failed:
        case ErrorCode::corrupt_data:
        case ErrorCode::unsupported:
        case ErrorCode::hdf5_failed:
          damaged_.push_back({name, error.what()});
          return;
        default:
          throw;
      }
    }
  }

  /// Also looks at what only keeps account of free space, which nothing else here reads.
  void inspect(hid_t object, const std::string& name) const {
    const std::string action = "inspect " + describe(name) + " of";
#if H5_VERSION_GE(1, 12, 0)
    H5O_native_info_t info;
    check_status(H5Oget_native_info(object, &info, H5O_NATIVE_INFO_ALL), action, path_);
#else
    H5O_info_t info;
    check_status(H5Oget_info2(object, &info, H5O_INFO_ALL), action, path_);
#endif
  }

  static std::string describe(const std::string& name) {
    return name.empty() ? "the root group" : printable(name);
  }

  void read_attributes(hid_t object, const std::string& name) {
    const std::string owner = describe(name);
    attempt(name, [&] {
      std::vector<std::string> attributes;
      hsize_t at = 0;
      check_status(
          H5Aiterate2(object, H5_INDEX_NAME, H5_ITER_INC, &at, &collect_attribute, &attributes),
          "list the attributes of " + owner + " of", path_);
      for (const std::string& attribute : attributes) {
        attempt(name, [&] {
          read_attribute(object, attribute,
                         "read attribute " + printable(attribute) + " of " + owner + " of");
        });
      }
    });
  }

  void read_attribute(hid_t object, const std::string& name, const std::string& action) {
    const AttrId attribute(check_id(H5Aopen(object, name.c_str(), H5P_DEFAULT), action, path_));
    const TypeId type(check_id(H5Aget_type(attribute.get()), action, path_));
    const SpaceId space(check_id(H5Aget_space(attribute.get()), action, path_));
    const std::optional<Extent> dims = extent_of(space, action, path_);
    if (!dims) return;
    const std::size_t bytes = total_bytes(*dims, type, action);
    if (bytes > static_cast<std::size_t>(kMaxNamesBytes)) throw too_large(action);
    std::vector<std::byte> values(bytes);
    check_status(H5Aread(attribute.get(), type.get(), values.data()), action, path_);
    if (may_be_variable(type)) reclaim_variable_length(type.get(), space.get(), values.data());
  }

  [[nodiscard]] Error too_large(const std::string& action) const {
    return Error(ErrorCode::corrupt_data, "cannot " + action + " " + path_ +
                                              ": it claims more bytes than there can be; the file "
                                              "is damaged, copy or download it again");
  }

  [[nodiscard]] std::size_t total_bytes(const Extent& dims, const TypeId& type,
                                        const std::string& action) const {
    const auto elements = base::checked_product<hsize_t>(dims);
    const auto bytes = elements ? base::checked_multiply<hsize_t>(
                                      *elements, static_cast<hsize_t>(H5Tget_size(type.get())))
                                : std::nullopt;
    if (!bytes || *bytes > hsize_t{1} << 62) throw too_large(action);
    return static_cast<std::size_t>(*bytes);
  }

  /// As it is delivered, or of what is not delivered whatever there is.
  void read_dataset(const std::string& name) {
    const DatasetInfo& info = file_.info;
    if (name == info.leading.name) return;
    if (info.labels && info.labels->name == name) return read_field(*info.labels);
    for (const FieldInfo& field : info.fields) {
      if (field.name == name) return read_field(field);
    }
    const DatasetSummary summary =
        summarize(open_dataset(file_.file(), name, path_), name, path_, file_.external);
    if (summary.refusal.empty()) read_elements(name, summary.shape);
  }

  void read_field(const FieldInfo& field) {
    const std::shared_ptr<const StoredArray> array =
        open_array(file_, field.name, field.row_shape.with_first_axis(file_.info.num_samples),
                   field.dtype, kMaxCacheBytes);
    const auto row_bytes = static_cast<std::size_t>(array->row_bytes);
    const auto block = static_cast<std::int64_t>(std::max<std::size_t>(kBlockBytes / row_bytes, 1));
    const std::int64_t num_rows = file_.info.num_samples;
    std::vector<std::byte> values(static_cast<std::size_t>(std::min(block, num_rows)) * row_bytes);
    for (std::int64_t first = 0; first < num_rows; first += block) {
      check_stop();
      const std::int64_t count = std::min(block, num_rows - first);
      read_rows(*array, first, count,
                std::span(values).first(static_cast<std::size_t>(count) * row_bytes), path_);
    }
  }

  /// \param shape  absent for more axes than the library reads.
  void read_elements(const std::string& name, const std::optional<Shape>& shape) {
    const std::string action = "read " + printable(name) + " of";
    DatasetId dataset = open_dataset(file_.file(), name, path_);
    const TypeId type(check_id(H5Dget_type(dataset.get()), action, path_));
    const SpaceId space(check_id(H5Dget_space(dataset.get()), action, path_));
    const std::optional<Extent> dims = extent_of(space, action, path_);
    const hsize_t stored_bytes = H5Dget_storage_size(dataset.get());
    if (!dims || stored_bytes == 0) return;
    // Filters make at most a thousandth of it, so most of this has no storage, and to read it all
    // could take for ever.
    constexpr hsize_t kLargestRatio = 4096;
    if (total_bytes(*dims, type, action) / kLargestRatio > stored_bytes + kBlockBytes) {
      throw too_large(action);
    }
    const std::size_t element_bytes = H5Tget_size(type.get());
    if (element_bytes > static_cast<std::size_t>(kMaxNamesBytes)) throw too_large(action);

    Extent chunk(dims->size(), 1);
    const ListId creation(check_id(H5Dget_create_plist(dataset.get()), action, path_));
    const bool chunked = H5Pget_layout(creation.get()) == H5D_CHUNKED;
    if (chunked) {
      check_status(H5Pget_chunk(creation.get(), static_cast<int>(chunk.size()), chunk.data()),
                   action, path_);
      if (shape) {
        dataset.reset();  // the first to open a dataset decides its chunk cache
        const std::shared_ptr<const StoredArray> array =
            open_array(file_, name, *shape, DType::uint8, kMaxCacheBytes);
        if (array->decoded_here || has_checkable_chunks(*array)) {
          check_chunks(*array, 0, array->stored.shape[0], path_);
        }
        if (array->decoded_here) return;
        read_blocks(array->dataset, type, *dims, block_of(*dims, chunk, element_bytes, chunked),
                    action);
        return;
      }
    }
    read_blocks(dataset, type, *dims, block_of(*dims, chunk, element_bytes, chunked), action);
  }

  /// Whole chunks where they fit, and of those as many as fit along the last axes.
  static Extent block_of(const Extent& dims, Extent block, std::size_t element_bytes,
                         bool chunked) {
    hsize_t room = std::max<hsize_t>(kBlockBytes / element_bytes, 1);
    hsize_t chunks = chunked ? kBlockChunks : room;
    for (std::size_t axis = block.size(); axis-- > 0;) {
      block[axis] = std::clamp<hsize_t>(block[axis], 1, std::min(dims[axis], room));
      room /= block[axis];
    }
    for (std::size_t axis = block.size(); axis-- > 0;) {
      const hsize_t needed = (dims[axis] - 1) / block[axis] + 1;
      const hsize_t factor = std::min({needed, std::max<hsize_t>(room, 1), chunks});
      block[axis] = std::min(block[axis] * factor, dims[axis]);
      if (factor < needed) break;
      room /= factor;
      chunks /= factor;
    }
    return block;
  }

  void read_blocks(const DatasetId& dataset, const TypeId& type, const Extent& dims,
                   const Extent& block, const std::string& action) {
    const SpaceId space(check_id(H5Dget_space(dataset.get()), action, path_));
    std::vector<std::byte> values(total_bytes(block, type, action));
    const bool variable = may_be_variable(type);
    Extent start(dims.size(), 0);
    std::size_t axis = 0;
    do {
      check_stop();
      Extent count = block;
      for (std::size_t i = 0; i < dims.size(); ++i) {
        count[i] = std::min(block[i], dims[i] - start[i]);
      }
      SpaceId memory;
      if (dims.empty()) {
        memory = SpaceId(check_id(H5Screate(H5S_SCALAR), action, path_));
      } else {
        memory = SpaceId(
            check_id(H5Screate_simple(static_cast<int>(count.size()), count.data(), nullptr),
                     action, path_));
        check_status(H5Sselect_hyperslab(space.get(), H5S_SELECT_SET, start.data(), nullptr,
                                         count.data(), nullptr),
                     action, path_);
      }
      if (variable) std::fill(values.begin(), values.end(), std::byte{0});
      const herr_t status =
          H5Dread(dataset.get(), type.get(), memory.get(), space.get(), H5P_DEFAULT, values.data());
      check_status(status, action, path_);
      if (variable) reclaim_variable_length(type.get(), memory.get(), values.data());
      for (axis = dims.size(); axis-- > 0;) {
        start[axis] += count[axis];
        if (start[axis] < dims[axis]) break;
        start[axis] = 0;
      }
    } while (axis < dims.size());  // it wraps around behind the last block
  }

  const Dataset::Impl& file_;
  const std::string& path_;
  const std::stop_token& stop_;
  std::vector<DamagedObject> damaged_;
};

}  // namespace
}  // namespace chunkio::h5

namespace chunkio {

std::vector<DamagedObject> verify_objects(const Dataset& dataset, const std::stop_token& stop) {
  std::vector<DamagedObject> damaged;
  for (const auto& file : h5::files_of(internal::Access::impl(dataset))) {
    const auto guard = h5::Library::lock();
    std::vector<DamagedObject> one = h5::ObjectCheck(*file, stop).run();
    // As ask_again(), for what is returned instead of thrown.
    const io::RemoteFile* const remote = io::as_remote_file(*file->bytes);
    std::optional<io::Distrust> distrust;
    for (int tries = 1; !one.empty() && remote != nullptr && tries < io::kMostTries; ++tries) {
      if (!distrust) distrust.emplace(*remote);
      one = h5::ObjectCheck(*file, stop).run();
    }
    std::move(one.begin(), one.end(), std::back_inserter(damaged));
  }
  return damaged;
}

}  // namespace chunkio
