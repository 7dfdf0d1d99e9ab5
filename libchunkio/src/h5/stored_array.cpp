#include "h5/stored_array.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <span>
#include <utility>

#include <hdf5.h>
#if __has_include(<H5develop.h>)
#include <H5develop.h>  // H5Dget_chunk_index_type, in newer versions
#endif

#include <chunkio/error.hpp>

#include "base/checked_math.hpp"
#include "h5/dataset_impl.hpp"
#include "h5/element_type.hpp"
#include "h5/error_stack.hpp"
#include "h5/file_contents.hpp"
#include "h5/filters.hpp"
#include "h5/library.hpp"
#include "io/local_file.hpp"
#include "io/remote_file.hpp"

namespace chunkio::h5 {
namespace {

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
    case FilterStep::kLzf:
      return "lzf";
    case FilterStep::kBlosc:
      return "blosc";
    case FilterStep::kLz4:
      return "lz4";
    case FilterStep::kZstandard:
      return "zstd";
    default:
      return "filter " + std::to_string(filter);
  }
}

/// The shortest superblock: that of versions 2 and 3, with addresses of 8 bytes.
constexpr std::int64_t kSuperblockBytes = 48;

/// Looks at one dataset; a class only to share what every step needs.
class Inspection {
 public:
  Inspection(const Dataset::Impl& file, StoredArray& array, std::int64_t max_cache_bytes)
      : file_(file),
        path_(file.info.path),
        array_(array),
        max_cache_bytes_(max_cache_bytes),
        action_("inspect the storage of " + printable(array.name) + " in"),
        creation_(check_id(H5Dget_create_plist(array.dataset.get()), action_, path_)),
        type_(check_id(H5Dget_type(array.dataset.get()), action_, path_)) {}

  void run() {
    const H5D_layout_t layout = H5Pget_layout(creation_.get());
    array_.stored.chunked = layout == H5D_CHUNKED;
    if (layout == H5D_CONTIGUOUS) array_.stored_bytes = storage_size();
    if (array_.stored.chunked) {
      read_chunk_shape();
      read_filters();
      limit_chunks();
    }
    read_elements();
    if (array_.stored.chunked) reopen_with_cache();  // before an index holds it open
    array_.needs_libhdf5 = why_only_libhdf5(layout);
    if (array_.needs_libhdf5.empty()) {
      first_byte_ = user_block() + kSuperblockBytes;
      if (array_.stored.chunked) {
        make_index();
      } else {
        array_.linear_offset = static_cast<std::int64_t>(H5Dget_offset(array_.dataset.get()));
      }
      check_linear_extent();
    }
    if (layout != H5D_CONTIGUOUS) array_.stored_bytes = stored_bytes_of_chunks();
  }

 private:
  [[nodiscard]] std::int64_t storage_size() const {
    return static_cast<std::int64_t>(
        std::min<hsize_t>(H5Dget_storage_size(array_.dataset.get()),
                          static_cast<hsize_t>(std::numeric_limits<std::int64_t>::max())));
  }

  /// libhdf5 adds the chunks up node by node, and waits for each. Where the tree is read here, or a
  /// node takes a request, all chunks are listed instead, which reading needs anyway.
  [[nodiscard]] std::int64_t stored_bytes_of_chunks() const {
    const bool is_local = io::as_local_file(*file_.bytes) != nullptr;
    if (!array_.index || (is_local && !has_tree_)) return storage_size();
    const auto listed = array_.index->list();
    if (!listed) return storage_size();
    const io::RemoteFile* const remote = io::as_remote_file(*file_.bytes);
    if (!listed->damage.empty() && remote != nullptr && !remote->distrusted()) {
      throw corrupt("the index of the chunks of " + name() + " is damaged, " + listed->damage);
    }
    return listed->bytes;
  }

  [[nodiscard]] std::string name() const { return printable(array_.name); }
  [[nodiscard]] Error corrupt(const std::string& what) const {
    return Error(ErrorCode::corrupt_data, path_ + ": " + what);
  }

