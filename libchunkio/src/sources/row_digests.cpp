#include "sources/row_digests.hpp"

#include <algorithm>
#include <utility>

#include "base/digest.hpp"
#include "base/host_memory.hpp"
#include "h5/description_reader.hpp"
#include "h5/error_stack.hpp"
#include "h5/file_contents.hpp"
#include "h5/library.hpp"
#include "h5/schema.hpp"
#include "sources/chunk_digests.hpp"
#include "sources/ranges_text.hpp"

namespace chunkio::sources {
namespace {

/// What is compared together, about.
constexpr std::int64_t kPieceBytes = std::int64_t{4} << 20;

std::string digests_name(const DatasetInfo& info) {
  return info.sparse ? std::string(h5::sparse::kRows) + "/" + h5::kSampleDigests
                     : h5::kSampleDigests;
}

/// The arrays that digests cover, in order.
std::vector<std::string> covered(const DatasetInfo& info) {
  const std::string group = info.leading.name + "/";
  if (info.sparse) return {group + h5::sparse::kIndices, group + h5::sparse::kData};
  return {group + h5::encoded::kData};
}

template <class Number>
std::span<const Number> numbers_in(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const Number*>(bytes.data()), bytes.size() / sizeof(Number)};
}

}  // namespace

bool has_ragged_rows(const Dataset::Impl& file) noexcept { return file.sparse || file.encoded; }

std::string why_not_comparable(const Dataset::Impl& file) {
  return has_ragged_rows(file) ? RowDigests::why_not(file) : ChunkDigests::why_not(file);
}

std::string RowDigests::why_not(const Dataset::Impl& file) {
  if (!file.info.format_version) return "it has no digests";
  const auto guard = h5::Library::lock();
  const std::string name = digests_name(file.info);
  std::string refusal;
  if (h5::follow_links(file.file(), name, file.info.path, h5::External::refused, refusal) !=
          h5::LinkState::present ||
      !h5::is_dataset(file.file(), name, file.info.path)) {
    return "it has no digests";
  }
  const h5::DatasetId dataset = h5::open_dataset(file.file(), name, file.info.path);
  const h5::DatasetSummary digests =
      h5::summarize(dataset, name, file.info.path, h5::External::refused);
  if (digests.dtype != DType::uint64 || digests.shape != Shape{file.info.num_samples} ||
      !digests.refusal.empty()) {
    throw Error(ErrorCode::corrupt_data,
                file.info.path + ": " + digests.describe() + " are no digests of " +
                    std::to_string(file.info.num_samples) + " rows; write the file again");
  }
  // Those of other arrays, or of an algorithm of the future, say nothing.
  if (h5::read_covered_names(dataset.get(), file.info.path) != covered(file.info)) {
    return "its digests are of other arrays";
  }
  return {};
}

void RowDigests::require(const Dataset::Impl& file) {
  const std::string reason = why_not(file);
  if (reason.empty()) return;
  throw Error(ErrorCode::unsupported,
              file.info.path + ": " + reason +
                  ", so its rows cannot be compared with digests; set verify = off, or pack it "
                  "with h5pack, which stores them",
              "verify = off");
}

DamagedRows RowDigests::mismatch(std::vector<RowRange> rows, const std::string& path) {
  const std::string message =
      path + ": " + ranges_text("row", rows) +
      (is_one_row(rows) ? " does not match its digest" : " do not match their digests") +
      "; copy or pack the file again";
  return {std::move(rows), message};
}

std::shared_ptr<const h5::StoredArray> RowDigests::open_digests(const Dataset::Impl& file) {
  return h5::open_array(file, digests_name(file.info), Shape{file.info.num_samples}, DType::uint64);
}

RowDigests::RowDigests(std::shared_ptr<const Dataset::Impl> file,
                       std::shared_ptr<const ByteSource> bytes)
    : file_(std::move(file)) {
  const auto& sparse = file_->sparse;
  const auto& encoded = file_->encoded;
  const auto add = [&](const std::shared_ptr<const h5::StoredArray>& array) {
    parts_.push_back({ElementReader(file_, array, bytes, scratch_), array->row_bytes});
  };
  offsets_.emplace(file_, sparse ? sparse->offsets : encoded->offsets, bytes, scratch_);
  if (sparse) {
    add(sparse->indices);
    add(sparse->values);
  } else {
    add(encoded->data);
  }
  digests_.emplace(file_, open_digests(*file_), bytes, scratch_);
  std::int64_t element_bytes = 0;
  for (const Part& part : parts_) element_bytes += part.element_bytes;
  const std::int64_t elements = sparse ? sparse->num_entries : encoded->num_bytes;
  const std::int64_t mean = std::max<std::int64_t>(elements / num_rows(), 1) * element_bytes;
  rows_together_ = std::clamp<std::int64_t>(kPieceBytes / mean, 1, num_rows());
}

std::int64_t RowDigests::check(const RowRange& rows, const std::stop_token& stop) const {
  ReadCost cost;
  const std::int64_t count = rows.end - rows.begin;
  const base::HostBuffer offsets_room(offsets_->room(count + 1));
  const auto offsets = numbers_in<std::int64_t>(
      offsets_->read(rows.begin, count + 1, offsets_room.bytes(), nullptr, stop, cost));
  file_->sparse ? file_->sparse->check_offsets(rows.begin, offsets, file_->info.path)
                : file_->encoded->check_offsets(rows.begin, offsets, file_->info.path);
  const base::HostBuffer digests_room(digests_->room(count));
  const auto stored = numbers_in<std::uint64_t>(
      digests_->read(rows.begin, count, digests_room.bytes(), nullptr, stop, cost));

  std::vector<std::uint64_t> digests(static_cast<std::size_t>(count));
  const std::int64_t elements = offsets.back() - offsets.front();
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const Part& part = parts_[i];
    const base::HostBuffer room(part.reader.room(elements));
    const std::span<const std::byte> bytes =
        part.reader.read(offsets.front(), elements, room.bytes(), nullptr, stop, cost);
    for (std::size_t row = 0; row < digests.size(); ++row) {
      const auto element = static_cast<std::size_t>(part.element_bytes);
      const auto own =
          bytes.subspan(static_cast<std::size_t>(offsets[row] - offsets.front()) * element,
                        static_cast<std::size_t>(offsets[row + 1] - offsets[row]) * element);
      if (i == 0) {
        digests[row] = base::digest(own);
      } else {
        base::chain_digests({&digests[row], 1}, own);
      }
    }
  }
  std::vector<RowRange> different;
  for (std::size_t row = 0; row < digests.size(); ++row) {
    if (digests[row] == stored[row]) continue;
    const std::int64_t number = rows.begin + static_cast<std::int64_t>(row);
    different.push_back({number, number + 1});
  }
  if (different.empty()) return cost.bytes_read;
  DamagedRows error = mismatch(std::move(different), file_->info.path);
  error.cost = cost;
  throw DamagedRows(error);
}

}  // namespace chunkio::sources
