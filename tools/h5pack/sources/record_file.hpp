/// A file of records of one size, each of which begins with an image's labels and ends with its
/// pixels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "cli/checked_file.hpp"

namespace h5pack {

/// Everything blocks on I/O and is thread-safe.
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

}  // namespace h5pack
