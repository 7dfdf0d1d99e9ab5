/// The list of what a source holds: splits, rows, labels and names; no image is decoded for it.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <chunkio/dataset.hpp>
#include <chunkio/dataset_writer.hpp>

#include "h5pack/sources/images.hpp"

namespace h5pack {

/// One output file. All rows are in source order.
struct Split {
  std::string name;  ///< "train", "val", "test"; empty if the source has no splits.
  std::unique_ptr<Images> images;
  /// `labels` (int64 [N] or uint8 [N,A]) if there are any, and further fields; without
  /// `source_index`.
  std::vector<chunkio::FieldData> fields = {};
};

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
