/// A folder for the files of one run.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>

namespace bench {

/// Gone, with all that is in it, when the program ends.
class ScratchFolder {
 public:
  /// \throws std::runtime_error if nothing can be made in `parent`.
  explicit ScratchFolder(const std::string& parent) {
    std::string pattern = parent + "/chunkio-bench-XXXXXX";
    if (::mkdtemp(pattern.data()) == nullptr) {
      throw std::runtime_error("cannot make a folder in " + parent + "; name another with --dir");
    }
    path_ = pattern;
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  ~ScratchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  [[nodiscard]] std::string file(std::string_view name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

}  // namespace bench
