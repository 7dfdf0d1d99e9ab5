#include "one_by_one.hpp"

#include <hdf5.h>

#include "hdf5_check.hpp"

namespace bench {

void read_one_by_one(const std::string& path, const chunkio::ChunkCacheSettings& cache,
                     std::span<const std::int64_t> order, std::span<std::byte> ring,
                     std::size_t sample_bytes) {
  const hid_t file = check_hdf5(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), "H5Fopen");
  const hid_t access = check_hdf5(H5Pcreate(H5P_DATASET_ACCESS), "H5Pcreate");
  check_hdf5(H5Pset_chunk_cache(access, cache.rdcc_nslots, cache.rdcc_nbytes, cache.rdcc_w0),
             "H5Pset_chunk_cache");
  const hid_t images = check_hdf5(H5Dopen2(file, "images", access), "H5Dopen2");
  const hid_t space = check_hdf5(H5Dget_space(images), "H5Dget_space");
  hsize_t count[4] = {};
  check_hdf5(H5Sget_simple_extent_dims(space, count, nullptr), "H5Sget_simple_extent_dims");
  count[0] = 1;
  const hid_t memory = check_hdf5(H5Screate_simple(4, count, nullptr), "H5Screate_simple");
  const std::size_t ring_rows = ring.size() / sample_bytes;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const hsize_t start[4] = {static_cast<hsize_t>(order[i]), 0, 0, 0};
    check_hdf5(H5Sselect_hyperslab(space, H5S_SELECT_SET, start, nullptr, count, nullptr),
               "H5Sselect_hyperslab");
    check_hdf5(H5Dread(images, H5T_NATIVE_UINT8, memory, space, H5P_DEFAULT,
                       ring.data() + i % ring_rows * sample_bytes),
               "H5Dread");
  }
  H5Sclose(memory);
  H5Sclose(space);
  H5Dclose(images);
  H5Pclose(access);
  H5Fclose(file);
}

}  // namespace bench
