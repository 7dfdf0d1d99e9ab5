/// The vocabulary of the file format (libchunkio/doc/format.md): names, element types, attributes.
///
/// File contents are untrusted: sizes are checked before memory is taken. All functions are called
/// while Library::lock() is held. `path` is the file's name, for messages.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <hdf5.h>

#include <chunkio/dataset.hpp>
#include <chunkio/tensor.hpp>

namespace chunkio::h5 {

// On-disk values: never change.
inline constexpr std::int64_t kFormatVersion = 2;  ///< Written; all from 1 on are read.
inline constexpr const char* kImages = "images";
inline constexpr const char* kLabels = "labels";
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

// The most a file may claim.
inline constexpr std::int64_t kMaxSamples = std::int64_t{1} << 40;
inline constexpr std::int64_t kMaxSampleBytes = std::int64_t{1} << 30;
/// Entries of a list in an attribute, whatever the number of samples.
inline constexpr std::int64_t kMaxEntries = std::int64_t{1} << 20;
inline constexpr std::int64_t kMaxNameBytes = 4096;
inline constexpr std::int64_t kMaxNamesBytes = std::int64_t{1} << 28;
inline constexpr std::int64_t kMaxTextBytes = std::int64_t{1} << 24;

/// The element type of an HDF5 type, if it is one of the ten (any byte order; libhdf5 converts). Of
/// an enumeration, such as h5py's bool, that of its values.
[[nodiscard]] std::optional<DType> element_type(hid_t type);
/// The type in memory, native byte order. Not to be closed.
[[nodiscard]] hid_t memory_type(DType dtype);
/// "uint8", "compound", "string", ...
[[nodiscard]] std::string describe_type(hid_t type);

/// Gives back what libhdf5 allocated for variable-length elements when it read `data`.
void reclaim_variable_length(hid_t type, hid_t space, void* data) noexcept;

/// Reads attributes of one object.
class AttributeReader {
 public:
  /// \param object_name  for messages: "images", or "the root group".
  AttributeReader(hid_t object, std::string object_name, std::string path);

  /// A string, fixed or of variable length, trailing zeros removed; absent if there is no such
  /// attribute.
  /// \throws Error corrupt_data if it is something else or longer than kMaxTextBytes.
  [[nodiscard]] std::optional<std::string> text(const char* name) const;
  /// An array of strings.
  /// \throws Error corrupt_data: no strings, more than `most` of them, or too long.
  [[nodiscard]] std::optional<std::vector<std::string>> texts(
      const char* name, std::int64_t most = kMaxEntries) const;
  /// Numbers, converted to T (int64, uint64 or double); a scalar is one number.
  /// \throws Error corrupt_data: not numeric, or not as many as expected.
  template <class T>
  [[nodiscard]] std::optional<std::vector<T>> numbers(const char* name, std::int64_t count) const;
  /// \param most  how many there may be. \throws as numbers().
  template <class T>
  [[nodiscard]] std::optional<std::vector<T>> up_to(std::int64_t most, const char* name) const;

  /// "attribute NAME of OBJECT in PATH WHY", corrupt_data.
  [[nodiscard]] Error corrupt(const char* name, const std::string& why) const;

 private:
  hid_t object_;
  std::string object_name_;
  std::string path_;
};

/// Strings are stored with a fixed length, UTF-8, padded with zeros, since variable-length strings
/// need a global heap that nothing checksums.
/// \throws Error hdf5_failed.
void write_text(hid_t object, const char* name, const std::string& text, const std::string& path);
void write_texts(hid_t object, const char* name, std::span<const std::string> texts,
                 const std::string& path);
/// T is int64, uint64 or double.
/// \throws Error hdf5_failed.
template <class T>
void write_number(hid_t object, const char* name, T value, const std::string& path);
template <class T>
void write_numbers(hid_t object, const char* name, std::span<const T> values,
                   const std::string& path);

/// Entries that a list of classes may have in a dataset of `num_samples`.
[[nodiscard]] constexpr std::int64_t max_classes(std::int64_t num_samples) noexcept {
  return std::max(kMaxEntries, num_samples);
}

/// Whether a file of `num_rows` rows can be this part of a larger dataset.
[[nodiscard]] bool is_possible(const ShardInfo& shard, std::int64_t num_rows) noexcept;

/// Fills what a file of this format says about itself; leaves third-party files alone.
/// \pre info.path, images_path, num_samples, channels, num_chunks are set.
/// \throws Error corrupt_data (names the attribute), unsupported (a later format version).
void read_description(hid_t file, hid_t images, DatasetInfo& info);

/// What the dataset of sample digests says about itself: the datasets that they cover, in order;
/// none if the algorithm is not known. \throws Error corrupt_data.
[[nodiscard]] std::vector<std::string> read_covered_names(hid_t digests, const std::string& path);
/// The counterpart. \throws Error hdf5_failed.
void write_covered_names(hid_t digests, std::span<const std::string> names,
                         const std::string& path);

}  // namespace chunkio::h5
