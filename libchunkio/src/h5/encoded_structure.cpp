#include "h5/encoded_structure.hpp"

#include <array>
#include <utility>

#include <hdf5.h>

#include <chunkio/version.hpp>

#include "base/uuid.hpp"
#include "h5/attributes.hpp"
#include "h5/deferred_writes.hpp"
#include "h5/description_reader.hpp"
#include "h5/description_writer.hpp"
#include "h5/element_type.hpp"
#include "h5/error_stack.hpp"
#include "h5/handle.hpp"
#include "h5/library.hpp"
#include "h5/schema.hpp"
#include "h5/skeleton_writer.hpp"

namespace chunkio::h5 {
namespace {

GroupId open_images(const FileId& file, const std::string& path) {
  return GroupId(check_id(H5Gopen2(file.get(), kImages, H5P_DEFAULT), "open the images of", path));
}

/// Creates the file, the group and the place of the bytes: one multiple of the alignment behind the
/// little that comes before.
PlacedBytes place_data(int fd, const std::string& path, std::int64_t num_bytes) {
  DeferredWrites writes(fd, path);
  const ListId access = file_access(writes, path);
  check_status(H5Pset_alignment(access.get(), static_cast<hsize_t>(kAlignedBytes),
                                static_cast<hsize_t>(kEncodedOffset)),
               "set the alignment of", path);
  FileId file(
      check_id(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access.get()), "create", path));
  GroupId images(check_id(H5Gcreate2(file.get(), kImages, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT),
                          "create the group of images of", path));
  const PlacedBytes place =
      finish_in_one_run(create_in_one_run(images.get(), encoded::kData, memory_type(DType::uint8),
                                          Shape{num_bytes}, path),
                        path);
  check_status(images.reset(), "close the group of images of", path);
  check_status(file.reset(), "close", path);
  if (place.offset != kEncodedOffset && num_bytes >= kAlignedBytes) {
    throw Error(ErrorCode::hdf5_failed,
                path +
                    ": this version of libhdf5 does not put a dataset where its alignment says; "
                    "use another version");
  }
  writes.apply();
  return place;
}

void describe_images(const GroupId& images, const EncodedTotals& totals, const DatasetSpec& spec,
                     const DatasetStatistics& statistics, const std::string& path) {
  write_text(images.get(), encoded::kEncodingType, encoded::kType, path);
  write_text(images.get(), encoded::kEncodingVersion, encoded::kVersion, path);
  write_number(images.get(), encoded::kMaxHeight, totals.max_height, path);
  write_number(images.get(), encoded::kMaxWidth, totals.max_width, path);
  write_number(images.get(), encoded::kMaxPixels, totals.max_pixels, path);
  DatasetId data(
      check_id(H5Dopen2(images.get(), encoded::kData, H5P_DEFAULT), "open the images of", path));
  write_image_description(data.get(), spec, path);
  write_statistics(data.get(), statistics, path);
  check_status(data.reset(), "describe the images of", path);
}

}  // namespace

EncodedPlaces write_encoded_structure(int fd, const std::string& path, const EncodedTotals& totals,
                                      const DatasetSpec& spec,
                                      const DatasetStatistics& statistics) {
  const auto guard = Library::lock();
  EncodedPlaces places;
  places.data = place_data(fd, path, totals.num_bytes);
  // What follows is mostly small, and of numbers.
  DeferredWrites writes(fd, path, {places.data.offset, places.data.offset + places.data.bytes});
  const ListId access = file_access(writes, path);
  check_status(H5Pset_alignment(access.get(), 1, sizeof(std::int64_t)), "set the alignment of",
               path);
  FileId file(check_id(H5Fopen(path.c_str(), H5F_ACC_RDWR, access.get()), "reopen", path));
  write_root_description(file.get(), spec,
                         {.creator = "chunkio " + std::string(version()),
                          .uuid = base::random_uuid(),
                          .format = encoded::kFormatVersion},
                         path);
  GroupId images = open_images(file, path);
  describe_images(images, totals, spec, statistics, path);
  const auto add = [&](const char* name, DType dtype, const Shape& shape) {
    return finish_in_one_run(create_in_one_run(images.get(), name, memory_type(dtype), shape, path),
                             path);
  };
  places.indptr = add(encoded::kIndptr, DType::int64, Shape{totals.rows + 1});
  places.sizes = add(encoded::kSizes, DType::int32, Shape{totals.rows, 2});
  if (totals.turned) {
    places.orientations = add(encoded::kOrientations, DType::uint8, Shape{totals.rows});
  }
  check_status(images.reset(), "close the group of images of", path);
  for (const FieldData& field : spec.fields) {
    places.fields.push_back(finish_in_one_run(
        create_in_one_run(file.get(), field.info.name, memory_type(field.info.dtype),
                          field.info.row_shape.with_first_axis(totals.rows), path),
        path));
  }
  DatasetId digests = create_in_one_run(file.get(), kSampleDigests, memory_type(DType::uint64),
                                        Shape{totals.rows}, path);
  const std::array<std::string, 1> covers = {std::string(kImages) + "/" + encoded::kData};
  write_covered_names(digests.get(), covers, path);
  places.digests = finish_in_one_run(std::move(digests), path);
  check_status(file.reset(), "close", path);
  writes.apply();
  places.structure = writes.applied();
  return places;
}

PlacedBytes find_encoded_data(const std::string& path) {
  const auto guard = Library::lock();
  const FileId file(check_id(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), "reopen", path));
  const GroupId images = open_images(file, path);
  const DatasetId data(
      check_id(H5Dopen2(images.get(), encoded::kData, H5P_DEFAULT), "open the images of", path));
  return place_of(data, "find the images of", path);
}

}  // namespace chunkio::h5
