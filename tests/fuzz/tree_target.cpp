/// Files as their index of chunks is read without libhdf5. Where the dataset's header is (8 bytes),
/// entries of a node (1 byte), the shape and the chunk of a dataset of four axes (2 bytes each),
/// and the file.
#include <cstdlib>
#include <string>
#include <unordered_set>
#include <vector>

#include <chunkio/error.hpp>

#include "fuzz/fuzz_target.hpp"
#include "h5/chunk_tree.hpp"
#include "support/byte_sources.hpp"

namespace chunkio::fuzz {

bool run(std::span<const std::byte> input) {
  InputReader reader(input);
  const h5::ObjectHeader header{.address = reader.take<std::uint64_t>()};
  const std::uint32_t entries = 2 * (reader.take<std::uint8_t>() % 64U + 1);
  std::vector<std::int64_t> shape, chunk;
  for (int axis = 0; axis < 4; ++axis) shape.push_back(reader.take<std::uint16_t>() % 1000 + 1);
  for (int axis = 0; axis < 4; ++axis) chunk.push_back(reader.take<std::uint16_t>() % 1000 + 1);
  const test::MemorySource bytes(reader.rest());
  const Shape whole(std::span<const std::int64_t>{shape}),
      part(std::span<const std::int64_t>{chunk});
  const auto tree = h5::find_chunk_tree(bytes, header, part, entries);
  if (!tree) return false;
  std::unordered_set<std::int64_t> listed;
  const h5::ListedTree found =
      h5::list_chunks(bytes, *tree, whole, part, [&](const h5::TreeEntry& entry) {
        if (!listed.insert(entry.number).second) std::abort();
      });
  return found.damage.empty() && !listed.empty();
}

}  // namespace chunkio::fuzz