  void read_chunk_shape() {
    const Shape& shape = array_.stored.shape;
    const std::size_t rank = shape.rank();
    std::array<hsize_t, H5S_MAX_RANK> dims{};
    if (check_status(H5Pget_chunk(creation_.get(), H5S_MAX_RANK, dims.data()), action_, path_) !=
        static_cast<int>(rank)) {
      throw corrupt("chunks of " + name() + " have another rank than the dataset");
    }
    std::vector<std::int64_t> chunk;
    array_.num_chunks = 1;
    for (std::size_t axis = 0; axis < rank; ++axis) {
      if (dims[axis] == 0 || !std::in_range<std::uint32_t>(dims[axis])) {
        throw corrupt("impossible chunk shape of " + name());
      }
      chunk.push_back(static_cast<std::int64_t>(dims[axis]));
      const std::int64_t along = base::ceil_divide(shape[axis], chunk[axis]);
      const auto num_chunks = base::checked_multiply(array_.num_chunks, along);
      const auto group_chunks = base::checked_multiply(group_chunks_, axis > 0 ? along : 1);
      if (!num_chunks || !group_chunks)
        throw corrupt(name() + " has more chunks than can be counted");
      array_.num_chunks = *num_chunks;
      group_chunks_ = *group_chunks;
    }
    array_.stored.chunk_shape = Shape(chunk);
  }

  /// No tool is named that writes a file anew without what it cannot decode, as h5repack does.
  [[nodiscard]] Error cannot_decode(const std::string& filter) const {
    return Error(ErrorCode::unsupported,
                 path_ + ": " + name() + " is stored with " + filter +
                     "; read it with the program that wrote it, such as h5py with the package "
                     "hdf5plugin, and write it again without that filter");
  }

  /// \throws Error unsupported if a filter cannot be undone; plugins are not looked for.
  void read_filters() {
    const int count = check_status(H5Pget_nfilters(creation_.get()), action_, path_);
    for (int i = 0; i < count; ++i) {
      unsigned int flags = 0;
      unsigned int config = 0;
      std::array<unsigned int, 20> values{};
      std::size_t num_values = values.size();
      const H5Z_filter_t filter =
          H5Pget_filter2(creation_.get(), static_cast<unsigned int>(i), &flags, &num_values,
                         values.data(), 0, nullptr, &config);
      check_status(filter, action_, path_);
      FilterStep step{.id = filter, .name = filter_name(filter)};
      num_values = std::min(num_values, values.size());
      step.values.assign(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(num_values));
      // libhdf5 gives elements of any length no size, without which each chunk skips the shuffle.
      if (filter == FilterStep::kShuffle && step.values.empty() && is_of_any_length(type_.get())) {
        step.values = {1};
      }
      array_.stored.filters.push_back(step.name);
      if (filter != FilterStep::kDeflate && Decompressor::knows(filter)) {
        array_.decoded_here = true;
      } else if (check_status(H5Zfilter_avail(filter), action_, path_) == 0) {
        throw cannot_decode(step.name + ", which this libhdf5 lacks (plugins are not loaded)");
      }
      array_.filters.push_back(std::move(step));
    }
    const FilterStep* const foreign = first_foreign_filter(array_.filters);
    if (array_.decoded_here && foreign != nullptr) {
      const auto ours =
          std::find_if(array_.filters.begin(), array_.filters.end(), [](const FilterStep& step) {
            return step.id != FilterStep::kDeflate && Decompressor::knows(step.id);
          });
      throw cannot_decode(ours->name + " and " + foreign->name);
    }
    unsigned int options = 0;
    check_status(H5Pget_chunk_opts(creation_.get(), &options), action_, path_);
    array_.partial_chunks_filtered = (options & H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS) == 0;
  }

  [[nodiscard]] static bool is_of_any_length(hid_t type) {
    return H5Tget_class(type) == H5T_VLEN || H5Tis_variable_str(type) > 0;
  }

  /// Of an element in the file, where what may have any length is a length and a place in a global
  /// heap; libhdf5 gives the size in memory, where it is a pointer.
  [[nodiscard]] std::int64_t stored_element_bytes() const {
    const ListId creation(check_id(H5Fget_create_plist(file_.file().get()), action_, path_));
    std::size_t address_bytes = 0;
    check_status(H5Pget_sizes(creation.get(), &address_bytes, nullptr), action_, path_);
    return stored_bytes_of(type_.get(), 4 + static_cast<std::int64_t>(address_bytes) + 4);
  }

