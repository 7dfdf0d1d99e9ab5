#include "h5pack/sources/planar_images.hpp"

#include <cstddef>

namespace h5pack {

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
