/// What every test program needs: a folder of its own, gone afterwards, whole files in and out of
/// it, and a seed.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <initializer_list>
#include <iterator>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "harness/scratch_folder.hpp"

namespace chunkio::test {

inline std::vector<std::uint8_t> read_bytes(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::runtime_error("cannot read " + path);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline void write_bytes(const std::string& path, std::span<const std::uint8_t> bytes) {
  std::ofstream out(path, std::ios::binary);
  out.write(reinterpret_cast<const char*>(bytes.data()),
            static_cast<std::streamsize>(bytes.size()));
  if (!out.flush()) throw std::runtime_error("cannot write " + path);
}

inline void write_bytes(const std::string& path, std::initializer_list<std::uint8_t> bytes) {
  write_bytes(path, std::span(bytes.begin(), bytes.size()));
}

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
