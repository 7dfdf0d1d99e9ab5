#include "h5/shard_set.hpp"

#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include <chunkio/error.hpp>

#include "base/checked_math.hpp"
#include "base/digest.hpp"
#include "h5/dataset_file.hpp"
#include "h5/error_stack.hpp"
#include "io/local_file.hpp"
#include "io/remote_file.hpp"

namespace chunkio::h5 {
namespace {

using File = std::shared_ptr<const Dataset::Impl>;

/// The file itself, and once more to bypass the page cache.
constexpr std::int64_t kDescriptorsPerFile = 2;

bool same_field(const FieldInfo& a, const FieldInfo& b) {
  return a.name == b.name && a.dtype == b.dtype && a.row_shape == b.row_shape;
}

std::string field_text(const std::optional<FieldInfo>& field) {
  if (!field) return "none";
  return printable(field->name) + " " + std::string(to_string(field->dtype)) + " " +
         field->row_shape.to_string();
}

/// Of a sparse matrix.
std::string index_text(const DatasetInfo& info) {
  return info.sparse ? std::string(to_string(info.sparse->index_dtype)) : "none";
}

/// Compares one file with the first of its dataset.
class Comparison {
 public:
  Comparison(const DatasetInfo& first, const DatasetInfo& other) : first_(first), other_(other) {}

  /// \throws Error corrupt_data naming the first difference.
  void check() const {
    same("sample shape", first_.sample_shape().to_string(), other_.sample_shape().to_string());
    same("number of axes", std::to_string(first_.stored.shape.rank()),
         std::to_string(other_.stored.shape.rank()));
    same("axis order", std::string(to_string(first_.layout)),
         std::string(to_string(other_.layout)));
    same("channel order", first_.channel_order, other_.channel_order);
    same("leading dataset", printable(first_.leading.name), printable(other_.leading.name));
    same("element type", std::string(to_string(first_.leading.dtype)),
         std::string(to_string(other_.leading.dtype)));
    same("type of columns", index_text(first_), index_text(other_));
    same("filters", filters_text(first_), filters_text(other_));
    same("storage", first_.stored.chunked ? "chunked" : "contiguous",
         other_.stored.chunked ? "chunked" : "contiguous");
    same("origin", origin(first_), origin(other_));
    same("split", first_.split, other_.split);
    same("order", first_.order, other_.order);
    same("seed", number(first_.seed), number(other_.seed));
    same_names("classes", first_.class_names, other_.class_names);
    same_names("attributes", first_.attribute_names, other_.attribute_names);
    check_fields();
    check_shard();
  }

  [[nodiscard]] Error wrong(const std::string& why) const {
    return Error(ErrorCode::corrupt_data,
                 other_.path + " does not belong to " + first_.path + ": " + why +
                     "; pack it again from the same source with the same options, or put the "
                     "right file there");
  }

 private:
  void same(const std::string& what, const std::string& first, const std::string& other) const {
    if (first == other) return;
    throw wrong("its " + what + " is " + printable(other) + ", there it is " + printable(first));
  }

  void same_names(const std::string& what, const std::vector<std::string>& first,
                  const std::vector<std::string>& other) const {
    same("number of " + what, std::to_string(first.size()), std::to_string(other.size()));
    const auto [a, b] = std::mismatch(first.begin(), first.end(), other.begin());
    if (a == first.end()) return;
    throw wrong("number " + std::to_string(a - first.begin()) + " of its " + what + " is " +
                printable(*b) + ", there it is " + printable(*a));
  }

  void check_fields() const {
    if (first_.labels.has_value() != other_.labels.has_value() ||
        (first_.labels && !same_field(*first_.labels, *other_.labels))) {
      same("label dataset", field_text(first_.labels), field_text(other_.labels));
    }
    same("number of fields", std::to_string(first_.fields.size()),
         std::to_string(other_.fields.size()));
    for (std::size_t i = 0; i < first_.fields.size(); ++i) {
      if (same_field(first_.fields[i], other_.fields[i])) continue;
      same("field " + std::to_string(i), field_text(first_.fields[i]),
           field_text(other_.fields[i]));
    }
  }

