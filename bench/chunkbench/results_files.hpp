/// Results on disk: JSON for programs, CSV for spreadsheets, both whole at every moment.
#pragma once

#include <chrono>
#include <string>

#include "chunkbench/results.hpp"

namespace bench {

/// A line of names, then a line for each cell. What is absent is an empty field.
[[nodiscard]] std::string to_csv(const Results& results);

/// Whether two paths, of files that may not be there yet, name the same one.
[[nodiscard]] bool is_same_file(const std::string& a, const std::string& b);

/// Keeps the files of a running sweep up to date. Each is replaced by a new one with a rename.
class ResultsFiles {
 public:
  /// \param csv  empty: none.
  ResultsFiles(std::string json, std::string csv);

  /// \throws chunkio::Error no_space, io_failed.
  void save(const Results& results);
  /// The same, unless saving has taken more than a hundredth of the time so far: a disk that is
  /// slow to take a few kilobytes must not slow down what is measured on it.
  void save_if_cheap(const Results& results);
  /// The CSV alone. \throws as save().
  static void save_csv(const Results& results, const std::string& path);

 private:
  std::string json_;
  std::string csv_;
  std::chrono::steady_clock::time_point begin_;
  double seconds_ = 0;
};

}  // namespace bench
