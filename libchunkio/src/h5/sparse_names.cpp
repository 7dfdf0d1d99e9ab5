#include "h5/sparse_names.hpp"

#include <algorithm>
#include <initializer_list>
#include <optional>

#include <hdf5.h>

#include <chunkio/error.hpp>

#include "h5/attributes.hpp"
#include "h5/error_stack.hpp"
#include "h5/schema.hpp"
#include "h5/text_array.hpp"

namespace chunkio::h5 {
namespace {

/// The first of these that has so many texts; else empty.
std::string first_of(const FileContents& contents, std::int64_t count,
                     std::initializer_list<std::string> names) {
  for (const std::string& name : names) {
    const auto is_it = [&](const DatasetSummary& dataset) {
      return dataset.name == name && is_text_array(dataset, count);
    };
    if (std::any_of(contents.datasets.begin(), contents.datasets.end(), is_it)) return name;
  }
  return {};
}

/// The column of a table of AnnData that has its names, as the table says.
std::string index_of(const Dataset::Impl& file, const std::string& table,
                     const FileContents& contents) {
  const bool there = std::any_of(
      contents.datasets.begin(), contents.datasets.end(),
      [&](const DatasetSummary& dataset) { return dataset.name.starts_with(table + "/"); });
  if (!there) return sparse::kNames;
  const GroupId group(check_id(H5Gopen2(file.file().get(), table.c_str(), H5P_DEFAULT),
                               "open group " + printable(table) + " of", file.info.path));
  const AttributeReader attributes(group.get(), printable(table), file.info.path);
  try {
    return attributes.text(sparse::kIndexAttribute).value_or(sparse::kNames);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::hdf5_failed) throw;
    return sparse::kNames;  // no text: another program's attribute
  }
}

}  // namespace

MatrixNames find_names(const Dataset::Impl& file, const std::string& group,
                       const FileContents& contents, std::int64_t rows, std::int64_t columns) {
  const auto table = [&](const std::string& name, std::int64_t count) {
    const std::string index = name + "/" + index_of(file, name, contents);
    // The latter where names may be missing, a mask beside them: pandas since version 3.
    return first_of(contents, count, {index, index + "/" + sparse::kTextValues});
  };
  // That of the raw counts has columns of its own.
  const std::string raw = "raw/";
  MatrixNames names;
  names.rows = table(sparse::kRows, rows);
  if (group == raw + sparse::kMatrix) names.columns = table(raw + sparse::kColumns, columns);
  if (names.columns.empty()) names.columns = table(sparse::kColumns, columns);
  const std::string beside = group.empty() ? "" : group + "/";
  if (names.rows.empty()) names.rows = first_of(contents, rows, {beside + "barcodes"});
  if (names.columns.empty()) {
    names.columns = first_of(contents, columns, {beside + "features/id", beside + "genes"});
  }
  return names;
}

}  // namespace chunkio::h5
