#include <fcntl.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include <chunkio/dataset_writer.hpp>
#include <chunkio/error.hpp>
#include <chunkio/version.hpp>

#include "base/digest.hpp"
#include "base/positional_io.hpp"
#include "base/uuid.hpp"
#include "h5/schema.hpp"
#include "h5/sparse_structure.hpp"
#include "io/range_writer.hpp"
#include "write/final_verification.hpp"
#include "write/partial_file.hpp"
#include "write/sequential_bytes.hpp"
#include "write/sparse_checks.hpp"

namespace chunkio {
namespace {

using write::PartialFile;
using write::SequentialBytes;
using write::WrittenBytes;

/// Structure and attributes, without the datasets.
constexpr std::int64_t kStructureBytes = std::int64_t{1} << 20;

constexpr std::size_t kBlockBytes = SequentialBytes::kBlockBytes;

std::string rows_text(std::int64_t first, std::int64_t count) {
  return count == 1 ? "row " + std::to_string(first)
                    : "rows " + std::to_string(first) + " to " + std::to_string(first + count - 1);
}

}  // namespace

struct SparseWriter::Impl {
  Impl(std::string target_path, const SparseSpec& spec, const PublishOptions& options);

  void fill(const SparseSpec& spec, const h5::SparseFile& about);
  void write_names(const std::function<std::string_view(std::int64_t)>& name_of, std::int64_t count,
                   std::int64_t width, const h5::PlacedBytes& place, const std::string& what);
  void write_rows(std::int64_t first_row, std::int64_t num_rows,
                  std::span<const std::int64_t> columns, std::span<const std::byte> values);
  void check_rows(std::int64_t first_row, std::int64_t num_rows,
                  std::span<const std::int64_t> columns, std::span<const std::byte> values) const;
  [[nodiscard]] std::span<const std::byte> stored_columns(std::span<const std::int64_t> columns,
                                                          std::vector<std::byte>& memory) const;
  void digest_rows(std::int64_t first_row, std::int64_t num_rows,
                   std::span<const std::byte> indices, std::span<const std::byte> data,
                   const std::function<void(std::int64_t, std::uint64_t)>& take) const;
  void close();
  void verify();
  void verify_rows();

  [[nodiscard]] std::int64_t num_rows() const noexcept {
    return static_cast<std::int64_t>(indptr.size()) - 1;
  }
  [[nodiscard]] std::int64_t begin(std::int64_t row) const noexcept {
    return indptr[static_cast<std::size_t>(row)];
  }

