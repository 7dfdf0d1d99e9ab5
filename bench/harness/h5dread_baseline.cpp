#include "harness/h5dread_baseline.hpp"

#include "h5/error_stack.hpp"

namespace bench {

using namespace chunkio::h5;

H5DreadBaseline::H5DreadBaseline(const std::string& path, const chunkio::ChunkCacheSettings& cache,
                                 hid_t access)
    : file_(check_id(H5Fopen(path.c_str(), H5F_ACC_RDONLY, access), "open", path)), path_(path) {
  const ListId cached(H5Pcreate(H5P_DATASET_ACCESS));
  check_status(
      H5Pset_chunk_cache(cached.get(), cache.rdcc_nslots, cache.rdcc_nbytes, cache.rdcc_w0), "open",
      path);
  images_ = DatasetId(check_id(H5Dopen2(file_.get(), "images", cached.get()), "open", path));
  space_ = SpaceId(check_id(H5Dget_space(images_.get()), "open", path));
  check_status(H5Sget_simple_extent_dims(space_.get(), one_.data(), nullptr), "open", path);
  one_[0] = 1;
  memory_ = SpaceId(check_id(H5Screate_simple(4, one_.data(), nullptr), "open", path));
}

void H5DreadBaseline::read(std::int64_t row, std::byte* out) {
  const std::array<hsize_t, 4> start{static_cast<hsize_t>(row), 0, 0, 0};
  check_status(H5Sselect_hyperslab(space_.get(), H5S_SELECT_SET, start.data(), nullptr, one_.data(),
                                   nullptr),
               "read", path_);
  check_status(
      H5Dread(images_.get(), H5T_NATIVE_UINT8, memory_.get(), space_.get(), H5P_DEFAULT, out),
      "read", path_);
}

void read_one_by_one(const std::string& path, const chunkio::ChunkCacheSettings& cache,
                     std::span<const std::int64_t> order, std::span<std::byte> ring,
                     std::size_t sample_bytes) {
  H5DreadBaseline images(path, cache);
  const std::size_t ring_rows = ring.size() / sample_bytes;
  for (std::size_t i = 0; i < order.size(); ++i) {
    images.read(order[i], ring.data() + i % ring_rows * sample_bytes);
  }
}

}  // namespace bench
