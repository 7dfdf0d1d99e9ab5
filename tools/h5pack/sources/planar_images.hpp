/// Uncompressed images of one size in record files: [3,H,W] bytes each.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cli/file_bytes.hpp"
#include "h5pack/sources/images.hpp"

namespace h5pack {

/// A file of records of one size, each of which begins with an image's labels and ends with its
/// pixels. Everything blocks on I/O and is thread-safe.
class RecordFile {
 public:
  /// \throws Error as SourceFile; corrupt_data if it is empty or ends inside a record.
  RecordFile(std::string path, std::int64_t record_bytes);

  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] std::int64_t record_bytes() const noexcept { return record_bytes_; }
  [[nodiscard]] std::int64_t num_records() const noexcept { return stamp_.size / record_bytes_; }

  /// Whole records, from `first` on.
  /// \throws Error io_failed.
  void read_records(std::int64_t first, std::span<std::uint8_t> records) const;
  /// The end of one record.
  /// \throws Error io_failed.
  void read_pixels(std::int64_t record, std::span<std::uint8_t> pixels) const;
  /// \throws Error io_failed if the file is not what it was when it was opened.
  void check_unchanged() const { file_.check_unchanged(stamp_); }

 private:
  std::string path_;
  std::int64_t record_bytes_;
  cli::SourceFile file_;
  cli::FileStamp stamp_;
};

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