  [[nodiscard]] std::int64_t stored_bytes_of(hid_t type, std::int64_t place_bytes) const {
    if (is_of_any_length(type)) return place_bytes;
    auto bytes = static_cast<std::int64_t>(H5Tget_size(type));
    const auto grow = [&](hid_t part, std::int64_t count) {
      const auto in_memory = static_cast<std::int64_t>(H5Tget_size(part));
      bytes += count * (stored_bytes_of(part, place_bytes) - in_memory);
    };
    if (H5Tget_class(type) == H5T_ARRAY) {
      const TypeId element(check_id(H5Tget_super(type), action_, path_));
      const auto in_memory = static_cast<std::int64_t>(H5Tget_size(element.get()));
      grow(element.get(), bytes / std::max<std::int64_t>(in_memory, 1));
    }
    const int num_members = H5Tget_class(type) == H5T_COMPOUND ? H5Tget_nmembers(type) : 0;
    for (int i = 0; i < num_members; ++i) {
      const TypeId member(
          check_id(H5Tget_member_type(type, static_cast<unsigned int>(i)), action_, path_));
      grow(member.get(), 1);
    }
    return bytes;
  }

  void limit_chunks() {
    const auto elements = base::checked_product(array_.stored.chunk_shape.dims());
    // As it is stored: labels of any width are delivered as int64.
    const std::int64_t element_bytes = stored_element_bytes();
    const auto bytes = elements ? base::checked_multiply(*elements, element_bytes) : std::nullopt;
    if (!bytes || (!array_.filters.empty() && *bytes > kMaxFilteredChunkBytes)) {
      throw Error(
          ErrorCode::unsupported,
          path_ + ": chunks " + array_.stored.chunk_shape.to_string() + " of " + name() +
              " are too large to decode; write the file again with smaller ones, for example with "
              "h5py, some rows at a time");
    }
    array_.chunk_bytes = *bytes;
  }

  void read_elements() {
    const hid_t memory = memory_type(array_.stored.dtype);
    const TypeId values(check_id(
        H5Tget_class(type_.get()) == H5T_ENUM ? H5Tget_super(type_.get()) : H5Tcopy(type_.get()),
        action_, path_));
    array_.native_elements = check_status(H5Tequal(values.get(), memory), action_, path_) > 0;
    array_.fill_value.resize(size_of(array_.stored.dtype));
    // Of what is no number only the chunks are of interest (object_check.cpp).
    if (!element_type(values.get())) return;
    H5D_fill_value_t defined = H5D_FILL_VALUE_UNDEFINED;
    check_status(H5Pfill_value_defined(creation_.get(), &defined), action_, path_);
    if (defined == H5D_FILL_VALUE_USER_DEFINED) {
      check_status(H5Pget_fill_value(creation_.get(), memory, array_.fill_value.data()), action_,
                   path_);
    }
  }

  /// An external link leads to a dataset whose positions are those of another file.
  [[nodiscard]] bool lies_in_another_file() const {
#if H5_VERSION_GE(1, 12, 0)
    H5O_info2_t ours;
    H5O_info2_t theirs;
    check_status(H5Oget_info3(file_.file().get(), &ours, H5O_INFO_BASIC), action_, path_);
    check_status(H5Oget_info3(array_.dataset.get(), &theirs, H5O_INFO_BASIC), action_, path_);
#else
    H5O_info_t ours;
    H5O_info_t theirs;
    check_status(H5Oget_info2(file_.file().get(), &ours, H5O_INFO_BASIC), action_, path_);
    check_status(H5Oget_info2(array_.dataset.get(), &theirs, H5O_INFO_BASIC), action_, path_);
#endif
    return ours.fileno != theirs.fileno;
  }

