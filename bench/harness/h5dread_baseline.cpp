#include "harness/h5dread_baseline.hpp"

#include <algorithm>
#include <iterator>

#include <hdf5.h>

#include "h5/handle.hpp"
#include "harness/hdf5_check.hpp"

namespace bench {

static_assert(H5P_DEFAULT == 0 && sizeof(hid_t) == sizeof(std::int64_t));

struct H5DreadBaseline::Ids {
  chunkio::h5::FileId file;  // closed last
  chunkio::h5::DatasetId images;
  chunkio::h5::SpaceId space;
  chunkio::h5::SpaceId memory;
};

H5DreadBaseline::H5DreadBaseline(const std::string& path, const chunkio::ChunkCacheSettings& cache,
                                 std::int64_t access)
    : ids_(std::make_unique<Ids>()) {
  using namespace chunkio::h5;
  ids_->file = FileId(check_hdf5(H5Fopen(path.c_str(), H5F_ACC_RDONLY, access), "H5Fopen"));
  const ListId cached(check_hdf5(H5Pcreate(H5P_DATASET_ACCESS), "H5Pcreate"));
  check_hdf5(H5Pset_chunk_cache(cached.get(), cache.rdcc_nslots, cache.rdcc_nbytes, cache.rdcc_w0),
             "H5Pset_chunk_cache");
  ids_->images =
      DatasetId(check_hdf5(H5Dopen2(ids_->file.get(), "images", cached.get()), "H5Dopen2"));
  ids_->space = SpaceId(check_hdf5(H5Dget_space(ids_->images.get()), "H5Dget_space"));
  hsize_t shape[4] = {};
  check_hdf5(H5Sget_simple_extent_dims(ids_->space.get(), shape, nullptr),
             "H5Sget_simple_extent_dims");
  shape[0] = 1;
  std::copy(std::begin(shape), std::end(shape), one_.begin());
  ids_->memory = SpaceId(check_hdf5(H5Screate_simple(4, shape, nullptr), "H5Screate_simple"));
}

H5DreadBaseline::~H5DreadBaseline() = default;

void H5DreadBaseline::read(std::int64_t row, std::byte* out) {
  const hsize_t count[4] = {one_[0], one_[1], one_[2], one_[3]};
  const hsize_t start[4] = {static_cast<hsize_t>(row), 0, 0, 0};
  check_hdf5(H5Sselect_hyperslab(ids_->space.get(), H5S_SELECT_SET, start, nullptr, count, nullptr),
             "H5Sselect_hyperslab");
  check_hdf5(H5Dread(ids_->images.get(), H5T_NATIVE_UINT8, ids_->memory.get(), ids_->space.get(),
                     H5P_DEFAULT, out),
             "H5Dread");
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
