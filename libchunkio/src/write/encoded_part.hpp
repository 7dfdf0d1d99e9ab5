/// A record in the journal of encoded images: those between two commits. Their bytes lie one behind
/// the other, from where those of the record before end.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "write/journal.hpp"

namespace chunkio::write {

struct EncodedPart {
  // Of each image.
  std::vector<std::int64_t> bytes = {};
  std::vector<std::int32_t> sizes = {};  ///< Height and width.
  std::vector<std::uint8_t> orientations = {};
  std::vector<std::uint64_t> digests = {};  ///< As base::digest().
};

/// \param number  of the part, from 0 on. \param note  of the caller.
[[nodiscard]] ChunkRecord to_record(std::int64_t number, const EncodedPart& part,
                                    std::string_view note);

struct RecordedPart {
  EncodedPart part;
  std::string note;  ///< Of the caller.
};

/// \returns nothing of a record that to_record() did not make. Untrusted: what it says of the
///          images is theirs only if their bytes have these digests.
[[nodiscard]] std::optional<RecordedPart> from_record(const ChunkRecord& record);

}  // namespace chunkio::write
