/// A file of noise.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "io/local_file.hpp"
#include "support/cached_pages.hpp"
#include "support/scratch.hpp"

namespace chunkio::test {

struct NoiseFile {
  NoiseFile(const std::string& path, std::size_t size) : bytes(size) {
    std::mt19937_64 random(1);
    for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random());
    write_bytes(path, bytes);
    file = std::make_shared<io::LocalFile>(path);
  }

  [[nodiscard]] std::size_t cached_bytes() const {
    return test::cached_bytes(file->fd(), bytes.size());
  }
  void drop_from_cache() const { test::drop_from_cache(file->fd()); }

  std::vector<std::uint8_t> bytes;
  std::shared_ptr<const io::LocalFile> file;
};

}  // namespace chunkio::test