  [[nodiscard]] std::string why_only_libhdf5(H5D_layout_t layout) const {
    if (lies_in_another_file()) return "it lies in another file";
    if (layout == H5D_VIRTUAL) return "virtual dataset";
    if (layout == H5D_COMPACT) return "compact storage";
    if (check_status(H5Pget_external_count(creation_.get()), action_, path_) > 0) {
      return "external storage";
    }
    if (array_.scale) return "pixels are made of other numbers";
    if (!array_.native_elements) return "elements in another byte order";
    if (layout == H5D_CONTIGUOUS) {
      // Not by its offset, to which libhdf5 adds the user block also if there is none.
      if (array_.stored_bytes == 0) return "storage is not allocated";
      return {};
    }
    for (const FilterStep& step : array_.filters) {
      if (step.id == FilterStep::kShuffle || step.id == FilterStep::kFletcher32 ||
          Decompressor::knows(step.id)) {
        continue;
      }
      return step.name + (step.name.starts_with("filter") ? "" : " filter");
    }
#if CHUNKIO_HAVE_CHUNK_ITER
    // Versions differ in whether the addresses they list count it.
    if (user_block() != 0) return "chunks behind a user block";
#endif
    return {};
  }

  [[nodiscard]] std::int64_t user_block() const {
    const ListId creation(check_id(H5Fget_create_plist(file_.file().get()), action_, path_));
    hsize_t bytes = 0;
    check_status(H5Pget_userblock(creation.get(), &bytes), action_, path_);
    return static_cast<std::int64_t>(bytes);
  }

  void make_index() {
    const auto tree = find_chunk_tree(*file_.bytes, file_.file(), array_.dataset.get(),
                                      array_.stored.chunk_shape, path_);
    has_tree_ = tree.has_value();
    array_.index = std::make_unique<ChunkIndex>(
        file_.bytes,
        ChunkIndex::Target{.path = path_,
                           .dataset = array_.name,
                           .shape = array_.stored.shape,
                           .chunk = array_.stored.chunk_shape,
                           .first_byte = first_byte_,
                           .file_bytes = file_.bytes->size(),
                           .raw_bytes = array_.filters.empty() ? array_.chunk_bytes : 0,
                           .tree = tree});
    if (array_.filters.empty() && array_.whole_rows()) find_implicit_base();
    if (array_.num_chunks <= ChunkIndex::kMaxChunks) return;
    array_.index.reset();
    if (!array_.linear_offset) array_.needs_libhdf5 = "too many chunks for an index";
  }

  /// Sets linear_offset if libhdf5 computes chunk addresses instead of looking them up: it then
  /// keeps all chunks in one run. Only the file can say so; addresses of some chunks that happen to
  /// fit prove nothing about the others.
  void find_implicit_base() {
    H5D_chunk_index_t kind = H5D_CHUNK_IDX_BTREE;
    check_status(H5Dget_chunk_index_type(array_.dataset.get(), &kind), action_, path_);
    if (kind != H5D_CHUNK_IDX_NONE && kind != H5D_CHUNK_IDX_SINGLE) return;
    std::array<std::int64_t, Shape::kMaxRank> coord{};
    const auto chunk = std::span(coord).first(array_.stored.shape.rank());
    const ChunkEntry first = array_.index->find_once(chunk);
    coord[0] = array_.num_chunks - 1;
    const ChunkEntry last = array_.index->find_once(chunk);
    if (!first.allocated() || !last.allocated()) return;
    if (last.file_offset - first.file_offset != (array_.num_chunks - 1) * array_.chunk_bytes) {
      throw corrupt("the chunks of " + name() + " do not lie where its index says");
    }
    array_.linear_offset = first.file_offset;
  }

  void check_linear_extent() const {
    if (!array_.linear_offset) return;
    const auto bytes = array_.stored.chunked
                           ? base::checked_multiply(array_.num_chunks, array_.chunk_bytes)
                           : base::checked_multiply(array_.stored.shape[0], array_.row_bytes);
    const auto end = bytes ? base::checked_add(*array_.linear_offset, *bytes) : std::nullopt;
    if (*array_.linear_offset < first_byte_) {
      throw corrupt(name() + " begins at byte " + std::to_string(*array_.linear_offset) +
                    ", where the file's own superblock is; copy or download it again");
    }
    if (!end || *end > file_.bytes->size()) {
      throw Error(ErrorCode::corrupt_data,
                  path_ + " is truncated: " + name() + " ends at byte " +
                      (end ? std::to_string(*end) : "2^63") + ", the file at " +
                      std::to_string(file_.bytes->size()) + "; copy or download it again");
    }
  }

