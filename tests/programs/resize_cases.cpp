// Resizes the cases of tests/scripts/resize_test.py, one JSON object a line from stdin, and writes
// the pixels of each to stdout: with the best instructions of this processor, and then with
// portable ones.

#include <cstdio>
#include <iostream>
#include <string>

#include <nlohmann/json.hpp>

#include "support/resize_case.hpp"

int main() {
  using chunkio::image::ResizePlan;
  ResizePlan best;
  ResizePlan portable(ResizePlan::Instructions::portable);
  for (std::string line; std::getline(std::cin, line);) {
    const auto resize = chunkio::test::resize_case(nlohmann::json::parse(line));
    for (ResizePlan* plan : {&best, &portable}) {
      const auto pixels = chunkio::test::resized(*plan, resize);
      if (std::fwrite(pixels.data(), 1, pixels.size(), stdout) != pixels.size()) return 1;
    }
    std::fflush(stdout);
  }
}
