/// What libFuzzer calls.
#include "fuzz/fuzz_target.hpp"

extern "C" {

std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                    unsigned int seed);

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  chunkio::fuzz::run(std::as_bytes(std::span(data, size)));
  return 0;
}

/// Its own mutations, which follow coverage, and ours.
std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                    unsigned int seed) {
  if (seed % 2 == 0) return LLVMFuzzerMutate(data, size, max_size);
  return chunkio::fuzz::mutate(std::as_writable_bytes(std::span(data, max_size)), size, seed);
}

}  // extern "C"