  /// In libhdf5, the first to open a dataset decides its chunk cache.
  void reopen_with_cache() {
    std::size_t cache_slots = 1;
    if (!array_.filters.empty() || !array_.whole_rows()) {
      const auto group_bytes = base::checked_multiply(group_chunks_, array_.chunk_bytes);
      const auto cache_bytes =
          group_bytes ? base::checked_multiply(*group_bytes, std::int64_t{2}) : std::nullopt;
      if (!cache_bytes) {
        throw Error(ErrorCode::unsupported,
                    path_ + ": the chunks of one row of " + name() + " are too large");
      }
      const ChunkCacheSettings cache =
          recommend_cache(array_.num_chunks, array_.chunk_bytes, *cache_bytes);
      cache_slots = cache.rdcc_nslots;
      array_.chunk_cache_bytes = std::min(
          *cache_bytes + static_cast<std::int64_t>(cache_slots * sizeof(void*)), max_cache_bytes_);
    }
    const ListId access(check_id(H5Pcreate(H5P_DATASET_ACCESS), action_, path_));
    check_status(H5Pset_chunk_cache(access.get(), cache_slots,
                                    static_cast<std::size_t>(array_.chunk_cache_bytes), 1.0),
                 action_, path_);
    array_.dataset.reset();
    array_.dataset = open_dataset(file_.file(), array_.name, path_, access.get());
  }

  const Dataset::Impl& file_;
  const std::string& path_;
  StoredArray& array_;
  const std::int64_t max_cache_bytes_;
  const std::string action_;
  const ListId creation_;
  const TypeId type_;
  std::int64_t first_byte_ = 0;
  std::int64_t group_chunks_ = 1;
  bool has_tree_ = false;  // of the index, which is read here
};

}  // namespace

std::string StoredArray::describe_chunk(std::int64_t chunk, const std::string& path) const {
  const std::int64_t first = chunk * stored.chunk_shape[0];
  const std::int64_t last = std::min(first + stored.chunk_shape[0], stored.shape[0]) - 1;
  return "chunk " + std::to_string(chunk) + " (rows " + std::to_string(first) + " to " +
         std::to_string(last) + ") of " + printable(name) + " in " + path;
}

std::string StoredArray::describe_rows(std::int64_t first, std::int64_t last,
                                       const std::string& path) const {
  return "rows " + std::to_string(first) + " to " + std::to_string(last) + " of " +
         printable(name) + " in " + path;
}

Shape stored_shape(const DatasetId& dataset, const std::string& name, const Shape& delivered,
                   const std::string& path) {
  const std::string action = "inspect dataset " + printable(name) + " of";
  const SpaceId space(check_id(H5Dget_space(dataset.get()), action, path));
  const int rank = check_status(H5Sget_simple_extent_ndims(space.get()), action, path);
  if (!std::cmp_equal(rank, delivered.rank() + 1)) return delivered;
  const std::span<const std::int64_t> dims = delivered.dims();
  std::vector<std::int64_t> stored(dims.begin(), dims.end());
  stored.push_back(1);
  return Shape(stored);
}

std::shared_ptr<const StoredArray> open_array(const Dataset::Impl& file, const std::string& name,
                                              const Shape& shape, DType dtype,
                                              std::int64_t max_cache_bytes,
                                              const std::optional<PixelScale>& scale) {
  const auto guard = Library::lock();
  auto array = std::make_shared<StoredArray>();
  array->name = name;
  array->stored.dtype = dtype;
  array->scale = scale;
  array->row_bytes =
      shape.without_first_axis().num_elements() * static_cast<std::int64_t>(size_of(dtype));
  array->dataset = open_dataset(file.file(), name, file.info.path);
  array->stored.shape = stored_shape(array->dataset, name, shape, file.info.path);
  Inspection(file, *array, max_cache_bytes).run();
  return array;
}

}  // namespace chunkio::h5
