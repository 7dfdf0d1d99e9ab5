/// Images written and decoded by Pillow (make_images.py), for tests to compare with.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/scratch.hpp"

namespace chunkio::test {

/// A scratch folder filled by make_images.py.
class PillowImages {
 public:
  struct Image {
    std::string file;  ///< "jpeg_420.jpg"
    std::string name;  ///< "jpeg_420"
    std::int64_t height = 0;
    std::int64_t width = 0;
  };

  PillowImages() {
    const std::string command = std::string("'" CHUNKIO_H5PY_PYTHON "' '" CHUNKIO_TESTS_DIR
                                            "/scripts/make_pictures.py' '") +
                                folder() + "'";
    if (std::system(command.c_str()) != 0) throw std::runtime_error("failed: " + command);
  }

  [[nodiscard]] std::string folder() const { return scratch_.path().string(); }
  [[nodiscard]] std::string file(const std::string& name) const { return scratch_.file(name); }
  /// The lines of manifest.txt or oriented.txt.
  [[nodiscard]] std::vector<Image> list(const std::string& manifest) const {
    std::ifstream in(file(manifest));
    std::vector<Image> images;
    for (Image p; in >> p.file >> p.name >> p.height >> p.width;) images.push_back(p);
    return images;
  }

 private:
  ScratchFolder scratch_;
};

}  // namespace chunkio::test
