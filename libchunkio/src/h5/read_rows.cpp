#include "h5/read_rows.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <vector>

#include <hdf5.h>

#include "base/checked_math.hpp"
#include "base/element_fill.hpp"
#include "h5/chunk_check.hpp"
#include "h5/decoded_rows.hpp"
#include "h5/element_type.hpp"
#include "h5/error_stack.hpp"
#include "h5/library.hpp"

namespace chunkio::h5 {
namespace {

void check_range(std::int64_t size, std::int64_t first, std::int64_t count, const std::string& name,
                 const std::string& path) {
  if (first < 0 || count < 0 || first > size || count > size - first) {
    throw Error(ErrorCode::invalid_argument,
                "rows [" + std::to_string(first) + ", " + std::to_string(first) + " + " +
                    std::to_string(count) + ") do not lie in the " + std::to_string(size) +
                    " rows of " + printable(name) + " in " + path);
  }
}

/// As a number: that of a damaged file need not be an enumerator, which must not even be loaded, as
/// std::bit_cast() does.
template <typename Enumeration>
int stored_number(const Enumeration& stored) {
  int number = 0;
  static_assert(sizeof number == sizeof stored);
  std::memcpy(&number, &stored, sizeof number);
  return number;
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
  const int fill_number = stored_number(fill);
  const int allocation_number = stored_number(allocation);
  // Files of DatasetWriter: nothing is missing.
  if (fill_number != H5D_FILL_TIME_NEVER || allocation_number == H5D_ALLOC_TIME_EARLY) return;
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

void check_request(std::int64_t num_rows, std::int64_t first, std::int64_t count,
                   std::size_t row_bytes, std::size_t out_bytes, const std::string& name,
                   const std::string& path) {
  check_range(num_rows, first, count, name, path);
  const auto expected = base::checked_multiply(static_cast<std::size_t>(count), row_bytes);
  if (!expected || out_bytes != *expected) {
    throw Error(ErrorCode::invalid_argument,
                std::to_string(count) + " rows of " + printable(name) + " in " + path + " take " +
                    std::to_string(row_bytes) + " bytes each, the buffer has " +
                    std::to_string(out_bytes));
  }
}

void read_rows(const StoredArray& array, std::int64_t first, std::int64_t count,
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

void forget_rows(const StoredArray& array) noexcept {
  // If that fails, reading does, too.
  static_cast<void>(H5Drefresh(array.dataset.get()));
}

std::int64_t scaling_bytes(const StoredArray& array) noexcept {
  if (!array.scale) return 0;
  return rows_to_scale(array) * array.row_bytes * static_cast<std::int64_t>(sizeof(double));
}

}  // namespace chunkio::h5
