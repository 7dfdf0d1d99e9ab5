/// An array of an .npz file, its elements one behind the other (NumPy's format 1.0 to 3.0).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <chunkio/tensor.hpp>

#include "h5pack/sparse/zip_file.hpp"

namespace h5pack {

class NpyArray {
 public:
  /// Reads the header. \param name  without ".npy". \param archive  must outlive this.
  /// \throws Error corrupt_data (also: the file in the archive has another size than the array);
  ///         unsupported: more than one axis, or big-endian elements.
  NpyArray(const ZipFile& archive, const std::string& name);

  [[nodiscard]] std::int64_t size() const noexcept { return size_; }
  /// The element type; of bool that of its bytes. \throws Error unsupported: not one of the ten.
  [[nodiscard]] chunkio::DType dtype() const;

  /// The next whole numbers. \throws Error corrupt_data: fractions, or beyond int64; as ZipStream.
  void read_integers(std::span<std::int64_t> out);
  /// The next numbers, encoded for `dtype`. \throws the same; corrupt_data: one does not fit.
  void read_values(std::span<std::uint64_t> out, chunkio::DType dtype);
  /// All of it, as text of an array of bytes or code points. \pre short.
  [[nodiscard]] std::string read_text();

 private:
  void read_header();
  [[nodiscard]] std::span<const std::byte> read_block(std::size_t count, std::size_t element_bytes);

  const ZipFile& archive_;
  std::string name_;
  ZipStream stream_;
  std::string descr_;  // NumPy's: "<f4", "|b1", "|S3".
  std::int64_t size_ = 0;
  std::int64_t done_ = 0;
  std::vector<std::byte> block_;
};

}  // namespace h5pack
