/// Sources of h5pack that are text or archives: CSV, Matrix Market, .npz. Which (1 byte), and the
/// file.
#include <string>
#include <vector>

#include <chunkio/error.hpp>

#include "fuzz/fuzz_target.hpp"
#include "h5pack/sources/csv_reader.hpp"
#include "h5pack/sparse/matrix_source.hpp"
#include "support/scratch.hpp"

namespace chunkio::fuzz {
namespace {

void read_csv(std::span<const std::byte> bytes) {
  h5pack::CsvReader reader({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, "input");
  std::vector<std::string> fields;
  while (reader.next(fields)) {
  }
}

void read_matrix(std::span<const std::byte> bytes, bool transpose) {
  static const test::ScratchFolder folder;
  static const std::string path = folder.file("input");
  test::write_bytes(path, {reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()});
  const auto source =
      h5pack::open_matrix({.input = path, .transpose = transpose, .memory_budget = 64 << 20});
  source->read([](auto&&...) {}, [](std::int64_t) {});
}

}  // namespace

bool run(std::span<const std::byte> input) {
  InputReader reader(input);
  const auto kind = reader.take<std::uint8_t>();
  try {
    if (kind % 3 == 0) {
      read_csv(reader.rest());
    } else {
      read_matrix(reader.rest(), kind % 3 == 1);
    }
    return true;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace chunkio::fuzz
