#include "h5pack/sources/record_file.hpp"

#include <utility>

#include <chunkio/error.hpp>

#include "cli/quote.hpp"

namespace h5pack {

RecordFile::RecordFile(std::string path, std::int64_t record_bytes)
    : path_(std::move(path)), record_bytes_(record_bytes), file_(path_), stamp_(file_.stamp()) {
  if (stamp_.size == 0) {
    throw chunkio::Error(chunkio::ErrorCode::corrupt_data,
                         cli::quote(path_) + " is empty (0 bytes): unpack the archive again");
  }
  const std::int64_t over = stamp_.size % record_bytes;
  if (over == 0) return;
  throw chunkio::Error(chunkio::ErrorCode::corrupt_data,
                       cli::quote(path_) + " has " + std::to_string(stamp_.size) +
                           " bytes, which is not a multiple of the " +
                           std::to_string(record_bytes) + " bytes of a record: it ends " +
                           std::to_string(over) + " bytes into record " +
                           std::to_string(num_records()) + "; unpack the archive again");
}

void RecordFile::read_records(std::int64_t first, std::span<std::uint8_t> records) const {
  file_.read_at(first * record_bytes_, records);
}

void RecordFile::read_pixels(std::int64_t record, std::span<std::uint8_t> pixels) const {
  file_.read_at((record + 1) * record_bytes_ - static_cast<std::int64_t>(pixels.size()), pixels);
}

}  // namespace h5pack
