/// The usual way to read HDF5: a call for each image.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include <hdf5.h>

#include <chunkio/chunk_layout.hpp>

#include "h5/handle.hpp"

namespace bench {

/// The images of a file, open for one H5Dread a sample with a chunk cache of its own, which is
/// empty at first.
class H5DreadBaseline {
 public:
  /// \param access  a file access list of libhdf5's, or its default.
  /// \throws chunkio::Error.
  H5DreadBaseline(const std::string& path, const chunkio::ChunkCacheSettings& cache,
                  hid_t access = H5P_DEFAULT);

  /// Reads a row to `out`, as many bytes as a sample has. \throws chunkio::Error.
  void read(std::int64_t row, std::byte* out);

 private:
  chunkio::h5::FileId file_;  // closed last
  std::string path_;
  chunkio::h5::DatasetId images_;
  chunkio::h5::SpaceId space_;
  chunkio::h5::SpaceId memory_;
  std::array<hsize_t, 4> one_{};  // shape of one sample's selection
};

/// Reads rows in the given order, each to its place in the ring, in a file opened anew.
void read_one_by_one(const std::string& path, const chunkio::ChunkCacheSettings& cache,
                     std::span<const std::int64_t> order, std::span<std::byte> ring,
                     std::size_t sample_bytes);

}  // namespace bench
