/// A file of noise, open as the file of a dataset is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/positional_io.hpp"
#include "h5/dataset_impl.hpp"
#include "support/cached_pages.hpp"
#include "support/scratch.hpp"

namespace chunkio::test {

struct NoiseFile {
  NoiseFile(const std::string& path, std::size_t size) : bytes(size) {
    std::mt19937_64 random(1);
    for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random());
    write_bytes(path, bytes);
    impl->info.path = path;
    impl->descriptor = base::FileDescriptor::open_for_reading(path);
  }

  [[nodiscard]] std::size_t cached_bytes() const {
    return test::cached_bytes(impl->descriptor.get(), bytes.size());
  }
  void drop_from_cache() const { test::drop_from_cache(impl->descriptor.get()); }

  std::vector<std::uint8_t> bytes;
  std::shared_ptr<Dataset::Impl> impl = std::make_shared<Dataset::Impl>();
};

}  // namespace chunkio::test
