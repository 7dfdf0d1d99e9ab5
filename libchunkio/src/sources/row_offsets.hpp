/// Offsets of rows of different lengths, all of them read once, in bounded memory.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/chunk_source.hpp"
#include "base/host_memory.hpp"
#include "sources/element_reader.hpp"

namespace chunkio::sources {

/// Offsets that an ElementReader gave.
[[nodiscard]] inline std::span<std::int64_t> as_offsets(std::span<std::byte> bytes) noexcept {
  return {reinterpret_cast<std::int64_t*>(bytes.data()), bytes.size() / sizeof(std::int64_t)};
}

/// Reads the offsets of `num_rows` rows, and the end. Blocks on storage.
/// \param check  is called as check(first, offsets) with those of some rows, and the end of the
/// last.
/// \param visit  is called as visit(length) for each row.
/// \returns the offset of the first row of each group, and the end.
/// \throws what `check` does; Error as ElementReader::read().
template <class Check, class Visit>
[[nodiscard]] std::vector<std::int64_t> scan_offsets(const ElementReader& reader,
                                                     std::int64_t num_rows,
                                                     std::int64_t group_samples, Check check,
                                                     Visit visit) {
  constexpr std::int64_t kPiece = std::int64_t{1} << 17;  // rows
  ReadCost cost;
  std::vector<std::int64_t> groups;
  groups.reserve(static_cast<std::size_t>(num_rows / group_samples + 2));
  const base::HostBuffer room(reader.room(std::min(kPiece, num_rows) + 1));
  std::int64_t end = 0;
  for (std::int64_t first = 0; first < num_rows; first += kPiece) {
    const std::int64_t count = std::min(kPiece, num_rows - first);
    const auto offsets = as_offsets(reader.read(first, count + 1, room.bytes(), nullptr, {}, cost));
    check(first, offsets);
    for (std::size_t i = 0; i + 1 < offsets.size(); ++i) {
      const std::int64_t row = first + static_cast<std::int64_t>(i);
      if (row % group_samples == 0) groups.push_back(offsets[i]);
      visit(offsets[i + 1] - offsets[i]);
    }
    end = offsets.back();
  }
  groups.push_back(end);
  return groups;
}

}  // namespace chunkio::sources
