/// The names of exported image files: CLASS/NUMBER.png, or what else they hold.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <chunkio/dataset.hpp>

namespace h5pack {

/// The table beside the images.
inline constexpr const char* kSampleTable = "samples.csv";

/// An image is CLASS/NUMBER.png, or NUMBER.png without classes. NUMBER is the row that it had in
/// the source, if the file says so, else its row; all have as many digits, so that they sort.
class ExportNames {
 public:
  /// Reads labels and source rows. Blocks on I/O.
  /// \throws chunkio::Error hdf5_failed, corrupt_data.
  explicit ExportNames(const chunkio::Dataset& dataset);

  /// What the file of a row is to end with, instead of ".png". \param extension  a literal.
  void set_extension(std::int64_t row, const char* extension) {
    extensions_[static_cast<std::size_t>(row)] = extension;
  }
  /// "cat/000012.png".
  [[nodiscard]] std::string path(std::int64_t row) const;
  /// Folders with at least one image; none without classes.
  [[nodiscard]] const std::vector<std::string>& folders() const noexcept { return used_; }
  /// All rows in the order of their numbers.
  [[nodiscard]] std::vector<std::int64_t> rows_by_number() const;
  /// What a person should know; one line each.
  [[nodiscard]] const std::vector<std::string>& notes() const noexcept { return notes_; }

 private:
  void choose_folders(const chunkio::DatasetInfo& info, std::span<const std::int64_t> counts);

  std::vector<std::int64_t> numbers_;    // Of each row.
  std::vector<const char*> extensions_;  // Of each row.
  std::vector<std::int64_t> labels_;     // Of each row; empty without class folders.
  std::vector<std::string> folders_;     // Of each label.
  std::vector<std::string> used_;
  std::vector<std::string> notes_;
  std::size_t digits_ = 0;
};

}  // namespace h5pack
