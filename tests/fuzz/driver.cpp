/// Runs a target on the inputs of some folders, and on as many changes of them as it is told.
///
///     NAME_fuzz RUNS SEEDS [FOLDER...]
///
/// Inputs of the folder SEEDS must be accepted: changes of others would mostly test how they begin.
///
/// The input that is under way lies in NAME_fuzz.input in the working folder, so that what ends the
/// program is there afterwards: in a folder, `NAME_fuzz 0 FOLDER` runs it again. CHUNKIO_TEST_SEED
/// repeats the changes.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "fuzz/fuzz_target.hpp"

namespace chunkio::fuzz {
namespace {

using Input = std::vector<std::byte>;

Input read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text(std::istreambuf_iterator<char>(file), {});
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(),
          bytes.begin() + static_cast<std::ptrdiff_t>(std::min(kMaxInput, text.size()))};
}

/// Of a folder that may be there, by name.
std::vector<std::filesystem::path> files_in(const char* folder) {
  std::vector<std::filesystem::path> paths;
  if (!std::filesystem::is_directory(folder)) return paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.is_regular_file()) paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

/// The input that is under way, in a file that outlives the process.
class LastInput {
 public:
  explicit LastInput(const std::string& path)
      : file_(::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644)) {
    if (file_ < 0 || ::ftruncate(file_, kMaxInput) != 0) return;
    void* const memory = ::mmap(nullptr, kMaxInput, PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0);
    if (memory != MAP_FAILED) bytes_ = static_cast<std::byte*>(memory);
  }
  ~LastInput() {
    if (bytes_ != nullptr) ::munmap(bytes_, kMaxInput);
    ::close(file_);
  }
  LastInput(const LastInput&) = delete;
  LastInput& operator=(const LastInput&) = delete;

  bool run(std::span<const std::byte> input) const {
    if (bytes_ != nullptr) {
      if (::ftruncate(file_, static_cast<off_t>(input.size())) != 0) std::abort();
      std::copy(input.begin(), input.end(), bytes_);
    }
    return fuzz::run(input);
  }

 private:
  int file_;
  std::byte* bytes_ = nullptr;
};

int run_all(const std::string& name, long runs, std::span<char* const> folders) {
  const LastInput last(name + ".input");
  std::vector<Input> seeds;
  for (std::size_t i = 0; i < folders.size(); ++i) {
    for (const auto& path : files_in(folders[i])) {
      seeds.push_back(read_file(path));
      if (last.run(seeds.back()) || i > 0) continue;
      std::fprintf(stderr, "%s is not accepted\n", path.c_str());
      return 1;
    }
  }
  if (seeds.empty()) {
    std::fprintf(stderr, "no inputs to begin with\n");
    return 2;
  }
  const char* const given = std::getenv("CHUNKIO_TEST_SEED");
  const std::uint64_t first =
      given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device{}();
  std::printf("CHUNKIO_TEST_SEED=%llu\n", static_cast<unsigned long long>(first));
  std::mt19937_64 random(first);
  std::vector<Input> pool = seeds;
  Input input;
  for (long i = 0; i < runs; ++i) {
    const Input& from = pool[random() % pool.size()];
    input.assign(kMaxInput, std::byte{});
    std::copy(from.begin(), from.end(), input.begin());
    input.resize(mutate(input, from.size(), random()));
    last.run(input);
    // Changes of changes, without end.
    if (random() % 8 == 0) {
      if (pool.size() < seeds.size() + 1000) {
        pool.push_back(input);
      } else {
        pool[seeds.size() + random() % 1000] = input;
      }
    }
  }
  std::printf("%ld changes of %zu inputs\n", runs, seeds.size());
  return 0;
}

}  // namespace
}  // namespace chunkio::fuzz

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: %s RUNS SEEDS [FOLDER...]\n", argv[0]);
    return 2;
  }
  const std::string name = std::filesystem::path(argv[0]).filename().string();
  return chunkio::fuzz::run_all(name, std::strtol(argv[1], nullptr, 10),
                                std::span(argv + 2, static_cast<std::size_t>(argc - 2)));
}
