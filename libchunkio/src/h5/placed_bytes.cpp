#include "h5/placed_bytes.hpp"

#include <array>

#include "h5/attributes.hpp"
#include "h5/error_stack.hpp"

namespace chunkio::h5 {

DatasetId create_in_one_run(hid_t parent, const std::string& name, hid_t type, const Shape& shape,
                            const std::string& path) {
  const std::string action = "create dataset " + printable(name) + " of";
  const ListId creation(check_id(H5Pcreate(H5P_DATASET_CREATE), action, path));
  check_status(H5Pset_layout(creation.get(), H5D_CONTIGUOUS), action, path);
  check_status(H5Pset_alloc_time(creation.get(), H5D_ALLOC_TIME_EARLY), action, path);
  check_status(H5Pset_fill_time(creation.get(), H5D_FILL_TIME_NEVER), action, path);
  // The same input gives the same bytes.
  check_status(H5Pset_obj_track_times(creation.get(), false), action, path);
  const ListId links(check_id(H5Pcreate(H5P_LINK_CREATE), action, path));
  check_status(H5Pset_create_intermediate_group(links.get(), 1), action, path);
  std::array<hsize_t, Shape::kMaxRank> dims{};
  for (std::size_t axis = 0; axis < shape.rank(); ++axis) {
    dims[axis] = static_cast<hsize_t>(shape[axis]);
  }
  const SpaceId space(check_id(
      H5Screate_simple(static_cast<int>(shape.rank()), dims.data(), nullptr), action, path));
  return DatasetId(check_id(
      H5Dcreate2(parent, name.c_str(), type, space.get(), links.get(), creation.get(), H5P_DEFAULT),
      action, path));
}

PlacedBytes place_of(const DatasetId& dataset, const std::string& action, const std::string& path) {
  const hsize_t bytes = H5Dget_storage_size(dataset.get());
  if (bytes == 0) return {};
  const haddr_t offset = H5Dget_offset(dataset.get());
  if (offset == HADDR_UNDEF) throw hdf5_error(action, path);
  return {static_cast<std::int64_t>(offset), static_cast<std::int64_t>(bytes)};
}

PlacedBytes finish_in_one_run(DatasetId dataset, const std::string& path) {
  const PlacedBytes place = place_of(dataset, "find the place of a dataset of", path);
  check_status(dataset.reset(), "finish a dataset of", path);
  return place;
}

}  // namespace chunkio::h5
