/// Writes a small file of known content, to be killed and hindered by write_faults_test.py.
///
/// writer_child PATH PLANNED ROWS [resume] [force] [large] [filter] [encoded]: PLANNED rows are
/// announced; if ROWS are fewer, the file is shortened to them. Large: chunks that bypass the page
/// cache. Encoded: rows of different lengths through EncodedWriter; what is committed counts as a
/// chunk. What happens goes to stdout, line by line and unbuffered: "resumed I" for each chunk
/// found, "wrote I" after each chunk written, "published" at the end. Groups are of two chunks.
/// Exits 0; 1 with one line on stderr after an Error. To resume without force what is published
/// already is no work. With FAIL_ALLOCATION=K in the environment the K-th allocation of C++ fails;
/// "allocations N" ends what goes to stdout.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <new>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <chunkio/dataset_writer.hpp>

namespace {

using namespace chunkio;

std::atomic<std::int64_t> allocations{0};
std::int64_t failing_allocation = 0;  // counted from 1; 0: none

constexpr std::int64_t kChunkSamples = 4;

struct SampleSize {
  std::int64_t height = 6, width = 5;
  [[nodiscard]] std::int64_t bytes() const { return height * width * 3; }
};
constexpr SampleSize kLarge{.height = 150, .width = 160};

void say(int fd, const std::string& line) {
  const std::string text = line + "\n";
  if (::write(fd, text.data(), text.size()) < 0) ::_exit(9);
}

FieldData numbers(const std::string& name, std::int64_t count, std::int64_t factor) {
  std::vector<std::int64_t> values;
  for (std::int64_t i = 0; i < count; ++i) values.push_back(i * factor % 3);
  FieldData field{{name, DType::int64, Shape{}}, std::vector<std::byte>(values.size() * 8)};
  std::memcpy(field.values.data(), values.data(), field.values.size());
  return field;
}

DatasetSpec specification(std::int64_t num_samples, SampleSize size) {
  DatasetSpec spec;
  spec.num_samples = num_samples;
  spec.height = size.height;
  spec.width = size.width;
  spec.channels = 3;
  spec.class_names = {"cat", "dog", "cow"};
  spec.fields = {numbers("labels", num_samples, 1), numbers("further/ids", num_samples, 2)};
  return spec;
}

std::vector<std::byte> rows(std::int64_t first, std::int64_t count, SampleSize size) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(count * size.bytes()));
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<std::byte>((static_cast<std::size_t>(first * size.bytes()) + i) % 251);
  }
  return bytes;
}

void write_file(const std::string& path, std::int64_t planned, std::int64_t num_rows,
                SampleSize size, const WriterOptions& wanted) {
  WriterOptions options = wanted;
  options.chunk_samples = kChunkSamples;
  options.commit_bytes = 2 * kChunkSamples * size.bytes();
  options.identity = R"({"rows":)" + std::to_string(num_rows) + "}";
  DatasetWriter writer(path, specification(planned, size), options);
  std::set<std::int64_t> there;
  for (const ResumedChunk& chunk : writer.resumed()) {
    if (chunk.note != "note " + std::to_string(chunk.chunk)) ::_exit(8);
    there.insert(chunk.chunk);
    say(STDOUT_FILENO, "resumed " + std::to_string(chunk.chunk));
  }
  for (std::int64_t first = 0; first < num_rows; first += kChunkSamples) {
    const std::int64_t chunk = first / kChunkSamples;
    if (there.contains(chunk)) continue;
    writer.write_chunk(chunk, rows(first, std::min(kChunkSamples, num_rows - first), size),
                       "note " + std::to_string(chunk));
    say(STDOUT_FILENO, "wrote " + std::to_string(chunk));
  }
  writer.set_statistics({{{0.5, 0.5, 0.5}, {0.25, 0.25, 0.25}}, {}});
  if (num_rows < planned) writer.set_rows(num_rows, specification(num_rows, size).fields);
  writer.close();
  say(STDOUT_FILENO, "published");
}

/// Row i has i % 5 bytes fewer than the rows of write_file().
void write_encoded(const std::string& path, std::int64_t planned, std::int64_t num_rows,
                   SampleSize size, const WriterOptions& options) {
  EncodedWriter writer(
      path, {.class_names = {"cat", "dog", "cow"}, .expected_bytes = planned * size.bytes()},
      {.overwrite = options.overwrite,
       .identity = R"({"rows":)" + std::to_string(num_rows) + "}",
       .resume = options.resume,
       .commit_bytes = kChunkSamples * size.bytes()});
  std::int64_t part = 0;
  for (const ResumedChunk& resumed : writer.resumed()) {
    if (resumed.chunk != part || resumed.note != "note " + std::to_string(part)) ::_exit(8);
    say(STDOUT_FILENO, "resumed " + std::to_string(part++));
  }
  for (std::int64_t row = writer.num_rows(); row < num_rows; ++row) {
    EncodedImage image{.bytes = rows(row, 1, size),
                       .height = size.height,
                       .width = size.width,
                       .orientation = static_cast<std::uint8_t>(1 + row % 8)};
    image.bytes.resize(image.bytes.size() - static_cast<std::size_t>(row % 5));
    writer.add(image);
    if (!writer.commit_due()) continue;
    writer.commit("note " + std::to_string(part));
    say(STDOUT_FILENO, "wrote " + std::to_string(part++));
  }
  writer.close({numbers("labels", num_rows, 1), numbers("further/ids", num_rows, 2)},
               {{{0.5, 0.5, 0.5}, {0.25, 0.25, 0.25}}, {}});
  say(STDOUT_FILENO, "published");
}

}  // namespace

// Not inline, so that GCC does not see malloc and delete meet.
[[gnu::noinline]] void* operator new(std::size_t size) {
  const bool fails = ++allocations == failing_allocation;
  void* const memory = fails ? nullptr : std::malloc(std::max<std::size_t>(size, 1));
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
// AddressSanitizer's does not end in the one above, as that of the standard library does.
[[gnu::noinline]] void* operator new(std::size_t size, const std::nothrow_t& /*tag*/) noexcept try {
  return operator new(size);
} catch (const std::bad_alloc&) {
  return nullptr;
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t /*size*/) noexcept {
  std::free(memory);
}

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  WriterOptions options;
  SampleSize size;
  bool encoded = false;
  for (int i = 4; i < argc; ++i) {
    options.resume |= std::string_view(argv[i]) == "resume";
    options.overwrite |= std::string_view(argv[i]) == "force";
    if (std::string_view(argv[i]) == "large") size = kLarge;
    if (std::string_view(argv[i]) == "filter") options.filter = {.deflate_level = 6};
    encoded |= std::string_view(argv[i]) == "encoded";
  }
  if (const char* which = std::getenv("FAIL_ALLOCATION")) failing_allocation = std::atoll(which);
  try {
    if (options.resume && !options.overwrite && DatasetWriter::is_published(argv[1])) return 0;
    const auto write = encoded ? write_encoded : write_file;
    write(argv[1], std::atoll(argv[2]), std::atoll(argv[3]), size, options);
  } catch (const Error& error) {
    say(STDERR_FILENO, std::string(to_string(error.code())) + ": " + error.what());
    ::_exit(1);  // after an error of the disk libhdf5 may not find its way out of exit()
  } catch (const std::bad_alloc&) {
    say(STDERR_FILENO, "out_of_resources: out of memory");
    ::_exit(1);
  }
  failing_allocation = 0;  // how many there are varies a little, and this is none of the writer's
  say(STDOUT_FILENO, "allocations " + std::to_string(allocations));
  return 0;
}
