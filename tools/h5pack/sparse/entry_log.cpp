#include "h5pack/sparse/entry_log.hpp"

#include <utility>

#include "cli/byte_size.hpp"

namespace h5pack {

using chunkio::Error;
using chunkio::ErrorCode;

Error too_small(const std::string& source, const std::string& what) {
  return Error(ErrorCode::out_of_resources, source + ": " + what + "; raise --memory-budget",
               "memory_budget");
}

EntryLog::EntryLog(const std::string& output, std::string source, std::int64_t memory_budget)
    : file_(output), source_(std::move(source)), memory_budget_(memory_budget) {}

void EntryLog::add(std::span<const Entry> entries) {
  for (const Entry& entry : entries) {
    if (entry.row >= lengths_.size()) grow(entry.row + std::size_t{1});
    ++lengths_[entry.row];
  }
  file_.write(size_ * kEntryBytes, std::as_bytes(entries));
  size_ += std::ssize(entries);
}

std::vector<std::int64_t> EntryLog::take_lengths(std::int64_t num_rows) {
  if (num_rows > 0) grow(static_cast<std::size_t>(num_rows));
  return std::move(lengths_);
}

void EntryLog::grow(std::size_t num_rows) {
  if (num_rows > static_cast<std::size_t>(memory_budget_ / 2 / kBytesARow)) {
    throw too_small(source_,
                    "tables of " + std::to_string(num_rows) + " rows take " +
                        cli::format_bytes(static_cast<std::int64_t>(num_rows) * kBytesARow) +
                        ", more than half of the memory");
  }
  if (num_rows > lengths_.capacity()) lengths_.reserve(std::max(num_rows, 2 * lengths_.size()));
  lengths_.resize(num_rows);
}

}  // namespace h5pack
