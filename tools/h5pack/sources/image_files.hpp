/// Images that are a file each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "h5pack/sources/images.hpp"

namespace h5pack {

class ImageFiles : public Images {
 public:
  explicit ImageFiles(std::vector<std::string> paths) : files_{.paths = std::move(paths)} {}

  [[nodiscard]] std::int64_t count() const override {
    return static_cast<std::int64_t>(files_.paths.size());
  }
  [[nodiscard]] std::string name(std::int64_t row) const override {
    return files_.paths[static_cast<std::size_t>(row)];
  }
  [[nodiscard]] const SourceFiles& files() const override { return files_; }
  void set_stamps(std::vector<cli::FileStamp> stamps) override {
    files_.stamps = std::move(stamps);
  }
  ImageSize open(std::int64_t row, ImageDecoder& decoder) const override {
    const auto index = static_cast<std::size_t>(row);
    // A file that could not be found when it was listed tells the reason when it is opened.
    const bool stamped = index < files_.stamps.size() && files_.stamps[index].size >= 0;
    return decoder.open(files_.paths[index],
                        stamped ? std::optional(files_.stamps[index]) : std::nullopt);
  }

 private:
  SourceFiles files_;
};

}  // namespace h5pack
