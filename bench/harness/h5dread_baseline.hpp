/// The usual way to read HDF5: a call for each image.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include <chunkio/chunk_layout.hpp>

namespace bench {

/// The images of a file, open for one H5Dread a sample with a chunk cache of its own, which is
/// empty at first.
class H5DreadBaseline {
 public:
  /// \param access  a file access list of libhdf5's, or its default.
  /// \throws std::runtime_error.
  H5DreadBaseline(const std::string& path, const chunkio::ChunkCacheSettings& cache,
                  std::int64_t access = 0);
  H5DreadBaseline(const H5DreadBaseline&) = delete;
  H5DreadBaseline& operator=(const H5DreadBaseline&) = delete;
  ~H5DreadBaseline();

  /// Reads a row to `out`, as many bytes as a sample has. \throws std::runtime_error.
  void read(std::int64_t row, std::byte* out);

 private:
  struct Ids;

  std::unique_ptr<Ids> ids_;
  std::array<std::uint64_t, 4> one_{};  // shape of one sample's selection
};

/// Reads rows in the given order, each to its place in the ring, in a file opened anew.
void read_one_by_one(const std::string& path, const chunkio::ChunkCacheSettings& cache,
                     std::span<const std::int64_t> order, std::span<std::byte> ring,
                     std::size_t sample_bytes);

}  // namespace bench
