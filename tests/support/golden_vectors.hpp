/// Reads the vectors that tests/scripts/epoch_order_reference.py wrote.
#pragma once

#include <fstream>
#include <stdexcept>
#include <string>

#include <nlohmann/json.hpp>

namespace chunkio::test {

inline nlohmann::json golden_vectors(const std::string& name) {
  const std::string path = std::string(CHUNKIO_TESTS_DIR) + "/golden/epoch_order/" + name;
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot read " + path);
  return nlohmann::json::parse(file);
}

}  // namespace chunkio::test
