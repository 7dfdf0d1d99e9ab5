/// What a source holds, found without decoding an image: the contract between sources and the
/// packer.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <nlohmann/json.hpp>

#include <chunkio/dataset.hpp>
#include <chunkio/dataset_writer.hpp>

#include "picture.hpp"
#include "record_file.hpp"
#include "source_file.hpp"

namespace h5pack {

/// Uncompressed images of one size inside record files: [3,H,W] bytes each.
struct PlanarPictures {
  PictureSize size;
  std::vector<std::string> paths;
  /// The same ones, open, with as many records each.
  std::vector<std::shared_ptr<const RecordFile>> files;

  [[nodiscard]] std::int64_t records_per_file() const { return files.front()->num_records(); }
  /// [3,H,W]. Blocks on I/O; thread-safe.
  /// \throws Error io_failed.
  void read(std::int64_t index, std::span<std::uint8_t> pixels) const;
};

/// Either a file for each image, or images in record files.
using Pictures = std::variant<std::vector<std::string>, PlanarPictures>;

[[nodiscard]] std::int64_t num_pictures(const Pictures& pictures);
/// The files that hold them.
[[nodiscard]] const std::vector<std::string>& picture_files(const Pictures& pictures);
/// For messages: the file, or the record within its file.
[[nodiscard]] std::string picture_name(const Pictures& pictures, std::int64_t index);

/// One output file. All rows are in source order; with h5pack append, those of another file come
/// first.
struct Split {
  std::string name;  ///< "train", "val", "test"; empty if the source has no splits.
  Pictures pictures;
  /// Of each file of `pictures` when it was listed; empty: not looked at.
  std::vector<FileStamp> stamps = {};
  /// A file whose rows come before those of `pictures`.
  std::optional<chunkio::Dataset> before = {};
  /// `labels` (int64 [N] or uint8 [N,A]) if there are any, and further fields; without
  /// `source_index`.
  std::vector<chunkio::FieldData> fields;
  /// `source_index` of each row; empty: the number of the row.
  std::vector<std::int64_t> source_rows = {};

  /// Rows of `before`.
  [[nodiscard]] std::int64_t num_before() const { return before ? before->size() : 0; }
  [[nodiscard]] std::int64_t num_rows() const { return num_before() + num_pictures(pictures); }
};

/// For messages: the file, the record within its file, or the row of the file that comes before.
[[nodiscard]] std::string picture_name(const Split& split, std::int64_t row);

struct Listing {
  /// True: the output is a folder with one file for each split, named NAME.h5.
  bool output_is_folder = false;
  std::vector<Split> splits;
  std::vector<std::string> class_names;
  std::vector<std::string> attribute_names;
  nlohmann::json source;  ///< Kind, path and whatever else is worth keeping; stored in the file.
  std::vector<std::string> notes;  ///< What a person should know before packing; one line each.
};

/// A field of one row-major array: `row_shape` values of T a sample.
template <class T>
[[nodiscard]] chunkio::FieldData make_field(std::string name, const std::vector<T>& values,
                                            chunkio::Shape row_shape = {}) {
  const auto bytes = std::as_bytes(std::span(values));
  return {{std::move(name), chunkio::dtype_of<T>(), row_shape}, {bytes.begin(), bytes.end()}};
}

/// The field that says which row of the source each row was: int64 [N].
inline constexpr const char* kSourceIndex = "source_index";

/// The field of that name, or null.
[[nodiscard]] const chunkio::FieldData* find_field(std::span<const chunkio::FieldData> fields,
                                                   std::string_view name);

/// The first few names, quoted, and how many more there are: "'a', 'b' and 7 more".
[[nodiscard]] std::string first_few(const std::vector<std::string>& names);

}  // namespace h5pack