  std::string target;
  bool overwrite;
  std::stop_token stop;
  std::int64_t num_columns;
  std::int64_t index_bytes;
  std::int64_t value_bytes;
  std::vector<std::int64_t> indptr = {0};
  std::vector<std::uint64_t> digests;
  std::vector<std::atomic<bool>> written;
  std::optional<PartialFile> file;  ///< Absent once closed, well or badly.
  std::optional<io::RangeWriter> writer;
  h5::SparsePlaces places;
  std::vector<WrittenBytes> filled;
  bool published = false;
};

SparseWriter::Impl::Impl(std::string target_path, const SparseSpec& spec,
                         const PublishOptions& options)
    : target(std::move(target_path)),
      overwrite(options.overwrite),
      stop(options.stop),
      num_columns(spec.num_columns),
      index_bytes(static_cast<std::int64_t>(size_of(h5::index_dtype(spec.num_columns)))),
      value_bytes(static_cast<std::int64_t>(size_of(spec.dtype))),
      digests(spec.row_lengths.size(), base::digest({}, {})),  // of rows without entries
      written(spec.row_lengths.size()) {
  write::check_target(target, overwrite);
  const write::NameWidths widths = write::validate(spec);
  indptr.reserve(spec.row_lengths.size() + 1);
  for (const std::int64_t length : spec.row_lengths) indptr.push_back(indptr.back() + length);
  file.emplace(PartialFile::begin(target, options));
  const h5::SparseFile about{.creator = "chunkio " + std::string(version()),
                             .uuid = base::random_uuid(),
                             .row_name_bytes = widths.rows,
                             .column_name_bytes = widths.columns};
  places = h5::write_sparse_structure(file->fd(), file->path(), spec, about);
  for (const h5::DigestedBytes& one : places.structure) {
    filled.push_back({"the structure of the file", one.place, one.digest});
  }
  // Everything that a run can want is asked for now, when a full disk costs no work.
  std::int64_t end = file->size();
  for (const auto& place : {places.indptr, places.indices, places.data, places.digests}) {
    end = std::max(end, place.offset + place.bytes);
  }
  base::resize_file(file->fd(), end, file->path());
  file->reserve(end);
  fill(spec, about);
  writer.emplace(file->fd(), file->path());
}

void SparseWriter::Impl::fill(const SparseSpec& spec, const h5::SparseFile& about) {
  const auto write = [&](const std::string& name, const h5::PlacedBytes& place,
                         const auto& give_all) {
    SequentialBytes out(file->fd(), file->path(), place.offset);
    give_all(out);
    filled.push_back({name, place, out.finish()});
  };
  write("X/indptr", places.indptr, [&](SequentialBytes& out) {
    const auto all = std::as_bytes(std::span(indptr));
    for (std::size_t at = 0; at < all.size(); at += kBlockBytes) {
      out.add(all.subspan(at, std::min(kBlockBytes, all.size() - at)));
    }
  });
  for (std::size_t i = 0; i < spec.fields.size(); ++i) {
    write("obs/" + spec.fields[i].info.name, places.fields[i], [&](SequentialBytes& out) {
      spec.fields[i].for_each_block([&](std::span<const std::byte> rows) { out.add(rows); });
    });
  }
  write_names(spec.row_name, num_rows(), about.row_name_bytes, places.row_names, "obs/_index");
  if (!places.column_names) return;
  write_names(spec.column_name, num_columns, about.column_name_bytes, *places.column_names,
              "var/_index");
}

void SparseWriter::Impl::write_names(const std::function<std::string_view(std::int64_t)>& name_of,
                                     std::int64_t count, std::int64_t width,
                                     const h5::PlacedBytes& place, const std::string& what) {
  SequentialBytes out(file->fd(), file->path(), place.offset);
  std::string padded;
  for (std::int64_t i = 0; i < count; ++i) {
    padded = name_of ? std::string(name_of(i)) : std::to_string(i);
    padded.resize(static_cast<std::size_t>(width), '\0');
    out.add(std::as_bytes(std::span(padded)));
  }
  filled.push_back({what, place, out.finish()});
}

void SparseWriter::Impl::check_rows(std::int64_t first_row, std::int64_t count,
                                    std::span<const std::int64_t> columns,
                                    std::span<const std::byte> values) const {
  const auto refuse = [&](const std::string& what) {
    throw Error(ErrorCode::invalid_argument, target + ": " + what);
  };
  if (!file) refuse("write_rows after close");
  if (first_row < 0 || count < 1 || first_row > num_rows() - count) {
    refuse(std::to_string(count) + " rows from row " + std::to_string(first_row) +
           " on are not among its " + std::to_string(num_rows()));
  }
  const std::int64_t entries = begin(first_row + count) - begin(first_row);
  if (!std::cmp_equal(columns.size(), entries) ||
      !std::cmp_equal(values.size(), entries * value_bytes)) {
    refuse(rows_text(first_row, count) + " take " + std::to_string(entries) +
           " column numbers and " + std::to_string(entries * value_bytes) +
           " bytes of values, got " + std::to_string(columns.size()) + " and " +
           std::to_string(values.size()));
  }
  for (std::int64_t row = first_row; row < first_row + count; ++row) {
    std::int64_t last = -1;
    for (std::int64_t entry = begin(row); entry < begin(row + 1); ++entry) {
      const std::int64_t column = columns[static_cast<std::size_t>(entry - begin(first_row))];
      if (column < 0 || column >= num_columns) {
        refuse("row " + std::to_string(row) + " has column " + std::to_string(column) +
               "; columns are 0 to " + std::to_string(num_columns - 1));
      }
      if (column <= last) {
        refuse("columns of row " + std::to_string(row) + " must be ascending, each once, but " +
               std::to_string(column) + " follows " + std::to_string(last));
      }
      last = column;
    }
  }
}

/// Column numbers as they are stored. \param memory  theirs, if they are stored otherwise.
std::span<const std::byte> SparseWriter::Impl::stored_columns(
    std::span<const std::int64_t> columns, std::vector<std::byte>& memory) const {
  if (index_bytes == std::int64_t{sizeof(std::int64_t)}) return std::as_bytes(columns);
  memory.resize(columns.size() * sizeof(std::int32_t));
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const auto column = static_cast<std::int32_t>(columns[i]);
    std::memcpy(memory.data() + i * sizeof(column), &column, sizeof(column));
  }
  return memory;
}

void SparseWriter::Impl::digest_rows(
    std::int64_t first_row, std::int64_t count, std::span<const std::byte> indices,
    std::span<const std::byte> data,
    const std::function<void(std::int64_t, std::uint64_t)>& take) const {
  for (std::int64_t row = first_row; row < first_row + count; ++row) {
    const auto at = static_cast<std::size_t>(begin(row) - begin(first_row));
    const auto length = static_cast<std::size_t>(begin(row + 1) - begin(row));
    const auto part = [&](std::span<const std::byte> bytes, std::int64_t size) {
      return bytes.subspan(at * static_cast<std::size_t>(size),
                           length * static_cast<std::size_t>(size));
    };
    take(row, base::digest(part(indices, index_bytes), part(data, value_bytes)));
  }
}

