#include "h5pack/sources/planar_images.hpp"

#include <cstddef>

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

void PlanarImages::add(std::shared_ptr<const RecordFile> file) {
  files_.paths.push_back(file->path());
  records_.push_back(std::move(file));
}

void PlanarImages::read(std::int64_t row, std::span<std::uint8_t> pixels) const {
  records_[static_cast<std::size_t>(row / records_per_file())]->read_pixels(
      row % records_per_file(), pixels);
}

std::int64_t PlanarImages::count() const {
  return records_.empty() ? 0 : static_cast<std::int64_t>(records_.size()) * records_per_file();
}

std::string PlanarImages::name(std::int64_t row) const {
  return files_.paths[static_cast<std::size_t>(row / records_per_file())] + ", image " +
         std::to_string(row % records_per_file());
}

ImageSize PlanarImages::open(std::int64_t row, ImageDecoder& decoder) const {
  read(row, decoder.open_planes(size_));
  return size_;
}

void PlanarImages::check_unchanged() const {
  for (const auto& file : records_) file->check_unchanged();
}

}  // namespace h5pack
