#include "h5/decoded_rows.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include <chunkio/error.hpp>

#include "base/element_fill.hpp"
#include "h5/chunk_reader.hpp"
#include "h5/element_type.hpp"
#include "h5/error_stack.hpp"

namespace chunkio::h5 {
namespace {

/// Copies a box of elements between two row-major arrays. Trailing axes that neither cuts are one
/// run of bytes.
class BoxCopy {
 public:
  /// \param chunk, row  the arrays; sizes along axis 0 do not matter.
  BoxCopy(const Shape& chunk, const Shape& row, std::size_t element_bytes) {
    std::size_t last = chunk.rank();
    while (last > 1 && chunk[last - 1] == row[last - 1]) {
      --last;
      element_bytes *= static_cast<std::size_t>(row[last]);
    }
    run_axis_ = last - 1;
    run_bytes_ = element_bytes;
    std::size_t from = element_bytes;
    std::size_t to = element_bytes;
    for (std::size_t axis = last; axis-- > 0;) {
      from_stride_[axis] = from;
      to_stride_[axis] = to;
      from *= static_cast<std::size_t>(chunk[axis]);
      to *= static_cast<std::size_t>(row[axis]);
    }
  }

  [[nodiscard]] std::size_t from_stride(std::size_t axis) const { return from_stride_[axis]; }
  [[nodiscard]] std::size_t to_stride(std::size_t axis) const { return to_stride_[axis]; }
  /// Axes from there on are uncut, and have no stride.
  [[nodiscard]] std::size_t num_axes() const { return run_axis_ + 1; }

  void copy(const std::byte* from, std::byte* to, std::span<const std::int64_t> box,
            std::size_t axis = 0) const {
    const auto count = static_cast<std::size_t>(box[axis]);
    if (axis == run_axis_) {
      std::memcpy(to, from, count * run_bytes_);
      return;
    }
    for (std::size_t i = 0; i < count; ++i) {
      copy(from + i * from_stride_[axis], to + i * to_stride_[axis], box, axis + 1);
    }
  }

 private:
  std::array<std::size_t, Shape::kMaxRank> from_stride_{};
  std::array<std::size_t, Shape::kMaxRank> to_stride_{};
  std::size_t run_axis_ = 0;
  std::size_t run_bytes_ = 0;
};

/// The fill value as the file has it: zeros if it has none.
std::vector<std::byte> stored_fill_value(const StoredArray& array, hid_t type,
                                         const std::string& action, const std::string& path) {
  std::vector<std::byte> element(H5Tget_size(type));
  const ListId creation(check_id(H5Dget_create_plist(array.dataset.get()), action, path));
  H5D_fill_value_t defined = H5D_FILL_VALUE_UNDEFINED;
  check_status(H5Pfill_value_defined(creation.get(), &defined), action, path);
  if (defined == H5D_FILL_VALUE_USER_DEFINED) {
    check_status(H5Pget_fill_value(creation.get(), type, element.data()), action, path);
  }
  return element;
}

/// What was not found has no storage: the index can be read, and does not list it. Some lookups of
/// libhdf5 fail for both.
void check_missing(const DatasetId& dataset, const ChunkStart& start, const std::string& action,
                   const std::string& path) {
  haddr_t place = HADDR_UNDEF;
  hsize_t bytes = 0;
  unsigned int mask = 0;
  check_status(H5Dget_chunk_info_by_coord(dataset.get(), start.data(), &mask, &place, &bytes),
               action, path);
  if (place != HADDR_UNDEF) {
    throw Error(ErrorCode::corrupt_data,
                path + ": a chunk that libhdf5 lists cannot be found; the file is damaged");
  }
}

}  // namespace

herr_t read_decoded_rows(const StoredArray& array, DType dtype, std::int64_t first,
                         std::int64_t count, std::span<std::byte> out, hid_t transfer,
                         const std::string& path) {
  const std::string action = "read " + printable(array.name) + " of";
  const Shape& shape = array.stored.shape;
  const Shape& chunk_shape = array.stored.chunk_shape;
  const TypeId type(check_id(H5Dget_type(array.dataset.get()), action, path));
  // Elements are delivered as wide as they are or wider, so there is room for them as stored.
  const std::size_t stored_bytes = H5Tget_size(type.get());
  const auto row_elements = static_cast<std::int64_t>(shape.without_first_axis().num_elements());
  const std::int64_t row_bytes = row_elements * static_cast<std::int64_t>(size_of(dtype));
  const std::vector<std::byte> fill = stored_fill_value(array, type.get(), action, path);
  const BoxCopy boxes(chunk_shape, shape, stored_bytes);
  ChunkReader reader(array, path);
  for (std::int64_t chunk = first / chunk_shape[0]; chunk * chunk_shape[0] < first + count;
       ++chunk) {
    const std::int64_t begin = std::max(first, chunk * chunk_shape[0]);
    const std::int64_t end = std::min(first + count, (chunk + 1) * chunk_shape[0]);
    const auto rows = out.subspan(static_cast<std::size_t>((begin - first) * row_bytes),
                                  static_cast<std::size_t>((end - begin) * row_bytes));
    ChunkStart start{static_cast<hsize_t>(chunk * chunk_shape[0])};
    do {
      std::optional<std::span<const std::byte>> raw;
      try {
        raw = reader.read(start);
      } catch (const DamagedChunkError& error) {
        throw Error(ErrorCode::corrupt_data, array.describe_chunk(chunk, path) +
                                                 " is damaged: " + error.what() +
                                                 "; copy or download the file again");
      }
      if (!raw) {
        check_missing(array.dataset, start, action, path);
        base::fill_elements(reader.room(), fill);
        raw = reader.room();
      }
      std::array<std::int64_t, Shape::kMaxRank> box{end - begin};
      std::size_t to = 0;
      for (std::size_t axis = 1; axis < boxes.num_axes(); ++axis) {
        const auto at = static_cast<std::int64_t>(start[axis]);
        box[axis] = std::min(chunk_shape[axis], shape[axis] - at);
        to += static_cast<std::size_t>(at) * boxes.to_stride(axis);
      }
      const auto from =
          static_cast<std::size_t>(begin - chunk * chunk_shape[0]) * boxes.from_stride(0);
      boxes.copy(raw->data() + from, rows.data() + to, box);
    } while (advance(start, array));
    if (array.native_elements && dtype == array.stored.dtype) continue;
    const herr_t status = H5Tconvert(type.get(), memory_type(dtype),
                                     static_cast<std::size_t>((end - begin) * row_elements),
                                     rows.data(), nullptr, transfer);
    if (status < 0) return status;
  }
  return 0;
}

}  // namespace chunkio::h5