void SparseWriter::Impl::write_rows(std::int64_t first_row, std::int64_t count,
                                    std::span<const std::int64_t> columns,
                                    std::span<const std::byte> values) {
  check_rows(first_row, count, columns, values);
  for (std::int64_t row = first_row; row < first_row + count; ++row) {
    if (!written[static_cast<std::size_t>(row)].exchange(true)) continue;
    for (std::int64_t ours = first_row; ours < row; ++ours) {
      written[static_cast<std::size_t>(ours)] = false;
    }
    throw Error(ErrorCode::invalid_argument,
                target + ": row " + std::to_string(row) + " was written twice");
  }
  try {
    std::vector<std::byte> memory;
    const auto stored = stored_columns(columns, memory);
    digest_rows(first_row, count, stored, values, [&](std::int64_t row, std::uint64_t digest) {
      digests[static_cast<std::size_t>(row)] = digest;
    });
    writer->write(places.indices.offset + begin(first_row) * index_bytes, stored);
    writer->write(places.data.offset + begin(first_row) * value_bytes, values);
  } catch (...) {
    for (std::int64_t row = first_row; row < first_row + count; ++row) {
      written[static_cast<std::size_t>(row)] = false;
    }
    throw;
  }
}

void SparseWriter::Impl::close() {
  for (std::int64_t row = 0; row < num_rows(); ++row) {
    if (written[static_cast<std::size_t>(row)] || begin(row) == begin(row + 1)) continue;
    throw Error(ErrorCode::invalid_argument,
                target + ": row " + std::to_string(row) + " was not written");
  }
  try {
    const auto bytes = std::as_bytes(std::span(digests));
    base::write_at(file->fd(), places.digests.offset, bytes, file->path());
    filled.push_back({"obs/sample_digests", places.digests, base::digest(bytes)});
    file->sync();
    verify();
    file->publish(target, overwrite);
  } catch (...) {
    file.reset();
    throw;
  }
  published = true;
  file.reset();
  write::sync_published(target);
}

void SparseWriter::Impl::verify() {
  // From the disk rather than from memory, as far as the kernel follows.
  ::posix_fadvise(file->fd(), 0, 0, POSIX_FADV_DONTNEED);
  const h5::EntryPlaces found = h5::find_entries(file->path());
  if (found.indptr != places.indptr || found.indices != places.indices ||
      found.data != places.data) {
    throw write::read_back_otherwise(target, "the structure of the file");
  }
  for (const WrittenBytes& one : filled) {
    if (!one.is_in(file->fd(), file->path(), stop)) {
      throw write::read_back_otherwise(target, one.name);
    }
  }
  verify_rows();
}

void SparseWriter::Impl::verify_rows() {
  const std::int64_t most = std::int64_t{kBlockBytes} / (index_bytes + value_bytes);
  std::vector<std::byte> indices;
  std::vector<std::byte> data;
  for (std::int64_t first = 0; first < num_rows();) {
    if (stop.stop_requested()) {
      throw Error(ErrorCode::cancelled, target + ": stopped while it was read back");
    }
    std::int64_t end = first + 1;
    while (end < num_rows() && begin(end + 1) - begin(first) <= most) ++end;
    const std::int64_t entries = begin(end) - begin(first);
    indices.resize(static_cast<std::size_t>(entries * index_bytes));
    data.resize(static_cast<std::size_t>(entries * value_bytes));
    base::read_at(file->fd(), places.indices.offset + begin(first) * index_bytes, indices,
                  file->path());
    base::read_at(file->fd(), places.data.offset + begin(first) * value_bytes, data, file->path());
    digest_rows(first, end - first, indices, data, [&](std::int64_t row, std::uint64_t digest) {
      if (digest == digests[static_cast<std::size_t>(row)]) return;
      throw write::read_back_otherwise(target, "row " + std::to_string(row));
    });
    first = end;
  }
}

SparseWriter::SparseWriter(const std::string& path, const SparseSpec& spec,
                           const PublishOptions& options)
    : impl_(std::make_unique<Impl>(path, spec, options)) {}

SparseWriter::SparseWriter(SparseWriter&&) noexcept = default;
SparseWriter& SparseWriter::operator=(SparseWriter&&) noexcept = default;
SparseWriter::~SparseWriter() = default;

std::int64_t SparseWriter::num_rows() const noexcept { return impl_->num_rows(); }
std::int64_t SparseWriter::num_entries() const noexcept { return impl_->indptr.back(); }

void SparseWriter::write_rows(std::int64_t first_row, std::int64_t num_rows,
                              std::span<const std::int64_t> columns,
                              std::span<const std::byte> values) {
  impl_->write_rows(first_row, num_rows, columns, values);
}

void SparseWriter::close() {
  if (impl_->published) return;
  if (!impl_->file) {
    throw Error(ErrorCode::invalid_argument, impl_->target + ": an earlier close failed");
  }
  impl_->close();
}

}  // namespace chunkio
