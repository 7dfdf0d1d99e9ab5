/// Whole files, through libhdf5: opening, and reading some of all there is.
#include <algorithm>
#include <memory>
#include <vector>

#include <chunkio/dataset.hpp>
#include <chunkio/error.hpp>
#include <chunkio/tuning.hpp>

#include "fuzz/fuzz_target.hpp"
#include "support/byte_sources.hpp"

namespace chunkio::fuzz {
namespace {

void read_some(const Dataset& dataset) {
  const DatasetInfo& info = dataset.info();
  const std::int64_t rows = std::min<std::int64_t>(dataset.size(), 20);
  std::vector<FieldInfo> arrays = info.fields;
  if (info.sparse) {
    (void)dataset.read_sparse(0, rows);
  } else if (info.encoded) {
    for (std::int64_t row = 0; row < rows; ++row) (void)dataset.read_encoded(row);
  } else {
    arrays.push_back(info.leading);
  }
  for (const FieldInfo& array : arrays) {
    const std::size_t bytes = Dataset::row_bytes(array);
    if (bytes > (std::size_t{1} << 20)) continue;
    std::vector<std::byte> out(bytes * static_cast<std::size_t>(rows));
    dataset.read_field(array.name, 0, rows, out);
    dataset.read_field(array.name, dataset.size() - rows, rows, out);
  }
}

}  // namespace

bool run(std::span<const std::byte> input) {
  try {
    const Dataset dataset = Dataset::open(std::make_shared<const test::MemorySource>(input));
    (void)inspect(dataset);
    read_some(dataset);
    return true;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace chunkio::fuzz
