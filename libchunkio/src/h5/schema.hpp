/// The vocabulary of the file format (libchunkio/doc/format.md): names, attributes, limits.
#pragma once

#include <algorithm>
#include <cstdint>

namespace chunkio::h5 {

// On-disk values: never change.
inline constexpr std::int64_t kFormatVersion = 2;  ///< Written; all from 1 on are read.
inline constexpr const char* kImages = "images";
inline constexpr const char* kLabels = "labels";
inline constexpr const char* kLabel = "label";  ///< What third-party files call them, too.
inline constexpr const char* kSourceIndex = "source_index";
/// From version 2 on, where it is no field.
inline constexpr const char* kSampleDigests = "sample_digests";
inline constexpr const char* kDigestAlgorithm = "XXH3-64";

// Attributes of the root group.
namespace root_attribute {
inline constexpr const char* kFormat = "chunkio_format";
inline constexpr const char* kCreator = "creator";
inline constexpr const char* kUuid = "uuid";
inline constexpr const char* kSplit = "split";
inline constexpr const char* kOrder = "order";
inline constexpr const char* kSeed = "seed";
inline constexpr const char* kOptions = "options";
inline constexpr const char* kShardIndex = "shard_index";
inline constexpr const char* kShardCount = "shard_count";
inline constexpr const char* kShardFirstRow = "shard_first_row";
inline constexpr const char* kShardTotalRows = "shard_total_rows";
inline constexpr const char* kShardSet = "shard_set";
inline constexpr const char* kShardPattern = "shard_pattern";
inline constexpr const char* kCacheSlots = "rdcc_nslots";
inline constexpr const char* kCacheBytes = "rdcc_nbytes";
inline constexpr const char* kCacheW0 = "rdcc_w0";
}  // namespace root_attribute

// Attributes of the images.
namespace image_attribute {
inline constexpr const char* kLayout = "layout";
inline constexpr const char* kChannelOrder = "channel_order";
inline constexpr const char* kClassNames = "class_names";
inline constexpr const char* kAttributeNames = "attribute_names";
inline constexpr const char* kMean = "mean";
inline constexpr const char* kStd = "std";
inline constexpr const char* kMeanPictureStd = "mean_picture_std";
inline constexpr const char* kSourceSizeRange = "source_size_range";
inline constexpr const char* kSourceSizes = "source_sizes";
inline constexpr const char* kStatisticsDefinition = "statistics_definition";
inline constexpr const char* kClassCounts = "class_counts";
// Of version 1.
inline constexpr const char* kChunkDigests = "chunk_digests";
inline constexpr const char* kDigestAlgorithm = "digest_algorithm";
}  // namespace image_attribute

// Attributes of the digests of samples.
namespace digest_attribute {
inline constexpr const char* kAlgorithm = "algorithm";
inline constexpr const char* kCovers = "covers";
}  // namespace digest_attribute

inline constexpr const char* kStatisticsText =
    "mean and population standard deviation of pixel value / 255 over all pixels of all images, "
    "one number a channel; mean_picture_std: mean over all images of the population standard "
    "deviation of pixel value / 255 within each";

// Of a file with a sparse matrix (CSR), as anndata has them: groups, datasets and attributes.
namespace sparse {
inline constexpr std::int64_t kFormatVersion = 3;  ///< Of such files: no reader of 2 knows them.
inline constexpr const char* kMatrix = "X";
inline constexpr const char* kRows = "obs";
inline constexpr const char* kColumns = "var";
inline constexpr const char* kIndptr = "indptr";
inline constexpr const char* kIndices = "indices";
inline constexpr const char* kData = "data";
inline constexpr const char* kNames = "_index";
// Of a column that numbers texts (categorical).
inline constexpr const char* kCodes = "codes";
inline constexpr const char* kCategories = "categories";
// Of a group of texts, some of which may be missing (nullable-string-array).
inline constexpr const char* kTextValues = "values";
inline constexpr const char* kTextMask = "mask";
inline constexpr const char* kEncodingType = "encoding-type";
inline constexpr const char* kEncodingVersion = "encoding-version";
inline constexpr const char* kShape = "shape";
inline constexpr const char* kIndexAttribute = "_index";
inline constexpr const char* kColumnOrder = "column-order";
/// More columns without names have no `var`: it would only count them.
inline constexpr std::int64_t kMaxNumberedColumns = std::int64_t{1} << 24;
}  // namespace sparse

// Of a file with encoded images: a group in the place of the image dataset.
namespace encoded {
inline constexpr std::int64_t kFormatVersion = 4;  ///< Of such files: no reader of 3 knows them.
inline constexpr const char* kEncodingType = "encoding-type";
inline constexpr const char* kEncodingVersion = "encoding-version";
inline constexpr const char* kType = "encoded-images";
inline constexpr const char* kVersion = "1";
inline constexpr const char* kData = "data";
inline constexpr const char* kIndptr = "indptr";
inline constexpr const char* kSizes = "sizes";
inline constexpr const char* kOrientations = "orientations";
inline constexpr const char* kMaxHeight = "max_height";
inline constexpr const char* kMaxWidth = "max_width";
inline constexpr const char* kMaxPixels = "max_pixels";
}  // namespace encoded

// The most a file may claim.
inline constexpr std::int64_t kMaxSamples = std::int64_t{1} << 40;
inline constexpr std::int64_t kMaxSampleBytes = std::int64_t{1} << 30;
/// Entries of a list in an attribute, whatever the number of samples.
inline constexpr std::int64_t kMaxEntries = std::int64_t{1} << 20;
inline constexpr std::int64_t kMaxNameBytes = 4096;
inline constexpr std::int64_t kMaxNamesBytes = std::int64_t{1} << 28;
inline constexpr std::int64_t kMaxTextBytes = std::int64_t{1} << 24;

/// Entries that a list of classes may have in a dataset of `num_samples`.
[[nodiscard]] constexpr std::int64_t max_classes(std::int64_t num_samples) noexcept {
  return std::max(kMaxEntries, num_samples);
}

}  // namespace chunkio::h5
