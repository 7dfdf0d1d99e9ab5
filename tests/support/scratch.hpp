/// A folder of its own for each test, gone afterwards.
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <random>
#include <string>

#include <gtest/gtest.h>

namespace chunkio::test {

class ScratchFolder {
 public:
  ScratchFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "chunkio-test-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("cannot make " + pattern);
    path_ = pattern;
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  ~ScratchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  [[nodiscard]] std::string file(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

/// The seed of a random test: from CHUNKIO_TEST_SEED, else fresh; logged, so that a failure can be
/// replayed.
inline std::uint64_t test_seed() {
  const char* text = std::getenv("CHUNKIO_TEST_SEED");
  const std::uint64_t seed =
      text != nullptr ? std::strtoull(text, nullptr, 10) : std::random_device{}();
  ::testing::Test::RecordProperty("seed", std::to_string(seed));
  std::printf("CHUNKIO_TEST_SEED=%llu\n", static_cast<unsigned long long>(seed));
  return seed;
}

}  // namespace chunkio::test
