#include "h5/link_writer.hpp"

#include <array>
#include <vector>

#include <hdf5.h>

#include <chunkio/chunk_layout.hpp>
#include <chunkio/dataset_writer.hpp>

#include "base/uuid.hpp"
#include "h5/attributes.hpp"
#include "h5/dataset_impl.hpp"
#include "h5/deferred_writes.hpp"
#include "h5/description_writer.hpp"
#include "h5/element_type.hpp"
#include "h5/error_stack.hpp"
#include "h5/file_contents.hpp"
#include "h5/handle.hpp"
#include "h5/library.hpp"
#include "h5/schema.hpp"
#include "h5/skeleton_writer.hpp"

namespace chunkio::h5 {
namespace {

using Extent = std::vector<hsize_t>;

/// libhdf5 takes %b in a name for a number of its own.
std::string escaped(const std::string& path) {
  std::string text;
  for (const char c : path) text += c == '%' ? std::string("%%") : std::string(1, c);
  return text;
}

SpaceId space_of(const Extent& dims, const std::string& action, const std::string& path) {
  return SpaceId(check_id(H5Screate_simple(static_cast<int>(dims.size()), dims.data(), nullptr),
                          action, path));
}

/// Creates the dataset `name`, whose rows are those of the dataset of that name in each file.
/// \param first  the first of the files: the others are stored like it.
DatasetId create_virtual(const FileId& file, const FieldInfo& field, const Dataset::Impl& first,
                         std::span<const LinkedFile> files, const std::string& path) {
  const std::string& name = field.name;
  const std::string action = "create virtual dataset " + printable(name) + " of";
  const Shape stored =
      stored_shape(open_dataset(first.file(), name, first.info.path), name,
                   field.row_shape.with_first_axis(first.info.num_samples), first.info.path);
  Extent dims;
  for (const std::int64_t dim : stored.dims()) dims.push_back(static_cast<hsize_t>(dim));
  dims[0] = 0;
  Extent part = dims;
  for (const LinkedFile& linked : files) dims[0] += static_cast<hsize_t>(linked.num_rows);
  const SpaceId whole = space_of(dims, action, path);
  const ListId creation(check_id(H5Pcreate(H5P_DATASET_CREATE), action, path));
  check_status(H5Pset_obj_track_times(creation.get(), false), action, path);
  Extent start(dims.size(), 0);
  for (const LinkedFile& linked : files) {
    part[0] = static_cast<hsize_t>(linked.num_rows);
    const SpaceId source = space_of(part, action, path);
    check_status(H5Sselect_hyperslab(whole.get(), H5S_SELECT_SET, start.data(), nullptr,
                                     part.data(), nullptr),
                 action, path);
    check_status(H5Pset_virtual(creation.get(), whole.get(), escaped(linked.path).c_str(),
                                escaped(name).c_str(), source.get()),
                 action, path);
    start[0] += part[0];
  }
  const ListId links(check_id(H5Pcreate(H5P_LINK_CREATE), action, path));
  check_status(H5Pset_create_intermediate_group(links.get(), 1), action, path);
  return DatasetId(check_id(H5Dcreate2(file.get(), name.c_str(), memory_type(field.dtype),
                                       whole.get(), links.get(), creation.get(), H5P_DEFAULT),
                            action, path));
}

DatasetSpec description_of(const DatasetInfo& info) {
  return {.num_samples = info.num_samples,
          .height = info.height,
          .width = info.width,
          .channels = info.channels,
          .layout = info.layout,
          .channel_order = info.channel_order,
          .class_names = info.class_names,
          .attribute_names = info.attribute_names,
          .split = info.split,
          .order = info.order,
          .seed = info.seed.value_or(0),
          .options_json = info.options_json};
}

void write_descriptions(const FileId& file, const DatasetId& images, const DatasetInfo& info,
                        const std::string& path) {
  if (!info.format_version) {
    if (!info.has_images()) return;
    write_text(images.get(), image_attribute::kLayout, std::string(to_string(info.layout)), path);
    return;
  }
  const DatasetSpec spec = description_of(info);
  write_root_description(file.get(), spec,
                         {info.creator, base::random_uuid(),
                          recommend_cache(info.num_chunks, info.stored.chunk_shape.num_elements())},
                         path);
  write_image_description(images.get(), spec, path);
  DatasetStatistics statistics{.class_counts = info.class_counts,
                               .mean_picture_std = info.mean_picture_std,
                               .source_sizes = info.source_sizes};
  if (info.statistics) statistics.channels = *info.statistics;
  write_statistics(images.get(), statistics, path);
}

}  // namespace

void write_link(int fd, const std::string& path, const Dataset::Impl& dataset,
                std::span<const LinkedFile> files, const std::string& pattern) {
  const auto guard = Library::lock();
  const DatasetInfo& info = dataset.info;
  const Dataset::Impl& first = *dataset.shards.front();
  DeferredWrites writes(fd, path);
  const ListId access = file_access(writes, path);
  FileId file(
      check_id(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access.get()), "create", path));
  DatasetId images = create_virtual(
      file, {info.leading.name, info.stored.dtype, info.stored.shape.without_first_axis()}, first,
      files, path);
  if (info.labels) (void)create_virtual(file, *info.labels, first, files, path);
  for (const FieldInfo& field : info.fields) {
    (void)create_virtual(file, field, first, files, path);
  }
  write_descriptions(file, images, info, path);
  write_text(file.get(), root_attribute::kShardPattern, pattern, path);
  check_status(images.reset(), "finish", path);
  check_status(file.reset(), "finish", path);
  writes.apply();
}

}  // namespace chunkio::h5
