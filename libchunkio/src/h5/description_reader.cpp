#include "h5/description_reader.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <utility>

#include <chunkio/dataset.hpp>

#include "h5/attributes.hpp"
#include "h5/error_stack.hpp"
#include "h5/handle.hpp"
#include "h5/schema.hpp"
#include "h5/source_sizes.hpp"

namespace chunkio::h5 {
namespace {

bool all_finite(std::span<const double> values) {
  return std::all_of(values.begin(), values.end(), [](double v) { return std::isfinite(v); });
}

std::optional<SourceSizes> read_source_sizes(const AttributeReader& attributes,
                                             std::int64_t num_samples) {
  const auto range = attributes.numbers<std::int64_t>(image_attribute::kSourceSizeRange, 4);
  const auto triples = attributes.up_to<std::int64_t>(kMaxEntries, image_attribute::kSourceSizes);
  if (!range && !triples) return std::nullopt;
  SourceSizes sizes;
  if (range && triples && triples->size() % 3 == 0) {
    sizes = {(*range)[0], (*range)[1], (*range)[2], (*range)[3]};
    for (std::size_t i = 0; i < triples->size(); i += 3) {
      sizes.most_frequent.push_back({(*triples)[i], (*triples)[i + 1], (*triples)[i + 2]});
    }
  }
  if (!are_possible(sizes, num_samples)) {
    throw attributes.corrupt(image_attribute::kSourceSizes, "says what cannot be");
  }
  return sizes;
}

std::optional<ShardInfo> read_shard(const AttributeReader& root, std::int64_t num_rows) {
  const auto number = [&](const char* name) {
    const auto value = root.numbers<std::int64_t>(name, 1);
    return value ? value->front() : -1;
  };
  const auto set = root.text(root_attribute::kShardSet);
  if (!set) return std::nullopt;
  const ShardInfo shard{.index = number(root_attribute::kShardIndex),
                        .count = number(root_attribute::kShardCount),
                        .first_row = number(root_attribute::kShardFirstRow),
                        .total_rows = number(root_attribute::kShardTotalRows),
                        .set = *set};
  if (!is_possible(shard, num_rows)) {
    throw root.corrupt(root_attribute::kShardIndex, "and those beside it say what cannot be");
  }
  return shard;
}

/// Rows that a dataset had room for when it was created: class names may be as many, although some
/// samples were left out then.
std::int64_t planned_samples(hid_t leading, const std::string& path) {
  const SpaceId space(check_id(H5Dget_space(leading), "inspect the samples of", path));
  std::array<hsize_t, H5S_MAX_RANK> most{};
  check_status(H5Sget_simple_extent_dims(space.get(), nullptr, most.data()),
               "inspect the samples of", path);
  return static_cast<std::int64_t>(std::min(most[0], static_cast<hsize_t>(kMaxSamples)));
}

}  // namespace

bool is_possible(const ShardInfo& shard, std::int64_t num_rows) noexcept {
  return shard.count >= 1 && shard.count <= kMaxShards && shard.index >= 0 &&
         shard.index < shard.count && shard.total_rows <= kMaxSamples && shard.first_row >= 0 &&
         num_rows <= shard.total_rows && shard.first_row <= shard.total_rows - num_rows;
}

bool has_format(hid_t file, const std::string& path) {
  return check_status(H5Aexists(file, root_attribute::kFormat), "look for attributes in", path) > 0;
}

void read_description(hid_t file, hid_t leading, DatasetInfo& info) {
  const AttributeReader root(file, "the root group", info.path);
  if (!has_format(file, info.path)) return;
  const std::int64_t version = root.numbers<std::int64_t>(root_attribute::kFormat, 1)->front();
  if (version < 1) throw root.corrupt(root_attribute::kFormat, "is not a version number");
  const std::int64_t newest = info.sparse    ? sparse::kFormatVersion
                              : info.encoded ? encoded::kFormatVersion
                                             : kFormatVersion;
  if (version > newest) {
    throw Error(ErrorCode::unsupported, info.path + " has format version " +
                                            std::to_string(version) +
                                            ", this library reads versions up to " +
                                            std::to_string(newest) + "; install a newer one");
  }
  info.format_version = version;
  info.creator = root.text(root_attribute::kCreator).value_or("");
  info.uuid = root.text(root_attribute::kUuid).value_or("");
  info.split = root.text(root_attribute::kSplit).value_or("");
  info.order = root.text(root_attribute::kOrder).value_or("");
  info.options_json = root.text(root_attribute::kOptions).value_or("");
  if (const auto seed = root.numbers<std::uint64_t>(root_attribute::kSeed, 1)) {
    info.seed = seed->front();
  }
  info.shard = read_shard(root, info.num_samples);

  const AttributeReader attributes(leading, printable(info.leading.name), info.path);
  info.channel_order = attributes.text(image_attribute::kChannelOrder).value_or("");
  const std::int64_t most_classes = max_classes(planned_samples(leading, info.path));
  info.class_names = attributes.texts(image_attribute::kClassNames, most_classes)
                         .value_or(std::vector<std::string>{});
  info.attribute_names =
      attributes.texts(image_attribute::kAttributeNames).value_or(std::vector<std::string>{});

  // Of encoded images those of RGB.
  const std::int64_t channels = info.encoded ? 3 : info.channels;
  const auto mean = attributes.numbers<double>(image_attribute::kMean, channels);
  const auto std = attributes.numbers<double>(image_attribute::kStd, channels);
  if (mean && !all_finite(*mean)) throw attributes.corrupt(image_attribute::kMean, "is not finite");
  if (std && (!all_finite(*std) ||
              std::any_of(std->begin(), std->end(), [](double v) { return v <= 0; }))) {
    throw attributes.corrupt(image_attribute::kStd, "is not finite and above 0");
  }
  if (mean.has_value() != std.has_value()) {
    throw attributes.corrupt(mean ? image_attribute::kMean : image_attribute::kStd,
                             "lacks its counterpart");
  }
  const bool delivered = info.channels == channels || !info.has_images();
  if (mean && delivered) info.statistics = ChannelStatistics{*mean, *std};

  if (const auto within = attributes.numbers<double>(image_attribute::kMeanPictureStd, channels)) {
    if (!all_finite(*within)) {
      throw attributes.corrupt(image_attribute::kMeanPictureStd, "is not finite");
    }
    if (delivered) info.mean_picture_std = *within;
  }
  info.source_sizes = read_source_sizes(attributes, info.num_samples);

  const std::int64_t num_classes = static_cast<std::int64_t>(info.class_names.size());
  if (const auto counts =
          num_classes > 0
              ? attributes.numbers<std::int64_t>(image_attribute::kClassCounts, num_classes)
              : attributes.up_to<std::int64_t>(most_classes, image_attribute::kClassCounts)) {
    if (std::any_of(counts->begin(), counts->end(),
                    [&](std::int64_t n) { return n < 0 || n > info.num_samples; })) {
      throw attributes.corrupt(image_attribute::kClassCounts, "counts what cannot be");
    }
    info.class_counts = *counts;
  }

  if (version > 1) return;
  const auto algorithm = attributes.text(image_attribute::kDigestAlgorithm);
  // Digests of an algorithm of the future are as good as none.
  if (algorithm && *algorithm == kDigestAlgorithm) {
    info.chunk_digests = attributes
                             .up_to<std::uint64_t>(std::max(kMaxEntries, info.num_samples),
                                                   image_attribute::kChunkDigests)
                             .value_or(std::vector<std::uint64_t>{});
  }
}

std::vector<std::string> read_covered_names(hid_t digests, const std::string& path) {
  const AttributeReader attributes(digests, kSampleDigests, path);
  const auto algorithm = attributes.text(digest_attribute::kAlgorithm);
  if (!algorithm || *algorithm != kDigestAlgorithm) return {};
  auto names = attributes.texts(digest_attribute::kCovers);
  if (!names || names->empty()) {
    throw attributes.corrupt(digest_attribute::kCovers, "names no datasets");
  }
  return *std::move(names);
}

void write_covered_names(hid_t digests, std::span<const std::string> names,
                         const std::string& path) {
  write_text(digests, digest_attribute::kAlgorithm, kDigestAlgorithm, path);
  write_texts(digests, digest_attribute::kCovers, names, path);
}

}  // namespace chunkio::h5
