#include "write/file_structure.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "base/digest.hpp"
#include "base/positional_io.hpp"

namespace chunkio::write {
namespace {

constexpr std::int64_t kPieceBytes = std::int64_t{4} << 20;

}  // namespace

/// Calls `call(offset, bytes)` for all of it, piece by piece.
template <class Call>
void FileStructure::for_each_piece(Call call) const {
  const std::array<std::pair<std::int64_t, std::int64_t>, 2> ranges = {
      {{0, chunks_begin_}, {chunks_end_, file_bytes_}}};
  std::vector<std::byte> piece;
  for (const auto& [first, last] : ranges) {
    for (std::int64_t offset = first; offset < last; offset += kPieceBytes) {
      piece.resize(static_cast<std::size_t>(std::min(kPieceBytes, last - offset)));
      base::read_at(file_.fd(), offset, piece, file_.path());
      call(offset, std::span<const std::byte>(piece));
    }
  }
}

std::uint64_t FileStructure::digest() const {
  base::RunningDigest digest;
  for_each_piece([&](std::int64_t, std::span<const std::byte> bytes) { digest.add(bytes); });
  return digest.value();
}

std::int64_t FileStructure::journal_bytes() const noexcept {
  // A record has some tens of bytes beside those it saves, and there is one for each piece.
  return chunks_begin_ + (file_bytes_ - chunks_end_) + kPieceBytes;
}

void FileStructure::save(Journal& journal) const {
  for_each_piece([&](std::int64_t offset, std::span<const std::byte> bytes) {
    journal.append_saved(offset, bytes);
  });
  journal.append_saved_end();
  journal.sync();
}

void FileStructure::restore(Journal& journal) const {
  std::vector<std::byte> piece;
  for (const SavedBytes& saved : journal.saved()) {
    for (std::int64_t done = 0; done < saved.num_bytes;) {
      piece.resize(static_cast<std::size_t>(std::min(kPieceBytes, saved.num_bytes - done)));
      base::read_at(journal.file().fd(), saved.journal_offset + done, piece, journal.file().path());
      base::write_at(file_.fd(), saved.file_offset + done, piece, file_.path());
      done += static_cast<std::int64_t>(piece.size());
    }
  }
  base::resize_file(file_.fd(), file_bytes_, file_.path());
  file_.sync();
}

}  // namespace chunkio::write
