/// Uncompressed images of one size in record files: [3,H,W] bytes each.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "h5pack/sources/images.hpp"
#include "h5pack/sources/record_file.hpp"

namespace h5pack {

class PlanarImages : public Images {
 public:
  explicit PlanarImages(ImageSize size) : size_(size) {}

  /// \pre it has as many records as those before it.
  void add(std::shared_ptr<const RecordFile> file);
  /// \pre there is a file.
  [[nodiscard]] std::int64_t records_per_file() const { return records_.front()->num_records(); }
  /// [3,H,W].
  /// \throws chunkio::Error io_failed.
  void read(std::int64_t row, std::span<std::uint8_t> pixels) const;

  [[nodiscard]] std::int64_t count() const override;
  [[nodiscard]] std::string name(std::int64_t row) const override;
  [[nodiscard]] const SourceFiles& files() const override { return files_; }
  void set_stamps(std::vector<cli::FileStamp> stamps) override {
    files_.stamps = std::move(stamps);
  }
  ImageSize open(std::int64_t row, ImageDecoder& decoder) const override;
  void check_unchanged() const override;

 private:
  ImageSize size_;
  SourceFiles files_;
  std::vector<std::shared_ptr<const RecordFile>> records_;  // Open, one for each path of files_.
};

}  // namespace h5pack
