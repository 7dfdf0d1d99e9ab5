#include "write/final_verification.hpp"

#include <fcntl.h>

#include <algorithm>
#include <utility>
#include <vector>

#include <chunkio/verify.hpp>

#include "base/access.hpp"
#include "base/digest.hpp"
#include "h5/dataset_impl.hpp"
#include "h5/error_stack.hpp"
#include "h5/read_rows.hpp"
#include "h5/schema.hpp"
#include "h5/stored_array.hpp"

namespace chunkio::write {
namespace {

/// Fields are read back in pieces of this size.
constexpr std::int64_t kPieceBytes = std::int64_t{4} << 20;

/// The digest of all values of `field` as they are in the file; absent if it is not there.
std::optional<std::uint64_t> stored_digest(const Dataset& dataset, const std::string& field) {
  const auto info = dataset.find_field(field);
  if (!info) return std::nullopt;
  const auto row_bytes = static_cast<std::int64_t>(Dataset::row_bytes(*info));
  const std::int64_t rows_at_once = std::max<std::int64_t>(1, kPieceBytes / row_bytes);
  base::RunningDigest digest;
  std::vector<std::byte> piece;
  for (std::int64_t row = 0; row < dataset.size(); row += rows_at_once) {
    const std::int64_t count = std::min(rows_at_once, dataset.size() - row);
    piece.resize(static_cast<std::size_t>(count * row_bytes));
    dataset.read_field(field, row, count, piece);
    digest.add(piece);
  }
  return digest.value();
}

/// Whether the file holds the digests that it should.
bool has_digests(const Dataset& dataset, std::span<const std::uint64_t> digests) {
  const auto num_rows = static_cast<std::int64_t>(digests.size());
  const std::int64_t rows_at_once = kPieceBytes / std::int64_t{sizeof(std::uint64_t)};
  const auto stored = h5::open_array(*internal::Access::impl(dataset), h5::kSampleDigests,
                                     Shape{num_rows}, DType::uint64);
  std::vector<std::uint64_t> piece;
  for (std::int64_t row = 0; row < num_rows; row += rows_at_once) {
    const std::int64_t count = std::min(rows_at_once, num_rows - row);
    piece.resize(static_cast<std::size_t>(count));
    h5::read_rows(*stored, row, count, std::as_writable_bytes(std::span(piece)),
                  dataset.info().path);
    if (!std::equal(piece.begin(), piece.end(), digests.begin() + row)) return false;
  }
  return true;
}

/// Whether the file holds the statistics that it should: a constant channel has none.
bool has_statistics(const DatasetInfo& info, const std::optional<DatasetStatistics>& statistics) {
  if (!statistics) return true;
  const auto& [mean, std] = statistics->channels;
  if (std::all_of(std.begin(), std.end(), [](double value) { return value > 0; }) && !std.empty() &&
      (!info.statistics || info.statistics->mean != mean || info.statistics->std != std)) {
    return false;
  }
  return statistics->class_counts.empty() || info.class_counts == statistics->class_counts;
}

}  // namespace

void verify_finished(ChunkStore& chunks, const ExpectedFile& expected, const std::string& target,
                     std::stop_token stop) {
  // From the disk rather than from memory, as far as the kernel follows.
  ::posix_fadvise(chunks.file().fd(), 0, 0, POSIX_FADV_DONTNEED);
  const Dataset dataset = chunks.open();
  if (std::cmp_not_equal(dataset.size(), expected.row_digests.size()) ||
      dataset.info().digests_cover.size() != 1 + expected.fields.size()) {
    throw read_back_otherwise(target, "the structure of the file");
  }
  for (const auto& [field, digest] : expected.fields) {
    if (stored_digest(dataset, field) != digest) {
      throw read_back_otherwise(target, "field " + h5::printable(field));
    }
  }
  if (!has_digests(dataset, expected.row_digests)) {
    throw read_back_otherwise(target, "the digests of the samples");
  }
  if (!has_statistics(dataset.info(), expected.statistics)) {
    throw read_back_otherwise(target, "the statistics");
  }
  if (const auto chunk = chunks.first_damaged(dataset, std::move(stop))) {
    throw read_back_otherwise(target, "chunk " + std::to_string(*chunk));
  }
}

std::optional<std::int64_t> first_damaged_chunk(const Dataset& dataset, std::stop_token stop) {
  const VerifyResult result = verify_chunks(dataset, {.stop = std::move(stop)});
  if (result.damaged.empty()) return std::nullopt;
  const DamagedChunk& first = result.damaged.front();
  if (first.code != ErrorCode::digest_mismatch) throw Error(first.code, first.reason);
  return first.chunk;
}

Error read_back_otherwise(const std::string& target, const std::string& what) {
  return Error(ErrorCode::digest_mismatch,
               target + ": " + what + " reads back otherwise than it was written; check the disk");
}

}  // namespace chunkio::write
