#include "h5/sparse_structure.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <span>
#include <utility>

#include <hdf5.h>

#include "h5/attributes.hpp"
#include "h5/deferred_writes.hpp"
#include "h5/description_writer.hpp"
#include "h5/element_type.hpp"
#include "h5/error_stack.hpp"
#include "h5/handle.hpp"
#include "h5/library.hpp"
#include "h5/schema.hpp"
#include "h5/skeleton_writer.hpp"

namespace chunkio::h5 {
namespace {

void write_encoding(hid_t object, const std::string& type, const std::string& version,
                    const std::string& path) {
  write_text(object, sparse::kEncodingType, type, path);
  write_text(object, sparse::kEncodingVersion, version, path);
}

TypeId name_type(std::int64_t bytes, const std::string& path) {
  TypeId type(check_id(H5Tcopy(H5T_C_S1), "create a string type for", path));
  check_status(H5Tset_size(type.get(), static_cast<std::size_t>(bytes)), "size a string type for",
               path);
  check_status(H5Tset_strpad(type.get(), H5T_STR_NULLPAD), "pad a string type for", path);
  check_status(H5Tset_cset(type.get(), H5T_CSET_UTF8), "set the encoding of a string for", path);
  return type;
}

/// What is created below one file.
class Builder {
 public:
  Builder(const FileId& file, const std::string& path) : file_(file), path_(path) {}

  [[nodiscard]] GroupId group(const char* name) const {
    const std::string action = std::string("create group ") + name + " of";
    return GroupId(check_id(H5Gcreate2(file_.get(), name, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT),
                            action, path_));
  }

  [[nodiscard]] DatasetId dataset(const GroupId& group, const std::string& name, hid_t type,
                                  std::int64_t count) const {
    return create_in_one_run(group.get(), name, type, Shape{count}, path_);
  }

  /// A dataset of numbers. \param column  of a table, rather than a part of the matrix.
  [[nodiscard]] DatasetId numbers(const GroupId& group, const std::string& name, DType dtype,
                                  std::int64_t count, bool column) const {
    DatasetId made = dataset(group, name, memory_type(dtype), count);
    if (column) write_encoding(made.get(), "array", "0.2.0", path_);
    return made;
  }

