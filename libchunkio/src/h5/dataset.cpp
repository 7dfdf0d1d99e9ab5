#include <unistd.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <chunkio/dataset.hpp>

#include "base/shard_names.hpp"
#include "h5/dataset_file.hpp"
#include "h5/dataset_impl.hpp"
#include "h5/element_type.hpp"
#include "h5/error_stack.hpp"
#include "h5/field_discovery.hpp"
#include "h5/library.hpp"
#include "h5/read_rows.hpp"
#include "h5/schema.hpp"
#include "h5/shard_set.hpp"
#include "h5/text_array.hpp"

namespace chunkio {
namespace {

/// Calls read(i, first, count, out) for each file i of several that holds some of the rows: which
/// of its own, and where they go.
template <class Read>
void for_each_shard(const DatasetInfo& info, std::int64_t first, std::int64_t count,
                    std::span<std::byte> out, std::size_t row_bytes, Read read) {
  for (std::size_t i = 0; i < info.shards.size(); ++i) {
    const ShardFile& shard = info.shards[i];
    const std::int64_t begin = std::max(first, shard.first_row);
    const std::int64_t end = std::min(first + count, shard.first_row + shard.num_samples);
    if (begin >= end) continue;
    read(i, begin - shard.first_row, end - begin,
         out.subspan(static_cast<std::size_t>(begin - first) * row_bytes,
                     static_cast<std::size_t>(end - begin) * row_bytes));
  }
}

}  // namespace

void require_images(const DatasetInfo& info) {
  if (info.has_images()) return;
  if (info.encoded) {
    throw Error(ErrorCode::unsupported,
                info.path + ": " + h5::printable(info.leading.name) +
                    " are encoded, in sizes of their own; say with the option decode in which size "
                    "they are wanted",
                "decode");
  }
  const FieldInfo& leading = info.leading;
  const std::string what = info.path + ": " + h5::printable(leading.name) + " " +
                           std::string(to_string(leading.dtype)) + " " +
                           leading.row_shape.with_first_axis(info.num_samples).to_string();
  const std::size_t rank = leading.row_shape.rank() + 1;
  if (leading.dtype != DType::uint8 && (rank == 3 || rank == 4)) {
    throw Error(ErrorCode::unsupported,
                what +
                    " has other numbers than uint8, and images are needed; h5pack repack writes "
                    "them again as uint8, if its option scale says which of them are black and "
                    "white: scale = 0..1",
                "scale = 0..1");
  }
  throw Error(ErrorCode::unsupported,
              what +
                  " are no images, which are needed: uint8 [N,H,W,C], [N,C,H,W] or [N,H,W]; if the "
                  "file has some, name them with the option images",
              "images");
}

Dataset::Dataset(std::shared_ptr<const Impl> impl) noexcept : impl_(std::move(impl)) {}

Dataset Dataset::open(const std::string& path, const OpenOptions& options) {
  // A file of that very name is what is meant.
  if (path.find('*') == std::string::npos || ::access(path.c_str(), F_OK) == 0) {
    return Dataset(h5::open_dataset_file(path, options));
  }
  const std::optional<base::ShardPattern> pattern = base::ShardPattern::parse(path);
  if (!pattern) {
    throw Error(ErrorCode::not_found,
                "no file " + path +
                    ", and as a pattern it does not say how many files there are; write it as in "
                    "'train-*-of-00008.h5'");
  }
  return Dataset(h5::open_shards(*pattern, options));
}

Dataset Dataset::open(std::shared_ptr<const ByteSource> bytes, const OpenOptions& options) {
  if (bytes == nullptr) throw Error(ErrorCode::invalid_argument, "there is no byte source to open");
  return Dataset(h5::open_dataset_file(std::move(bytes), options));
}

const DatasetInfo& Dataset::info() const noexcept { return impl_->info; }

void Dataset::read_images(std::int64_t first, std::int64_t count, std::span<std::byte> out) const {
  require_images(info());
  read_field(info().leading.name, first, count, out);
}

namespace {

/// \throws Error unsupported, invalid_argument.
void check_sparse_request(const DatasetInfo& about, const char* what, std::int64_t first,
                          std::int64_t count, std::int64_t size) {
  if (!about.sparse) {
    throw Error(ErrorCode::unsupported, about.path + ": no sparse matrix leads it, but " +
                                            h5::printable(about.leading.name) +
                                            "; read that with read_field()");
  }
  if (first >= 0 && count >= 0 && first <= size - count) return;
  throw Error(ErrorCode::invalid_argument,
              about.path + ": there are no " + what + " " + std::to_string(first) + " to " +
                  std::to_string(first + count) + " of " + std::to_string(size));
}

}  // namespace

SparseRows Dataset::read_sparse(std::int64_t first, std::int64_t count) const {
  const DatasetInfo& about = info();
  check_sparse_request(about, "rows", first, count, size());
  std::vector<h5::SparsePart> parts;
  if (impl_->shards.empty()) parts.push_back({impl_->sparse.get(), first, count, about.path});
  for (std::size_t i = 0; i < about.shards.size(); ++i) {
    const ShardFile& shard = about.shards[i];
    const std::int64_t begin = std::max(first, shard.first_row);
    const std::int64_t end = std::min(first + count, shard.first_row + shard.num_samples);
    if (begin >= end) continue;
    const Impl& file = *impl_->shards[i];
    parts.push_back({file.sparse.get(), begin - shard.first_row, end - begin, file.info.path});
  }
  SparseRows rows = h5::read_sparse(parts, *about.sparse, about.leading.dtype);
  impl_->check_unchanged();
  return rows;
}

void Dataset::read_row_begins(std::int64_t first, std::span<std::int64_t> out) const {
  const DatasetInfo& about = info();
  check_sparse_request(about, "rows", first, std::ssize(out) - 1, size());
  std::int64_t entries = 0;  // of the files before
  std::int64_t row = 0;
  for (const auto& file : h5::files_of(impl_)) {
    const h5::SparseMatrix& matrix = *file->sparse;
    const std::int64_t begin = std::max(first, row);
    const std::int64_t end = std::min(first + std::ssize(out) - 1, row + matrix.rows);
    if (begin < end) {
      const auto part = out.subspan(static_cast<std::size_t>(begin - first),
                                    static_cast<std::size_t>(end - begin) + 1);
      h5::read_row_begins(matrix, begin - row, part, file->info.path);
      for (std::int64_t& at : part) at += entries;
    }
    row += matrix.rows;
    entries += matrix.num_entries;
  }
  impl_->check_unchanged();
}

void Dataset::read_entries(std::int64_t first, std::span<std::int64_t> columns,
                           std::span<std::byte> values) const {
  const DatasetInfo& about = info();
  const std::size_t value_bytes = size_of(about.leading.dtype);
  const std::size_t wanted = columns.empty() ? values.size() / value_bytes : columns.size();
  const auto count = static_cast<std::int64_t>(wanted);
  check_sparse_request(about, "entries", first, count,
                       about.sparse ? about.sparse->num_entries : 0);
  if (!values.empty() && values.size() != wanted * value_bytes) {
    throw Error(ErrorCode::invalid_argument,
                about.path + ": " + std::to_string(count) + " entries have values of " +
                    std::to_string(wanted * value_bytes) + " bytes, the buffer has " +
                    std::to_string(values.size()));
  }
  std::int64_t before = 0;  // entries of the files before
  for (const auto& file : h5::files_of(impl_)) {
    const h5::SparseMatrix& matrix = *file->sparse;
    const std::int64_t begin = std::max(first, before);
    const std::int64_t end = std::min(first + count, before + matrix.num_entries);
    if (begin < end) {
      const auto at = static_cast<std::size_t>(begin - first);
      const auto part = static_cast<std::size_t>(end - begin);
      h5::read_entries(
          matrix, begin - before, columns.empty() ? columns : columns.subspan(at, part),
          values.empty() ? values : values.subspan(at * value_bytes, part * value_bytes),
          file->info.path);
    }
    before += matrix.num_entries;
  }
  impl_->check_unchanged();
}

void Dataset::read_names(MatrixAxis axis,
                         const std::function<void(std::string_view name)>& take) const {
  const DatasetInfo& about = info();
  check_sparse_request(about, "rows", 0, 0, size());
  const bool of_rows = axis == MatrixAxis::rows;
  const std::string& names = of_rows ? about.sparse->row_names : about.sparse->column_names;
  if (names.empty()) return;
  for (const auto& file : h5::files_of(impl_)) {
    h5::read_texts(*file, names, of_rows ? file->info.num_samples : about.sparse->columns, take);
    if (!of_rows) break;
  }
  impl_->check_unchanged();
}

std::optional<std::vector<std::string>> Dataset::categories(std::string_view field) const {
  const auto found = find_field(field);
  if (!found) {
    throw Error(ErrorCode::not_found, "no field " + h5::printable(field) + " in " + info().path);
  }
  const std::string codes = std::string("/") + h5::sparse::kCodes;
  if (!field.ends_with(codes) || found->row_shape.rank() != 0 || !h5::is_integer(found->dtype)) {
    return std::nullopt;
  }
  const std::string column(field.substr(0, field.size() - codes.size()));
  const auto texts_of = [&](const Impl& file) {
    return h5::find_texts(file, column + "/" + h5::sparse::kCategories);
  };
  const auto files = h5::files_of(impl_);
  auto texts = texts_of(*files.front());
  for (const auto& file : std::span(files).subspan(1)) {
    if (texts_of(*file) == texts) continue;
    throw Error(ErrorCode::unsupported, files.front()->info.path + " and " + file->info.path +
                                            " number the categories of " + h5::printable(column) +
                                            " differently; read the files by themselves");
  }
  impl_->check_unchanged();
  return texts;
}

EncodedImage Dataset::read_encoded(std::int64_t row) const {
  const DatasetInfo& about = info();
  if (!about.encoded) {
    throw Error(ErrorCode::unsupported, about.path + ": no encoded images lead it, but " +
                                            h5::printable(about.leading.name) +
                                            "; read that with read_field()");
  }
  if (row < 0 || row >= size()) {
    throw Error(
        ErrorCode::invalid_argument,
        about.path + ": there is no row " + std::to_string(row) + " of " + std::to_string(size()));
  }
  for (std::size_t i = 0; i < about.shards.size(); ++i) {
    const ShardFile& shard = about.shards[i];
    if (row < shard.first_row + shard.num_samples) {
      return Dataset(impl_->shards[i]).read_encoded(row - shard.first_row);
    }
  }
  EncodedImage image = h5::read_encoded(*impl_->encoded, row, about.path);
  impl_->check_unchanged();
  return image;
}

void Dataset::read_field(std::string_view name, std::int64_t first, std::int64_t count,
                         std::span<std::byte> out) const {
  const auto field = find_field(name);
  if (!field) {
    throw Error(ErrorCode::not_found, "no field " + h5::printable(name) + " in " + info().path);
  }
  if (info().sparse && field->name == info().leading.name) {
    throw Error(ErrorCode::unsupported, info().path + ": " + h5::printable(field->name) +
                                            " is a sparse matrix; read its rows with "
                                            "read_sparse()");
  }
  if (info().encoded && field->name == info().leading.name) require_images(info());
  if (!impl_->shards.empty()) {
    const std::size_t bytes = row_bytes(*field);
    h5::check_request(size(), first, count, bytes, out.size(), field->name, info().path);
    for_each_shard(info(), first, count, out, bytes,
                   [&](std::size_t i, std::int64_t from, std::int64_t rows, auto part) {
                     Dataset(impl_->shards[i]).read_field(name, from, rows, part);
                   });
    return;
  }
  if (field->name == info().leading.name && impl_->encoded) {
    h5::read_decoded(*impl_->encoded, first, count, out, info().path);
    impl_->check_unchanged();
    return;
  }
  if (field->name == info().leading.name) {
    h5::read_rows(*impl_->leading, first, count, out, info().path);
    impl_->check_unchanged();
    return;
  }
  const auto guard = h5::Library::lock();
  std::shared_ptr<const h5::StoredArray>& array = impl_->field_in_use;
  if (!array || array->name != field->name) {
    array.reset();
    array = h5::open_field(*impl_, *field);
  }
  h5::read_rows(*array, first, count, out, info().path);
  if (first + count == size()) array.reset();
  impl_->check_unchanged();
}

std::optional<FieldInfo> Dataset::find_field(std::string_view name) const {
  const DatasetInfo& about = info();
  if (about.leading.name == name) return about.leading;
  for (const h5::DatasetSummary& dataset : impl_->oversized_fields) {
    if (dataset.name == name) throw h5::oversized(dataset, about.path);
  }
  for (const DamagedObject& object : about.damaged_objects) {
    if (name == object.name || name.starts_with(object.name + "/")) {
      throw Error(ErrorCode::corrupt_data,
                  object.reason + "; the file is damaged, copy or download it again");
    }
  }
  if (about.labels && about.labels->name == name) return about.labels;
  const auto found = std::find_if(about.fields.begin(), about.fields.end(),
                                  [&](const FieldInfo& field) { return field.name == name; });
  if (found == about.fields.end()) return std::nullopt;
  return *found;
}

std::size_t Dataset::row_bytes(const FieldInfo& field) {
  return static_cast<std::size_t>(field.row_shape.num_elements()) * size_of(field.dtype);
}

}  // namespace chunkio
