#include "sources/sample_digests.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include <chunkio/error.hpp>

#include "base/digest.hpp"
#include "h5/error_stack.hpp"
#include "h5/read_rows.hpp"
#include "h5/schema.hpp"
#include "io/local_file.hpp"
#include "io/page_cache.hpp"
#include "io/remote_file.hpp"

namespace chunkio::sources {
namespace {

constexpr std::int64_t kBlockBytes = std::int64_t{4} << 20;
/// Two of the largest chunks that libhdf5 decodes.
constexpr std::int64_t kMaxCacheBytes = std::int64_t{512} << 20;

}  // namespace

SampleDigests::SampleDigests(std::shared_ptr<const Dataset::Impl> file) : file_(std::move(file)) {
  const std::vector<std::string>& names = file_->info.digests_cover;
  for (std::size_t i = 1; i < names.size(); ++i) fields_.push_back(open_covered(names[i]));
  digests_ = open(h5::kSampleDigests, {}, DType::uint64);
}

std::unique_ptr<const SampleDigests::Array> SampleDigests::open(const std::string& name,
                                                                const Shape& row_shape,
                                                                DType dtype) const {
  auto array = std::make_unique<Array>();
  array->stored = h5::open_array(*file_, name, row_shape.with_first_axis(file_->info.num_samples),
                                 dtype, kMaxCacheBytes);
  array->is_kept = row_shape.rank() == 0 && io::as_remote_file(*file_->bytes) != nullptr;
  return array;
}

std::unique_ptr<const SampleDigests::Array> SampleDigests::open_covered(
    const std::string& name) const {
  const DatasetInfo& info = file_->info;
  if (info.labels && info.labels->name == name) {
    return open(name, info.labels->row_shape, info.labels->dtype);
  }
  const auto found = std::find_if(info.fields.begin(), info.fields.end(),
                                  [&](const FieldInfo& field) { return field.name == name; });
  if (found != info.fields.end()) return open(name, found->row_shape, found->dtype);
  throw Error(ErrorCode::corrupt_data,
              info.path + ": the digests of its samples cover " + h5::printable(name) +
                  ", which is missing or has no row for each of the " +
                  std::to_string(info.num_samples) +
                  " samples; copy the file again from an intact place, or pack it anew");
}

std::vector<RowRange> SampleDigests::differing(std::int64_t first, std::span<std::uint64_t> digests,
                                               const std::stop_token& stop) const {
  const auto num_rows = static_cast<std::int64_t>(digests.size());
  std::vector<std::byte> block;
  for (const auto& field : fields_) {
    const std::int64_t rows_at_once =
        std::max<std::int64_t>(1, kBlockBytes / field->stored->row_bytes);
    for (std::int64_t done = 0; done < num_rows; done += rows_at_once) {
      const std::int64_t count = std::min(rows_at_once, num_rows - done);
      block.resize(static_cast<std::size_t>(count * field->stored->row_bytes));
      read(*field, first + done, block, stop);
      base::chain_digests(
          digests.subspan(static_cast<std::size_t>(done), static_cast<std::size_t>(count)), block);
    }
  }
  std::vector<std::uint64_t> stored(digests.size());
  read(*digests_, first, std::as_writable_bytes(std::span(stored)), stop);
  std::vector<RowRange> different;
  for (std::size_t i = 0; i < stored.size(); ++i) {
    if (stored[i] == digests[i]) continue;
    const std::int64_t row = first + static_cast<std::int64_t>(i);
    if (different.empty() || different.back().end != row) different.push_back({row, row});
    ++different.back().end;
  }
  return different;
}

void SampleDigests::read(const Array& array, std::int64_t first, std::span<std::byte> out,
                         const std::stop_token& stop) const {
  const h5::StoredArray& stored = *array.stored;
  const auto row_bytes = static_cast<std::size_t>(stored.row_bytes);
  if (!array.is_kept) {
    read_stored(stored, first, static_cast<std::int64_t>(out.size() / row_bytes), out, stop);
    return;
  }
  const std::uint64_t doubts = io::as_remote_file(*file_->bytes)->doubts();
  const std::lock_guard lock(array.mutex);
  if (array.rows.empty() || array.doubts != doubts) {
    const std::int64_t num_rows = file_->info.num_samples;
    std::vector<std::byte> rows(static_cast<std::size_t>(num_rows) * row_bytes);
    read_stored(stored, 0, num_rows, rows, stop);
    array.rows = std::move(rows);
    array.doubts = doubts;
  }
  std::memcpy(out.data(), array.rows.data() + static_cast<std::size_t>(first) * row_bytes,
              out.size());
}

void SampleDigests::read_stored(const h5::StoredArray& array, std::int64_t first,
                                std::int64_t count, std::span<std::byte> out,
                                const std::stop_token& stop) const {
  if (array.linear_offset) {
    file_->bytes->read_at(*array.linear_offset + first * array.row_bytes, out, stop);
  } else {
    h5::read_rows(array, first, count, out, file_->info.path);
  }
}

std::int64_t SampleDigests::memory_bytes() const noexcept {
  std::int64_t bytes = 0;
  const auto add = [&](const Array& array) {
    if (array.is_kept) bytes += file_->info.num_samples * array.stored->row_bytes;
  };
  for (const auto& field : fields_) add(*field);
  add(*digests_);
  return bytes;
}

void SampleDigests::drop_from_cache() const noexcept {
  const auto drop = [&](const h5::StoredArray& array) {
    const io::LocalFile* local = io::as_local_file(*file_->bytes);
    if (!array.linear_offset || local == nullptr) return;
    io::drop_pages(local->fd(), *array.linear_offset,
                   *array.linear_offset + array.stored.shape[0] * array.row_bytes);
  };
  for (const auto& field : fields_) drop(*field->stored);
  drop(*digests_->stored);
}

}  // namespace chunkio::sources
