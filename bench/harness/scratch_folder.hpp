/// A folder for the files of one test or one run of a benchmark.
#pragma once

#include <stdlib.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace chunkio::test {

/// New and empty; gone at the end, with all that is in it.
class ScratchFolder {
 public:
  /// \throws std::runtime_error if nothing can be made in `parent`.
  explicit ScratchFolder(
      const std::filesystem::path& parent = std::filesystem::temp_directory_path()) {
    std::string pattern = (parent / "chunkio-test-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) {
      const int error = errno;
      throw std::runtime_error("cannot make a folder in " + parent.string() + ": " +
                               std::generic_category().message(error));
    }
    path_ = pattern;
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  ~ScratchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  [[nodiscard]] std::string file(std::string_view name) const { return (path_ / name).string(); }
  /// Names of what is in it, sorted.
  [[nodiscard]] std::vector<std::string> names() const {
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(path_)) {
      found.push_back(entry.path().filename().string());
    }
    std::sort(found.begin(), found.end());
    return found;
  }

 private:
  std::filesystem::path path_;
};

}  // namespace chunkio::test