  void check_shard() const {
    if (first_.shard.has_value() != other_.shard.has_value()) {
      throw wrong(std::string("it ") + (other_.shard ? "is" : "is not") +
                  " marked as part of a dataset, and that one " + (first_.shard ? "is" : "is not"));
    }
    if (!first_.shard) return;
    same("total number of rows", std::to_string(first_.shard->total_rows),
         std::to_string(other_.shard->total_rows));
    if (first_.shard->set == other_.shard->set) return;
    throw wrong("it was packed from another list of images, or with other options (shard_set " +
                printable(other_.shard->set) + ", there " + printable(first_.shard->set) + ")");
  }

  static std::string number(const std::optional<std::uint64_t>& value) {
    return value ? std::to_string(*value) : "none";
  }
  static std::string origin(const DatasetInfo& info) {
    // Versions may differ: those of this format say the same, one way or the other.
    return info.format_version ? "chunkio" : "another program";
  }
  static std::string filters_text(const DatasetInfo& info) {
    std::string text;
    for (const std::string& filter : info.stored.filters) {
      text += (text.empty() ? "" : " + ") + filter;
    }
    return text.empty() ? "none" : text;
  }

  const DatasetInfo& first_;
  const DatasetInfo& other_;
};

/// Whether each file says that it is the one its name says.
void check_places(std::span<const File> files) {
  std::int64_t free_row = 0;  // the first that no earlier file was planned to hold
  for (std::size_t i = 0; i < files.size(); ++i) {
    const DatasetInfo& info = files[i]->info;
    if (!info.shard) continue;
    const ShardInfo& shard = *info.shard;
    if (!std::cmp_equal(shard.index, i) || !std::cmp_equal(shard.count, files.size())) {
      throw Error(ErrorCode::corrupt_data,
                  info.path + " says that it is shard " + std::to_string(shard.index) + " of " +
                      std::to_string(shard.count) + ", not " + std::to_string(i) + " of " +
                      std::to_string(files.size()) +
                      " as its name does; give each file the name that it was packed under");
    }
    if (shard.first_row < free_row) {
      throw Error(ErrorCode::corrupt_data,
                  info.path + " begins at row " + std::to_string(shard.first_row) +
                      " of its dataset, which the file before it holds already; pack both again");
    }
    free_row = shard.first_row + info.num_samples;
  }
}

/// Rows of a chunk of the dataset. A file that is one chunk may have a shorter one: HDF5 allows no
/// chunk to be longer than a file of fixed size.
std::int64_t common_chunk_rows(std::span<const File> files) {
  const auto rows_of = [](const File& file) { return file->info.stored.chunk_shape[0]; };
  const auto longest =
      *std::max_element(files.begin(), files.end(),
                        [&](const auto& a, const auto& b) { return rows_of(a) < rows_of(b); });
  for (const File& file : files) {
    const DatasetInfo& info = file->info;
    const bool rest_alike = info.stored.chunk_shape.without_first_axis() ==
                            longest->info.stored.chunk_shape.without_first_axis();
    if (rest_alike && (rows_of(file) == rows_of(longest) || info.num_samples <= rows_of(file))) {
      continue;
    }
    throw Comparison(longest->info, info)
        .wrong("its chunks are " + info.stored.chunk_shape.to_string() + ", there they are " +
               longest->info.stored.chunk_shape.to_string());
  }
  return rows_of(longest);
}

void check_no_file_twice(std::span<const File> files) {
  std::map<std::string, const std::string*> path_of;
  for (const File& file : files) {
    struct stat status {};
    std::string identity = file->info.uuid;  // a third-party file has none
    const io::LocalFile* local = io::as_local_file(*file->bytes);
    if (identity.empty() && local != nullptr && ::fstat(local->fd(), &status) == 0) {
      identity = std::to_string(status.st_dev) + " " + std::to_string(status.st_ino);
    }
    const auto [before, is_new] = path_of.try_emplace(identity, &file->info.path);
    if (is_new) continue;
    throw Error(ErrorCode::corrupt_data, file->info.path + " is " + *before->second +
                                             " once more; put the right file there");
  }
}

/// \throws Error out_of_resources if this process cannot have so many files open.
void check_descriptors(const base::ShardPattern& pattern) {
  struct rlimit limit {};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return;
  const std::int64_t needed = pattern.count * kDescriptorsPerFile;
  if (std::cmp_less_equal(needed, limit.rlim_cur)) return;
  throw Error(ErrorCode::out_of_resources,
              pattern.text() + ": " + std::to_string(pattern.count) + " files take " +
                  std::to_string(needed) + " file descriptors, and this process may have " +
                  std::to_string(limit.rlim_cur) + "; raise the limit (ulimit -n)");
}

void check_all_there(const base::ShardPattern& pattern) {
  constexpr std::int64_t kNamed = 3;
  std::string names;
  std::int64_t missing = 0;
  for (std::int64_t i = 0; i < pattern.count; ++i) {
    struct stat status {};
    const std::string path = pattern.file(i);
    if (::stat(path.c_str(), &status) == 0 || (errno != ENOENT && errno != ENOTDIR)) continue;
    if (++missing <= kNamed) names += (names.empty() ? "" : ", ") + path;
  }
  if (missing == 0) return;
  if (missing > kNamed) names += " and " + std::to_string(missing - kNamed) + " more";
  throw Error(ErrorCode::not_found, pattern.text() + ": " + std::to_string(missing) + " of its " +
                                        std::to_string(pattern.count) + " files " +
                                        (missing == 1 ? "is" : "are") + " missing: " + names +
                                        "; pack or copy what is missing");
}

/// No files have so many bytes or chunks, but any file can say so.
Error uncountable(const std::string& path) {
  return Error(ErrorCode::corrupt_data,
               path + ": its files claim more bytes or chunks than can be counted");
}

std::int64_t checked_sum(std::int64_t a, std::int64_t b, const std::string& path) {
  if (const auto sum = base::checked_add(a, b)) return *sum;
  throw uncountable(path);
}

/// A digest of those of all files; empty if one has none.
std::string combined_uuid(std::span<const File> files) {
  base::RunningDigest digest;
  for (const File& file : files) {
    const std::string& uuid = file->info.uuid;
    if (uuid.empty()) return {};
    digest.add(std::as_bytes(std::span(uuid.c_str(), uuid.size() + 1)));
  }
  return base::digest_text(digest.value());
}

/// Sums over all pixels of all files; absent if a file does not have them.
std::optional<ChannelStatistics> combined_statistics(std::span<const File> files, double rows) {
  const auto channels = static_cast<std::size_t>(files.front()->info.channels);
  std::vector<double> mean(channels);
  std::vector<double> square(channels);
  for (const File& file : files) {
    const auto& statistics = file->info.statistics;
    if (!statistics) return std::nullopt;
    const double share = static_cast<double>(file->info.num_samples) / rows;
    for (std::size_t c = 0; c < channels; ++c) {
      const double m = statistics->mean[c];
      const double s = statistics->std[c];
      mean[c] += share * m;
      square[c] += share * (s * s + m * m);
    }
  }
  std::vector<double> std(channels);
  for (std::size_t c = 0; c < channels; ++c) {
    std[c] = std::sqrt(std::max(square[c] - mean[c] * mean[c], 0.0));
  }
  return ChannelStatistics{std::move(mean), std::move(std)};
}

std::vector<double> combined_image_std(std::span<const File> files, double rows) {
  std::vector<double> sum;
  for (const File& file : files) {
    const std::vector<double>& one = file->info.mean_picture_std;
    if (one.empty()) return {};
    sum.resize(one.size());
    for (std::size_t c = 0; c < one.size(); ++c) {
      sum[c] += one[c] * static_cast<double>(file->info.num_samples) / rows;
    }
  }
  return sum;
}

std::vector<std::int64_t> combined_counts(std::span<const File> files) {
  std::vector<std::int64_t> sum;
  for (const File& file : files) {
    const std::vector<std::int64_t>& counts = file->info.class_counts;
    if (counts.empty()) return {};
    // Without class names, each file counts up to its own largest label.
    sum.resize(std::max(sum.size(), counts.size()));
    for (std::size_t i = 0; i < counts.size(); ++i) sum[i] += counts[i];
  }
  return sum;
}

/// Only sizes of which every file tells the count: one that it lists, or that would be listed.
std::optional<SourceSizes> combined_sizes(std::span<const File> files) {
  using Size = std::pair<std::int64_t, std::int64_t>;
  std::map<Size, std::int64_t> counts;
  std::map<Size, std::size_t> listed_by;  // of the others
  std::size_t complete_lists = 0;         // files that list every size they have
  SourceSizes sizes;
  for (const File& file : files) {
    const auto& one = file->info.source_sizes;
    if (!one) return std::nullopt;
    const bool first = file == files.front();
    sizes.min_height = first ? one->min_height : std::min(sizes.min_height, one->min_height);
    sizes.max_height = first ? one->max_height : std::max(sizes.max_height, one->max_height);
    sizes.min_width = first ? one->min_width : std::min(sizes.min_width, one->min_width);
    sizes.max_width = first ? one->max_width : std::max(sizes.max_width, one->max_width);
    std::int64_t images = 0;
    for (const SourceSizes::Count& count : one->most_frequent) {
      counts[{count.height, count.width}] += count.images;
      images += count.images;
    }
    if (images == file->info.num_samples) {
      ++complete_lists;
      continue;
    }
    for (const SourceSizes::Count& count : one->most_frequent) {
      ++listed_by[{count.height, count.width}];
    }
  }
  for (const auto& [size, images] : counts) {
    if (complete_lists + listed_by[size] < files.size()) continue;
    sizes.most_frequent.push_back({size.first, size.second, images});
  }
  std::stable_sort(sizes.most_frequent.begin(), sizes.most_frequent.end(),
                   [](const auto& a, const auto& b) { return a.images > b.images; });
  return sizes;
}

/// What one file has and another lost cannot be delivered; and the comparison would only find that
/// they differ.
/// \throws Error corrupt_data naming an object that can be opened in one of the two only.
void check_damage(const DatasetInfo& first, const DatasetInfo& other) {
  const auto names = [](const DatasetInfo& info) {
    std::set<std::string> result;
    for (const DamagedObject& object : info.damaged_objects) result.insert(object.name);
    return result;
  };
  if (names(first) == names(other)) return;
  const DatasetInfo& damaged = other.damaged_objects.empty() ? first : other;
  throw Error(ErrorCode::corrupt_data, damaged.damaged_objects.front().reason +
                                           "; the file is damaged, copy or download it again");
}

EncodedInfo combined_encoded(std::span<const File> files, const std::string& path) {
  EncodedInfo all{.random_crops = files.front()->info.encoded->random_crops};
  for (const File& file : files) {
    const EncodedInfo& one = *file->info.encoded;
    all.num_bytes = checked_sum(all.num_bytes, one.num_bytes, path);
    all.max_height = std::max(all.max_height, one.max_height);
    all.max_width = std::max(all.max_width, one.max_width);
    all.max_pixels = std::max(all.max_pixels, one.max_pixels);
  }
  return all;
}

}  // namespace

std::shared_ptr<const Dataset::Impl> open_shards(const base::ShardPattern& pattern,
                                                 const OpenOptions& options) {
  const bool is_remote = io::is_remote(pattern.text());
  std::vector<std::shared_ptr<const ByteSource>> remote;
  if (is_remote) {
    remote = io::open_sources(pattern.files(), options.remote);
  } else {
    check_all_there(pattern);
    check_descriptors(pattern);
  }
  auto impl = std::make_shared<Dataset::Impl>();
  for (std::int64_t i = 0; i < pattern.count; ++i) {
    impl->shards.push_back(is_remote
                               ? open_dataset_file(remote[static_cast<std::size_t>(i)], options)
                               : open_dataset_file(pattern.file(i), options));
    if (i == 0) continue;
    check_damage(impl->shards.front()->info, impl->shards.back()->info);
    Comparison(impl->shards.front()->info, impl->shards.back()->info).check();
  }
  check_no_file_twice(impl->shards);
  check_places(impl->shards);
  impl->info = combined_info(pattern.text(), impl->shards);
  impl->oversized_fields = impl->shards.front()->oversized_fields;
  return impl;
}

DatasetInfo combined_info(const std::string& path, std::span<const File> files) {
  DatasetInfo info = files.front()->info;
  info.path = path;
  info.uuid = combined_uuid(files);
  info.shard.reset();
  info.num_samples = info.num_chunks = info.stored_bytes = 0;
  info.chunk_digests.clear();
  info.damaged_objects.clear();
  bool all_digests = true;
  std::int64_t num_entries = 0;
  for (const File& file : files) {
    const DatasetInfo& one = file->info;
    info.shards.push_back({one.path, info.num_samples, one.num_samples});
    info.num_samples += one.num_samples;
    info.num_chunks = checked_sum(info.num_chunks, one.num_chunks, path);
    info.stored_bytes = checked_sum(info.stored_bytes, one.stored_bytes, path);
    if (info.sparse) num_entries = checked_sum(num_entries, one.sparse->num_entries, path);
    info.chunk_digests.insert(info.chunk_digests.end(), one.chunk_digests.begin(),
                              one.chunk_digests.end());
    info.damaged_objects.insert(info.damaged_objects.end(), one.damaged_objects.begin(),
                                one.damaged_objects.end());
    all_digests = all_digests && std::cmp_equal(one.chunk_digests.size(), one.num_chunks);
  }
  if (info.sparse) info.sparse->num_entries = num_entries;
  if (info.encoded) info.encoded = combined_encoded(files, path);
  if (!all_digests) info.chunk_digests.clear();
  const bool covered_alike = std::all_of(files.begin(), files.end(), [&](const File& file) {
    return file->info.digests_cover == info.digests_cover;
  });
  if (!covered_alike) info.digests_cover.clear();
  if (!base::checked_multiply(info.num_samples, info.sample_bytes())) throw uncountable(path);
  info.stored.shape = info.stored.shape.without_first_axis().with_first_axis(info.num_samples);
  if (info.stored.chunked) {
    info.stored.chunk_shape =
        info.stored.chunk_shape.without_first_axis().with_first_axis(common_chunk_rows(files));
  }
  const auto rows = static_cast<double>(info.num_samples);
  info.statistics = combined_statistics(files, rows);
  info.mean_picture_std = combined_image_std(files, rows);
  info.class_counts = combined_counts(files);
  info.source_sizes = combined_sizes(files);
  return info;
}

std::vector<File> files_of(const File& dataset) {
  return dataset->shards.empty() ? std::vector<File>{dataset} : dataset->shards;
}

std::vector<std::int64_t> rows_of_files(const Dataset::Impl& dataset) {
  if (dataset.shards.empty()) return {dataset.info.num_samples};
  std::vector<std::int64_t> rows;
  for (const File& file : dataset.shards) rows.push_back(file->info.num_samples);
  return rows;
}

}  // namespace chunkio::h5
