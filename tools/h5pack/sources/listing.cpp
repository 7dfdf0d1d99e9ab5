#include "sources/listing.hpp"

#include <algorithm>

#include "in_quotes.hpp"

namespace h5pack {

void PlanarPictures::read(std::int64_t index, std::span<std::uint8_t> pixels) const {
  files[static_cast<std::size_t>(index / records_per_file())]->read_pixels(
      index % records_per_file(), pixels);
}

std::int64_t num_pictures(const Pictures& pictures) {
  if (const auto* paths = std::get_if<std::vector<std::string>>(&pictures)) {
    return static_cast<std::int64_t>(paths->size());
  }
  std::int64_t count = 0;
  for (const auto& file : std::get<PlanarPictures>(pictures).files) count += file->num_records();
  return count;
}

const std::vector<std::string>& picture_files(const Pictures& pictures) {
  const auto* paths = std::get_if<std::vector<std::string>>(&pictures);
  return paths != nullptr ? *paths : std::get<PlanarPictures>(pictures).paths;
}

std::string picture_name(const Pictures& pictures, std::int64_t index) {
  if (const auto* paths = std::get_if<std::vector<std::string>>(&pictures)) {
    return (*paths)[static_cast<std::size_t>(index)];
  }
  const auto& planar = std::get<PlanarPictures>(pictures);
  const std::int64_t records = planar.records_per_file();
  return planar.paths[static_cast<std::size_t>(index / records)] + ", image " +
         std::to_string(index % records);
}

std::string picture_name(const Split& split, std::int64_t row) {
  if (row >= split.num_before()) return picture_name(split.pictures, row - split.num_before());
  return "row " + std::to_string(row) + " of " + split.before->info().path;
}

const chunkio::FieldData* find_field(std::span<const chunkio::FieldData> fields,
                                     std::string_view name) {
  const auto it = std::find_if(fields.begin(), fields.end(),
                               [&](const auto& field) { return field.info.name == name; });
  return it == fields.end() ? nullptr : &*it;
}

std::string first_few(const std::vector<std::string>& names) {
  constexpr std::size_t kShown = 3;
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), kShown); ++i) {
    text += (i == 0 ? "" : ", ") + in_quotes(names[i]);
  }
  if (names.size() > kShown) text += " and " + std::to_string(names.size() - kShown) + " more";
  return text;
}

}  // namespace h5pack
