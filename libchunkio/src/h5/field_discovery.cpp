#include "h5/field_discovery.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <hdf5.h>

#include "base/checked_math.hpp"
#include "h5/description_reader.hpp"
#include "h5/element_type.hpp"
#include "h5/encoded_images.hpp"
#include "h5/error_stack.hpp"
#include "h5/read_rows.hpp"
#include "h5/schema.hpp"
#include "h5/sparse_matrix.hpp"
#include "h5/stored_array.hpp"

namespace chunkio::h5 {
namespace {

/// In what people call labels; a blank stands for where a word begins or ends.
constexpr std::array<std::string_view, 7> kLabelWords = {"label",    "target",  " y ", " class",
                                                         " categor", " truth ", " gt "};

/// Numbers for each sample, without being refused.
bool is_parallel(const DatasetSummary& dataset, std::int64_t num_samples) {
  return dataset.dtype && dataset.shape && dataset.refusal.empty() && dataset.shape->rank() > 0 &&
         (*dataset.shape)[0] == num_samples;
}

/// Whether its rows have more bytes than can be counted: no file does, but any file can say so.
/// \pre is_parallel.
bool is_oversized(const DatasetSummary& dataset) {
  const auto elements = base::checked_product(dataset.shape->dims().subspan(1));
  if (!elements || *elements > kMaxSampleBytes) return true;
  const auto row_bytes = *elements * static_cast<std::int64_t>(size_of(*dataset.dtype));
  return !base::checked_multiply((*dataset.shape)[0], row_bytes);
}

/// The dataset as a field, if it runs parallel to the one that leads.
std::optional<FieldInfo> as_field(const DatasetSummary& dataset, std::int64_t num_samples) {
  if (!is_parallel(dataset, num_samples) || is_oversized(dataset)) return std::nullopt;
  const Shape row_shape = dataset.shape->without_first_axis();
  if (row_shape.num_elements() < 1) return std::nullopt;
  return FieldInfo{dataset.name, *dataset.dtype, row_shape};
}

/// The field as labels: integers [N] or [N,1] are delivered as int64 [N], uint8 [N,A] as it is.
/// \param own  of a file of this format, where uint8 [N,1] is a table of one attribute.
std::optional<FieldInfo> as_labels(std::optional<FieldInfo> field, bool own) {
  if (!field || field->row_shape.rank() > 1) return std::nullopt;
  const bool column = field->row_shape.rank() == 1;
  const bool table = column && field->dtype == DType::uint8;
  if (table && (own || field->row_shape[0] > 1)) return field;
  if (!is_integer(field->dtype) || field->row_shape.num_elements() != 1) return std::nullopt;
  return FieldInfo{field->name, DType::int64, Shape{}};
}

/// "labels float32 [40] cannot be labels of 40 samples: WHAT CAN".
std::string cannot_be_labels(const std::string& dataset, std::int64_t num_samples) {
  const std::string n = std::to_string(num_samples);
  return dataset + " cannot be labels of " + n + " samples: integers [" + n + "] or [" + n +
         ",1], or uint8 [" + n + ",A], are needed";
}

/// Whether people call labels so: "y_train", "data/Labels", "targets".
bool sounds_like_labels(std::string name) {
  std::transform(name.begin(), name.end(), name.begin(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0
               ? static_cast<char>(std::tolower(static_cast<unsigned char>(c)))
               : ' ';
  });
  const std::string words = " " + name + " ";
  return std::any_of(kLabelWords.begin(), kLabelWords.end(),
                     [&](std::string_view word) { return words.find(word) != std::string::npos; });
}

/// Whether the dataset says which names of rows or columns are missing.
bool is_mask_of_names(const DatasetInfo& info, const std::string& name) {
  for (const std::string& names : {info.sparse->row_names, info.sparse->column_names}) {
    const std::string end = std::string("/") + sparse::kTextValues;
    if (!names.ends_with(end)) continue;
    if (name == names.substr(0, names.size() - end.size()) + "/" + sparse::kTextMask) return true;
  }
  return false;
}

/// Whether the dataset is a part of the group that leads.
bool is_of_leading(const DatasetInfo& info, const std::string& name) {
  return (info.sparse && (is_member(info.leading.name, name) || is_mask_of_names(info, name))) ||
         (info.encoded && is_encoded_member(info.leading.name, name));
}

/// Images whose labels are passed over would be a surprise.
/// \param unfit  what is called labels and cannot be, if there is that.
/// \returns DatasetInfo::why_no_labels.
std::string why_no_labels(const DatasetInfo& info, const FileContents& contents,
                          const std::string& unfit) {
  std::string why = unfit.empty() ? "" : cannot_be_labels(unfit, info.num_samples);
  FileContents candidates;
  for (const DatasetSummary& dataset : contents.datasets) {
    if (dataset.name == info.leading.name || is_of_leading(info, dataset.name) ||
        !sounds_like_labels(dataset.name)) {
      continue;
    }
    if (as_labels(as_field(dataset, info.num_samples), false)) {
      candidates.datasets.push_back(dataset);
    } else if (why.empty() && dataset.shape && dataset.shape->rank() > 0 &&
               (*dataset.shape)[0] == info.num_samples) {
      why = cannot_be_labels(dataset.describe(), info.num_samples);
    }
  }
  if (candidates.datasets.empty()) return why;
  return why + (why.empty() ? "" : "; ") + candidates.describe() +
         (candidates.datasets.size() == 1 ? " looks" : " look") + " like labels: set labels = \"" +
         printable(candidates.datasets.front().name) + "\" to have them";
}

void find_labels(Dataset::Impl& impl, const OpenOptions& options, const FileContents& contents) {
  DatasetInfo& info = impl.info;
  const auto summary_of = [&](const std::string& name) {
    return summarize(open_dataset(impl.file(), name, info.path), name, info.path, impl.external);
  };
  const auto labels_from = [&](const DatasetSummary& labels) {
    if (is_parallel(labels, info.num_samples) && is_oversized(labels)) {
      throw oversized(labels, info.path);
    }
    return as_labels(as_field(labels, info.num_samples), info.format_version.has_value());
  };
  if (!options.labels.empty()) {
    const DatasetSummary labels =
        summary_of(find_named(impl.file(), options.labels, contents, info.path, impl.external));
    if (!labels.refusal.empty()) throw refused(info.path, labels.describe());
    info.labels = labels_from(labels);
    if (!info.labels) {
      throw Error(ErrorCode::unsupported,
                  info.path + ": " + cannot_be_labels(labels.describe(), info.num_samples));
    }
    return;
  }
  std::string unfit;
  for (const char* name : {kLabels, kLabel}) {
    std::string refusal;
    if (info.leading.name == name) continue;
    const LinkState state = follow_links(impl.file(), name, info.path, impl.external, refusal);
    // Images without their labels would be a surprise, so what looks like labels is not passed
    // over.
    if (state == LinkState::refused) throw refused(info.path, refusal);
    if (state == LinkState::absent) continue;
    if (!is_dataset(impl.file(), name, info.path)) {
      if (unfit.empty()) unfit = name + std::string(", which is no dataset,");
      continue;
    }
    const DatasetSummary labels = summary_of(name);
    if (!labels.refusal.empty()) throw refused(info.path, labels.describe());
    info.labels = labels_from(labels);
    if (info.labels) return;
    if (info.format_version) {
      throw Error(ErrorCode::corrupt_data, info.path + ": " + labels.describe() + " does not fit " +
                                               std::to_string(info.num_samples) +
                                               " samples; write the file again");
    }
    if (unfit.empty()) unfit = labels.describe();
  }
  // A file of this format says what its labels are.
  if (!info.format_version) info.why_no_labels = why_no_labels(info, contents, unfit);
}

/// Whether the dataset is that of the digests, which is no field.
bool holds_digests(const DatasetInfo& info, const std::string& name) {
  if (info.sparse) {
    return info.format_version && name == sparse::kRows + std::string("/") + kSampleDigests;
  }
  return info.format_version.value_or(1) > 1 && name == kSampleDigests;
}

/// Finds out what the digests of samples cover. \throws Error corrupt_data.
void find_digests(Dataset::Impl& impl) {
  DatasetInfo& info = impl.info;
  std::string refusal;
  if (!holds_digests(info, kSampleDigests) ||
      follow_links(impl.file(), kSampleDigests, info.path, External::refused, refusal) !=
          LinkState::present ||
      !is_dataset(impl.file(), kSampleDigests, info.path)) {
    return;
  }
  const DatasetId dataset = open_dataset(impl.file(), kSampleDigests, info.path);
  std::vector<std::string> names = read_covered_names(dataset.get(), info.path);
  if (names.empty()) return;
  const DatasetSummary digests = summarize(dataset, kSampleDigests, info.path, External::refused);
  if (digests.dtype != DType::uint64 || digests.shape != Shape{info.num_samples} ||
      !digests.refusal.empty()) {
    throw Error(ErrorCode::corrupt_data,
                info.path + ": " + digests.describe() + " are no digests of " +
                    std::to_string(info.num_samples) + " samples; write the file again");
  }
  // Those of other arrays than this one say nothing.
  if (names.front() == info.leading.name) info.digests_cover = std::move(names);
}

/// Whether the dataset has texts that numbers beside it stand for: Dataset::categories().
bool holds_categories(const FileContents& contents, const DatasetSummary& dataset) {
  const std::string group = std::string("/") + sparse::kCategories;
  for (const std::string& end :
       {group, group + "/" + sparse::kTextValues, group + "/" + sparse::kTextMask}) {
    const bool is_mask = end.ends_with(sparse::kTextMask);
    if (!dataset.name.ends_with(end) || (dataset.type != "string" && !is_mask)) continue;
    const std::string codes =
        dataset.name.substr(0, dataset.name.size() - end.size()) + "/" + sparse::kCodes;
    return std::any_of(contents.datasets.begin(), contents.datasets.end(),
                       [&](const DatasetSummary& one) { return one.name == codes; });
  }
  return false;
}

/// Sets the other fields, and what is left out.
void find_other_fields(Dataset::Impl& impl, const FileContents& contents) {
  DatasetInfo& info = impl.info;
  for (const DatasetSummary& dataset : contents.datasets) {
    if (dataset.name == info.leading.name || is_of_leading(info, dataset.name) ||
        (info.labels && dataset.name == info.labels->name) || holds_digests(info, dataset.name)) {
      continue;
    }
    if (auto field = as_field(dataset, info.num_samples)) {
      info.fields.push_back(*std::move(field));
      continue;
    }
    if (is_parallel(dataset, info.num_samples) && is_oversized(dataset)) {
      impl.oversized_fields.push_back(dataset);
    }
    if (!holds_categories(contents, dataset)) info.left_out.push_back(dataset.describe());
  }
  if (!contents.complete) info.left_out.emplace_back("more objects than are looked at");
}

/// Whether every label has bytes of its own in the file. Those that have none read as the fill
/// value, and a small file can claim any number of them.
bool are_stored(const StoredArray& labels, const DatasetInfo& info) {
  const std::string action = "inspect the labels of";
  const ListId creation(check_id(H5Dget_create_plist(labels.dataset.get()), action, info.path));
  if (H5Pget_layout(creation.get()) == H5D_VIRTUAL) return true;  // stored elsewhere
  if (check_status(H5Pget_nfilters(creation.get()), action, info.path) > 0) {
    // Chunks that are there are bounded by the file: what they decode to has one possible size.
    const SpaceId space(check_id(H5Dget_space(labels.dataset.get()), action, info.path));
    hsize_t num_chunks = 0;
    check_status(H5Dget_num_chunks(labels.dataset.get(), space.get(), &num_chunks), action,
                 info.path);
    return num_chunks >= static_cast<hsize_t>(labels.num_chunks);
  }
  const TypeId type(check_id(H5Dget_type(labels.dataset.get()), action, info.path));
  return labels.stored_bytes / static_cast<std::int64_t>(H5Tget_size(type.get())) >=
         info.num_samples;
}

/// Labels index class names, so one out of range would be read beyond a table.
void check_labels(const Dataset::Impl& impl, LinkFiles link_files) {
  const DatasetInfo& info = impl.info;
  if (!info.labels) return;
  const std::shared_ptr<const StoredArray> array = open_field(impl, *info.labels);
  const auto num_classes = static_cast<std::int64_t>(info.class_names.size());
  if (num_classes == 0 || info.labels->dtype != DType::int64) return;
  constexpr std::int64_t kPiece = 1 << 16;
  if (!are_stored(*array, info)) {
    throw Error(ErrorCode::corrupt_data,
                info.path + ": " + printable(info.labels->name) + " lacks some of its " +
                    std::to_string(info.num_samples) + " values; write the file again");
  }
  // The images of a link lie in files that were opened themselves.
  if (link_files == LinkFiles::refused && !may_have_rows(impl, info.num_samples)) {
    throw Error(ErrorCode::corrupt_data,
                info.path + ": " + printable(info.labels->name) + " has " +
                    std::to_string(info.num_samples) + " rows, the file only " +
                    std::to_string(impl.bytes->size()) + " bytes; write the file again");
  }
  std::vector<std::int64_t> values(static_cast<std::size_t>(std::min(kPiece, info.num_samples)));
  for (std::int64_t first = 0; first < info.num_samples; first += kPiece) {
    const std::int64_t count = std::min(kPiece, info.num_samples - first);
    const std::span piece(values.data(), static_cast<std::size_t>(count));
    read_rows(*array, first, count, std::as_writable_bytes(piece), info.path);
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t label = piece[static_cast<std::size_t>(i)];
      if (label < 0 || label >= num_classes) {
        throw Error(ErrorCode::corrupt_data, info.path + ": label " + std::to_string(label) +
                                                 " of sample " + std::to_string(first + i) +
                                                 " is none of the " + std::to_string(num_classes) +
                                                 " classes; write the file again");
      }
    }
  }
}

}  // namespace

void find_fields(Dataset::Impl& file, const FileContents& contents, const OpenOptions& options,
                 LinkFiles link_files) {
  find_digests(file);
  find_labels(file, options, contents);
  find_other_fields(file, contents);
  check_labels(file, link_files);
}

std::shared_ptr<const StoredArray> open_field(const Dataset::Impl& file, const FieldInfo& field) {
  // Two of the largest chunks that are decoded.
  constexpr std::int64_t kMaxCacheBytes = std::int64_t{512} << 20;
  return open_array(file, field.name, field.row_shape.with_first_axis(file.info.num_samples),
                    field.dtype, kMaxCacheBytes);
}

Error oversized(const DatasetSummary& dataset, const std::string& path) {
  return Error(ErrorCode::unsupported, path + ": " + dataset.describe() +
                                           " is larger than any dataset with a row for each "
                                           "sample; leave it out, or write the file again");
}

}  // namespace chunkio::h5
