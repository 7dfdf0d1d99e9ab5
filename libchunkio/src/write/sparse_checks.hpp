/// What a SparseWriter is asked for, checked before anything is done for it.
#pragma once

#include <cstdint>

#include <chunkio/dataset_writer.hpp>

namespace chunkio::write {

/// Bytes of one stored entry: its column number and its value.
[[nodiscard]] std::int64_t entry_bytes(const SparseSpec& spec) noexcept;

/// Longest names, which others are padded to; of columns 0 if there is to be no `var`.
struct NameWidths {
  std::int64_t rows = 1;
  std::int64_t columns = 0;
};

/// Checks everything in `spec` that a file depends on. Asks for all names once.
/// \throws Error invalid_argument.
[[nodiscard]] NameWidths validate(const SparseSpec& spec);

}  // namespace chunkio::write
