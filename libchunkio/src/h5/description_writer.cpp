#include "h5/description_writer.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "h5/attributes.hpp"
#include "h5/schema.hpp"

namespace chunkio::h5 {
namespace {

void write_source_sizes(hid_t images, const SourceSizes& sizes, const std::string& path) {
  const std::array<std::int64_t, 4> range = {sizes.min_height, sizes.max_height, sizes.min_width,
                                             sizes.max_width};
  write_numbers(images, image_attribute::kSourceSizeRange, std::span<const std::int64_t>(range),
                path);
  std::vector<std::int64_t> triples;
  for (const auto& [height, width, count] : sizes.most_frequent) {
    triples.insert(triples.end(), {height, width, count});
  }
  write_numbers(images, image_attribute::kSourceSizes, std::span<const std::int64_t>(triples),
                path);
}

}  // namespace

void write_root_description(hid_t root, const DatasetSpec& spec, const FileIdentity& file,
                            const std::string& path) {
  write_number(root, root_attribute::kFormat, file.format, path);
  write_text(root, root_attribute::kCreator, file.creator, path);
  write_text(root, root_attribute::kUuid, file.uuid, path);
  write_text(root, root_attribute::kSplit, spec.split, path);
  write_text(root, root_attribute::kOrder, spec.order, path);
  write_number(root, root_attribute::kSeed, spec.seed, path);
  write_text(root, root_attribute::kOptions, spec.options_json, path);
  if (file.cache) {
    write_number(root, root_attribute::kCacheSlots, file.cache->rdcc_nslots, path);
    write_number(root, root_attribute::kCacheBytes, file.cache->rdcc_nbytes, path);
    write_number(root, root_attribute::kCacheW0, file.cache->rdcc_w0, path);
  }
  write_shard(root, spec.shard, path);
}

void write_shard(hid_t root, const std::optional<ShardInfo>& shard, const std::string& path) {
  if (!shard) return;
  write_number(root, root_attribute::kShardIndex, shard->index, path);
  write_number(root, root_attribute::kShardCount, shard->count, path);
  write_number(root, root_attribute::kShardFirstRow, shard->first_row, path);
  write_number(root, root_attribute::kShardTotalRows, shard->total_rows, path);
  write_text(root, root_attribute::kShardSet, shard->set, path);
}

void write_image_description(hid_t images, const DatasetSpec& spec, const std::string& path) {
  write_text(images, image_attribute::kLayout, std::string(to_string(spec.layout)), path);
  write_text(images, image_attribute::kChannelOrder, spec.channel_order, path);
  if (!spec.class_names.empty()) {
    write_texts(images, image_attribute::kClassNames, spec.class_names, path);
  }
  if (!spec.attribute_names.empty()) {
    write_texts(images, image_attribute::kAttributeNames, spec.attribute_names, path);
  }
}

void write_statistics(hid_t images, const DatasetStatistics& statistics, const std::string& path) {
  const auto& [mean, std] = statistics.channels;
  // Readers divide by std: a constant channel has none to offer.
  if (!std.empty() && std::all_of(std.begin(), std.end(), [](double v) { return v > 0; })) {
    write_text(images, image_attribute::kStatisticsDefinition, kStatisticsText, path);
    write_numbers(images, image_attribute::kMean, std::span<const double>(mean), path);
    write_numbers(images, image_attribute::kStd, std::span<const double>(std), path);
    if (!statistics.mean_picture_std.empty()) {
      write_numbers(images, image_attribute::kMeanPictureStd,
                    std::span<const double>(statistics.mean_picture_std), path);
    }
  }
  if (statistics.source_sizes) write_source_sizes(images, *statistics.source_sizes, path);
  if (!statistics.class_counts.empty()) {
    write_numbers(images, image_attribute::kClassCounts,
                  std::span<const std::int64_t>(statistics.class_counts), path);
  }
}

}  // namespace chunkio::h5