  /// A column of numbers that stand for texts.
  [[nodiscard]] PlacedBytes categorical(const GroupId& table, const FieldInfo& column,
                                        std::span<const std::string> texts,
                                        std::int64_t num_rows) const {
    const std::string action = "create group " + printable(column.name) + " of";
    const GroupId own(check_id(
        H5Gcreate2(table.get(), column.name.c_str(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT), action,
        path_));
    write_encoding(own.get(), "categorical", "0.2.0", path_);
    write_number(own.get(), "ordered", std::int64_t{0}, path_);
    write_categories(own, texts);
    return finish(numbers(own, sparse::kCodes, column.dtype, num_rows, true));
  }

  [[nodiscard]] PlacedBytes finish(DatasetId made) const {
    return finish_in_one_run(std::move(made), path_);
  }

  /// A table with names and, in this order, the columns.
  [[nodiscard]] PlacedBytes table(const GroupId& group, std::int64_t num_names,
                                  std::int64_t name_bytes,
                                  std::span<const std::string> columns) const {
    write_encoding(group.get(), "dataframe", "0.2.0", path_);
    write_text(group.get(), sparse::kIndexAttribute, sparse::kNames, path_);
    write_texts(group.get(), sparse::kColumnOrder, columns, path_);
    const TypeId type = name_type(name_bytes, path_);
    DatasetId names = dataset(group, sparse::kNames, type.get(), num_names);
    write_encoding(names.get(), "string-array", "0.2.0", path_);
    return finish(std::move(names));
  }

 private:
  void write_categories(const GroupId& group, std::span<const std::string> texts) const {
    std::size_t longest = 1;
    for (const std::string& text : texts) longest = std::max(longest, text.size());
    const TypeId type = name_type(static_cast<std::int64_t>(longest), path_);
    DatasetId made = dataset(group, sparse::kCategories, type.get(), std::ssize(texts));
    write_encoding(made.get(), "string-array", "0.2.0", path_);
    std::string padded;
    for (const std::string& text : texts) {
      padded += text;
      padded.resize(padded.size() + longest - text.size());
    }
    if (!texts.empty()) {
      check_status(H5Dwrite(made.get(), type.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, padded.data()),
                   "write the categories of", path_);
    }
    static_cast<void>(finish(std::move(made)));
  }

  const FileId& file_;
  const std::string& path_;
};

void write_root(const FileId& file, const SparseSpec& spec, const SparseFile& about,
                const std::string& path) {
  write_encoding(file.get(), "anndata", "0.1.0", path);
  write_number(file.get(), root_attribute::kFormat, sparse::kFormatVersion, path);
  write_text(file.get(), root_attribute::kCreator, about.creator, path);
  write_text(file.get(), root_attribute::kUuid, about.uuid, path);
  write_text(file.get(), root_attribute::kSplit, spec.split, path);
  write_text(file.get(), root_attribute::kOrder, spec.order, path);
  write_number(file.get(), root_attribute::kSeed, spec.seed, path);
  write_text(file.get(), root_attribute::kOptions, spec.options_json, path);
  write_shard(file.get(), spec.shard, path);
}

void create_rows(const Builder& builder, const SparseSpec& spec, const SparseFile& about,
                 SparsePlaces& places, const std::string& path) {
  const auto num_rows = static_cast<std::int64_t>(spec.row_lengths.size());
  std::vector<std::string> columns;
  for (const FieldData& field : spec.fields) columns.push_back(field.info.name);
  columns.emplace_back(kSampleDigests);
  const GroupId rows = builder.group(sparse::kRows);
  places.row_names = builder.table(rows, num_rows, about.row_name_bytes, columns);
  for (const FieldData& field : spec.fields) {
    const auto categories = spec.categories.find(field.info.name);
    places.fields.push_back(
        categories == spec.categories.end()
            ? builder.finish(
                  builder.numbers(rows, field.info.name, field.info.dtype, num_rows, true))
            : builder.categorical(rows, field.info, categories->second, num_rows));
  }
  DatasetId digests = builder.numbers(rows, kSampleDigests, DType::uint64, num_rows, true);
  write_text(digests.get(), digest_attribute::kAlgorithm, kDigestAlgorithm, path);
  const std::string matrix = std::string(sparse::kMatrix) + "/";
  const std::array<std::string, 2> covers = {matrix + sparse::kIndices, matrix + sparse::kData};
  write_texts(digests.get(), digest_attribute::kCovers, covers, path);
  places.digests = builder.finish(std::move(digests));
}

void create_matrix(const Builder& builder, const SparseSpec& spec, SparsePlaces& places,
                   const std::string& path) {
  const GroupId matrix = builder.group(sparse::kMatrix);
  write_encoding(matrix.get(), "csr_matrix", "0.1.0", path);
  const auto num_rows = static_cast<std::int64_t>(spec.row_lengths.size());
  const std::array<std::int64_t, 2> shape = {num_rows, spec.num_columns};
  write_numbers(matrix.get(), sparse::kShape, std::span<const std::int64_t>(shape), path);
  const std::int64_t entries =
      std::accumulate(spec.row_lengths.begin(), spec.row_lengths.end(), std::int64_t{0});
  places.indptr =
      builder.finish(builder.numbers(matrix, sparse::kIndptr, DType::int64, num_rows + 1, false));
  places.indices = builder.finish(
      builder.numbers(matrix, sparse::kIndices, index_dtype(spec.num_columns), entries, false));
  places.data = builder.finish(builder.numbers(matrix, sparse::kData, spec.dtype, entries, false));
}

}  // namespace

SparsePlaces write_sparse_structure(int fd, const std::string& path, const SparseSpec& spec,
                                    const SparseFile& about) {
  const auto guard = Library::lock();
  DeferredWrites writes(fd, path);
  const ListId access = file_access(writes, path);
  FileId file(
      check_id(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access.get()), "create", path));
  write_root(file, spec, about, path);
  const Builder builder(file, path);
  SparsePlaces places;
  create_rows(builder, spec, about, places, path);
  if (about.column_name_bytes > 0) {
    places.column_names = builder.table(builder.group(sparse::kColumns), spec.num_columns,
                                        about.column_name_bytes, {});
  }
  create_matrix(builder, spec, places, path);
  check_status(file.reset(), "close", path);
  writes.apply();
  places.structure = writes.applied();
  return places;
}

EntryPlaces find_entries(const std::string& path) {
  const auto guard = Library::lock();
  const FileId file(check_id(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), "reopen", path));
  const std::string matrix = std::string(sparse::kMatrix) + "/";
  const auto place = [&](const char* name) {
    const std::string action = std::string("open dataset ") + name + " of";
    const DatasetId dataset(
        check_id(H5Dopen2(file.get(), (matrix + name).c_str(), H5P_DEFAULT), action, path));
    return place_of(dataset, action, path);
  };
  return {place(sparse::kIndptr), place(sparse::kIndices), place(sparse::kData)};
}

}  // namespace chunkio::h5
