/// Names of the files of a dataset in several files, as the pattern that stands for all of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace chunkio::base {

/// BEFORE*-of-00008AFTER.
struct ShardPattern {
  std::string before = {};  ///< Up to the star, folder included.
  std::string after = {};   ///< Behind the number of files.
  std::size_t digits = 5;   ///< Of each number.
  std::int64_t count = 1;

  /// Absent if `path` does not end in such a name.
  /// \throws Error invalid_argument if it does, with an impossible number of files.
  [[nodiscard]] static std::optional<ShardPattern> parse(const std::string& path);
  /// For files of h5pack, whose numbers stand before the extension of `path`.
  /// \throws Error invalid_argument (number of files).
  [[nodiscard]] static ShardPattern beside(const std::string& path, std::int64_t count);

  /// The name of one file. \pre 0 <= index < count.
  [[nodiscard]] std::string file(std::int64_t index) const;
  /// The names of all files.
  [[nodiscard]] std::vector<std::string> files() const;
  /// The pattern itself.
  [[nodiscard]] std::string text() const;
};

}  // namespace chunkio::base
