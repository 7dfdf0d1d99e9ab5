#include "h5/chunk_tree.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <random>

#include <gtest/gtest.h>
#include <hdf5.h>

#include <chunkio/dataset.hpp>

#include "base/access.hpp"
#include "h5/dataset_impl.hpp"
#include "h5/handle.hpp"
#include "h5/library.hpp"
#include "io/local_file.hpp"
#include "io/wrapping_source.hpp"
#include "support/byte_sources.hpp"
#include "support/cached_pages.hpp"
#include "support/h5_files.hpp"
#include "support/scratch.hpp"

namespace chunkio::h5 {
namespace {

using Bytes = std::vector<std::uint8_t>;

/// A file in memory, of which nothing is read that is not there.
class InMemory : public test::MemorySource {
 public:
  explicit InMemory(const Bytes& bytes) : MemorySource(std::as_bytes(std::span(bytes))) {}

  ReadTime read_at(std::int64_t offset, std::span<std::byte> out,
                   const std::stop_token& stop) const override {
    ++reads;
    return MemorySource::read_at(offset, out, stop);
  }
  [[nodiscard]] std::unique_ptr<const ByteSource> prefetch(
      std::span<const ByteRange> ranges) const noexcept override {
    EXPECT_TRUE(
        std::is_sorted(ranges.begin(), ranges.end(),
                       [](const ByteRange& a, const ByteRange& b) { return a.begin < b.begin; }));
    ++prefetches;
    return nullptr;
  }

  mutable std::int64_t reads = 0;
  mutable std::int64_t prefetches = 0;
};

/// What is known of the images of a file before their tree is read.
struct Images {
  explicit Images(const std::string& path) : bytes(test::read_bytes(path)) {
    const Dataset dataset = Dataset::open(path);
    const StoredArray& array = *chunkio::internal::Access::impl(dataset)->leading;
    shape = array.stored.shape;
    chunk = array.stored.chunk_shape;
    num_chunks = array.num_chunks;
    const auto guard = Library::lock();
    const FileId file(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT));
    const DatasetId images(H5Dopen2(file.get(), "images", H5P_DEFAULT));
    const ListId creation(H5Fget_create_plist(file.get()));
    hsize_t user_block = 0;
    unsigned int half_entries = 0;
    EXPECT_GE(H5Pget_userblock(creation.get(), &user_block), 0);
    EXPECT_GE(H5Pget_istore_k(creation.get(), &half_entries), 0);
    header.base = static_cast<std::int64_t>(user_block);
    node_entries = 2 * half_entries;
#if H5_VERSION_GE(1, 12, 0)
    H5O_info2_t info;
    EXPECT_GE(H5Oget_info3(images.get(), &info, H5O_INFO_BASIC), 0);
    std::memcpy(&header.address, &info.token, sizeof header.address);
#else
    H5O_info_t info;
    EXPECT_GE(H5Oget_info2(images.get(), &info, H5O_INFO_BASIC), 0);
    header.address = info.addr;
#endif
    // As libhdf5 finds them.
    const auto rank = shape.rank();
    std::array<hsize_t, Shape::kMaxRank> start{};
    for (std::int64_t number = 0; number < num_chunks; ++number) {
      std::int64_t rest = number;
      for (std::size_t axis = rank; axis-- > 0;) {
        const std::int64_t along = (shape[axis] + chunk[axis] - 1) / chunk[axis];
        start[axis] = static_cast<hsize_t>(rest % along * chunk[axis]);
        rest /= along;
      }
      unsigned int mask = 0;
      haddr_t address = 0;
      hsize_t size = 0;
      EXPECT_GE(H5Dget_chunk_info_by_coord(images.get(), start.data(), &mask, &address, &size), 0);
      if (address == HADDR_UNDEF) continue;
      chunks[number] = {number, address, static_cast<std::uint32_t>(size), mask};
    }
  }

  [[nodiscard]] std::optional<ChunkTree> tree(const ByteSource& source) const {
    return find_chunk_tree(source, header, chunk, node_entries);
  }
  [[nodiscard]] std::string list(const ByteSource& source, const ChunkTree& tree,
                                 std::vector<TreeEntry>& entries) const {
    std::string damage = list_chunks(source, tree, shape, chunk, [&](const TreeEntry& entry) {
                           entries.push_back(entry);
                         }).damage;
    std::sort(entries.begin(), entries.end(),
              [](const TreeEntry& a, const TreeEntry& b) { return a.number < b.number; });
    return damage;
  }

  Bytes bytes;
  Shape shape, chunk;
  std::int64_t num_chunks = 0;
  ObjectHeader header;
  std::uint32_t node_entries = 0;
  std::map<std::int64_t, TreeEntry> chunks;
};

class ChunkTreeKindTest : public testing::TestWithParam<const char*> {};

TEST_P(ChunkTreeKindTest, ListsWhatLibhdf5Finds) {
  const test::ScratchFolder folder;
  const Images images(test::h5py_file(folder, GetParam()));
  const InMemory source(images.bytes);
  const auto tree = images.tree(source);
  ASSERT_TRUE(tree);
  std::vector<TreeEntry> entries;
  EXPECT_EQ(images.list(source, *tree, entries), "");
  ASSERT_EQ(entries.size(), images.chunks.size());
  std::size_t i = 0;
  for (const auto& [number, expected] : images.chunks) {
    const TreeEntry& entry = entries[i++];
    ASSERT_EQ(entry.number, number);
    // Some versions of libhdf5 say where it lies in the file, others count from its base.
    const std::uint64_t base = static_cast<std::uint64_t>(tree->base);
    ASSERT_TRUE(entry.address == expected.address || entry.address + base == expected.address);
    ASSERT_EQ(entry.stored_bytes, expected.stored_bytes);
    ASSERT_EQ(entry.filter_mask, expected.filter_mask);
  }
}

INSTANTIATE_TEST_SUITE_P(Files, ChunkTreeKindTest,
                         testing::Values("btree1", "btree1_user_block", "one_image_chunks",
                                         "one_image_filters", "scattered", "scattered_holes",
                                         "scattered_cut", "scattered_cut_deflate", "deep_tree",
                                         "deep_tree_cut", "tree_header_2", "tree_user_block",
                                         "masked_chunks", "unallocated_chunks", "lzf_masked"),
                         [](const auto& kind) { return std::string(kind.param); });

TEST(ChunkTree, DatasetsOfOtherKindsHaveNone) {
  const test::ScratchFolder folder;
  for (const char* name : {"fixed_array", "extensible_array", "btree2"}) {
    const Images images(test::h5py_file(folder, name));
    EXPECT_FALSE(images.tree(InMemory(images.bytes))) << name;
  }
}

TEST(ChunkTree, ChunksOfAnotherShapeAreNotBelieved) {
  const test::ScratchFolder folder;
  const Images images(test::h5py_file(folder, "btree1"));
  const InMemory source(images.bytes);
  EXPECT_FALSE(find_chunk_tree(source, images.header, Shape{8, 8, 8, 3}, images.node_entries));
  EXPECT_FALSE(find_chunk_tree(source, images.header, Shape{7, 8, 8}, images.node_entries));
  ObjectHeader elsewhere = images.header;
  elsewhere.address = images.bytes.size() - 10;
  EXPECT_FALSE(find_chunk_tree(source, elsewhere, images.chunk, images.node_entries));
  elsewhere.address = ~std::uint64_t{0};
  EXPECT_FALSE(find_chunk_tree(source, elsewhere, images.chunk, images.node_entries));
}

/// In random order they were written, so that neighbours in the tree lie anywhere.
TEST(ChunkTree, NodesOfALevelAreAskedForTogetherAsTheyLieInTheFile) {
  const test::ScratchFolder folder;
  const Images images(test::h5py_file(folder, "scattered"));
  const InMemory source(images.bytes);
  std::vector<TreeEntry> entries;
  EXPECT_EQ(images.list(source, *images.tree(source), entries), "");
  EXPECT_EQ(source.prefetches, 1) << "the root comes alone, and then all leaves";
}

/// Only the number of chunks can be large, and it is that of the dataset.
TEST(ChunkTree, ManyChunksTakeOneReadForEachNode) {
  const test::ScratchFolder folder;
  const std::string path = test::h5py_file(folder, "many_chunks");
  const Dataset dataset = Dataset::open(path);
  const StoredArray& array = *chunkio::internal::Access::impl(dataset)->leading;
  const auto counting = std::make_shared<test::CountingSource>(path);
  const Dataset counted = Dataset::open(counting);
  const auto before = counting->requests.load();
  const std::array<std::int64_t, 4> coord{77'777, 0, 0, 0};
  const ChunkIndex& index = *chunkio::internal::Access::impl(counted)->leading->index;
  EXPECT_EQ(index.find(coord).file_offset, array.index->find(coord).file_offset);
  EXPECT_LT(counting->requests - before, CHUNKIO_HAVE_CHUNK_ITER ? 10'000 : 3'500);
  EXPECT_LE(index.memory_bytes(), 20 * 100'000 + (1 << 20));
}

/// A local file whose tree lies among chunks of 8 KiB.
TEST(ChunkTree, PagesOfNodesAreKeptOrDroppedWhoeverReadThem) {
  constexpr std::int64_t kChunks = 4000;
  const test::ScratchFolder folder;
  const std::string path = folder.file("images.h5");
  {
    const auto guard = Library::lock();
    const FileId file(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT));
    const std::array<hsize_t, 2> shape{kChunks, 8192};
    const std::array<hsize_t, 2> chunk{1, 8192};
    const SpaceId space(H5Screate_simple(2, shape.data(), nullptr));
    const ListId creation(H5Pcreate(H5P_DATASET_CREATE));
    ASSERT_GE(H5Pset_chunk(creation.get(), 2, chunk.data()), 0);
    const DatasetId dataset(H5Dcreate2(file.get(), "images", H5T_STD_U8LE, space.get(), H5P_DEFAULT,
                                       creation.get(), H5P_DEFAULT));
    const std::vector<std::byte> row(8192);
    for (std::array<hsize_t, 2> place{}; place[0] < kChunks; ++place[0]) {
      ASSERT_GE(H5Dwrite_chunk(dataset.get(), H5P_DEFAULT, 0, place.data(), row.size(), row.data()),
                0);
    }
  }
  const io::LocalFile bytes(path);
  const auto size = static_cast<std::size_t>(bytes.size());
  test::drop_from_cache(bytes.fd());
  if (test::cached_bytes(bytes.fd(), size) != 0) GTEST_SKIP() << "this file system keeps its pages";
  const auto cached_after = [&](NodePages pages) {
    std::optional<ChunkTree> tree;
    {
      const auto guard = Library::lock();
      const FileId file(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT));
      const DatasetId dataset(H5Dopen2(file.get(), "images", H5P_DEFAULT));
      tree = find_chunk_tree(bytes, file, dataset.get(), Shape{1, 8192}, path);
    }
    std::atomic<std::int64_t> listed = 0;
    list_chunks(
        bytes, tree.value(), Shape{kChunks, 8192}, Shape{1, 8192},
        [&](const TreeEntry&) { ++listed; }, pages);
    EXPECT_EQ(listed, kChunks);
    return test::cached_bytes(bytes.fd(), size);
  };
  const std::size_t kept = cached_after(NodePages::kept);
  EXPECT_GE(kept, kChunks / 64 * 4096);
  EXPECT_LT(kept, size / 4) << "chunks were read";
  EXPECT_LT(cached_after(NodePages::dropped), kept / 2);
}

// ---- Damage ----

/// What must hold of whatever is listed, and of how long that takes.
void expect_sane(const Images& images, const Bytes& bytes) {
  const InMemory source(bytes);
  const auto tree = images.tree(source);
  if (!tree) return;
  std::vector<TreeEntry> entries;
  const std::string damage = images.list(source, *tree, entries);
  EXPECT_EQ(damage.find('\n'), std::string::npos);
  EXPECT_LE(source.reads, 33 * (2 * images.num_chunks + 64) + 70);
  std::int64_t last = -1;
  for (const TreeEntry& entry : entries) {
    ASSERT_GT(entry.number, last);
    ASSERT_LT(entry.number, images.num_chunks);
    last = entry.number;
  }
}

TEST(DamagedChunkTree, AnyBytesGiveAnAnswerSoon) {
  const test::ScratchFolder folder;
  std::mt19937_64 random(test::test_seed());
  const auto start = std::chrono::steady_clock::now();
  int runs = 0;
  for (const char* name : {"deep_tree", "deep_tree_cut", "one_image_chunks", "tree_header_2"}) {
    SCOPED_TRACE(name);
    const Images images(test::h5py_file(folder, name));
    // Where nodes are, and the header of the dataset.
    std::vector<std::size_t> places{static_cast<std::size_t>(images.header.address)};
    for (std::size_t at = 0; at + 8 < images.bytes.size(); ++at) {
      if (std::memcmp(images.bytes.data() + at, "TREE\1", 5) == 0) places.push_back(at);
    }
    ASSERT_GT(places.size(), 10U);
    for (int i = 0; i < 1500; ++i, ++runs) {
      Bytes bytes = images.bytes;
      for (std::uint64_t change = random() % 4 + 1; change > 0; --change) {
        const std::size_t place = places[random() % places.size()];
        const std::size_t at = place + random() % (random() % 2 == 0 ? 24 : 400);
        if (at >= bytes.size()) continue;
        switch (random() % 4) {
          case 0:  // another node, or the same one again
            std::memcpy(&bytes[at], &places[random() % places.size()],
                        std::min<std::size_t>(8, bytes.size() - at));
            break;
          case 1:
            bytes[at] = static_cast<std::uint8_t>(random());
            break;
          case 2:
            bytes[at] ^= static_cast<std::uint8_t>(1U << random() % 8);
            break;
          default:
            bytes[at] = random() % 2 == 0 ? 0 : 255;
            break;
        }
      }
      expect_sane(images, bytes);
      if (testing::Test::HasFatalFailure()) return;
    }
  }
  EXPECT_EQ(runs, 6000);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::minutes(2));
}

TEST(DamagedChunkTree, AFileOfAnyLengthIsReadToItsEndOnly) {
  const test::ScratchFolder folder;
  const Images images(test::h5py_file(folder, "deep_tree_cut"));
  for (std::size_t part = 0; part < 100; ++part) {
    Bytes bytes = images.bytes;
    bytes.resize(bytes.size() * part / 100);
    expect_sane(images, bytes);
  }
}

/// Nodes of up to two entries for chunks of one element of a one-dimensional dataset.
class MadeTree {
 public:
  static constexpr std::uint64_t kNode = 24 + 3 * 24 + 2 * 8;

  struct Entry {
    std::uint64_t key = 0;
    std::uint64_t child = 0;
  };

  /// \returns its address.
  std::uint64_t add(std::uint8_t level, const std::vector<Entry>& entries, std::uint64_t last_key) {
    const std::size_t at = bytes_.size();
    bytes_.resize(at + kNode);
    std::memcpy(&bytes_[at], "TREE\1", 5);
    bytes_[at + 5] = level;
    bytes_[at + 6] = static_cast<std::uint8_t>(entries.size());
    std::size_t place = at + 24;
    for (const Entry& entry : entries) {
      bytes_[place] = 1;  // stored bytes
      put(place + 8, entry.key);
      put(place + 24, entry.child);
      place += 32;
    }
    if (place + 24 <= bytes_.size()) put(place + 8, last_key);
    return at;
  }
  /// \returns what is wrong; `numbers` are the chunks that are listed.
  std::string list(std::uint64_t root, std::vector<std::int64_t>& numbers,
                   std::int64_t elements = 100) const {
    const InMemory source(bytes_);
    const ChunkTree tree{.root = root, .node_entries = 2};
    const ListedTree listed =
        list_chunks(source, tree, Shape{elements}, Shape{1},
                    [&](const TreeEntry& entry) { numbers.push_back(entry.number); });
    reads = source.reads;
    outside = listed.outside;
    return listed.damage;
  }
  void put(std::size_t at, std::uint64_t value) { std::memcpy(&bytes_[at], &value, 8); }
  /// Bytes that are no node.
  void skip(std::size_t count) { bytes_.resize(bytes_.size() + count); }
  [[nodiscard]] const Bytes& bytes() const { return bytes_; }
  [[nodiscard]] std::uint8_t& at(std::size_t place) { return bytes_[place]; }

  mutable std::int64_t reads = 0;
  mutable bool outside = false;

 private:
  Bytes bytes_ = Bytes(64);
};

using Numbers = std::vector<std::int64_t>;

/// As a server is: asks for much at a time.
class Distant final : public InMemory {
 public:
  using InMemory::InMemory;

  [[nodiscard]] std::unique_ptr<const ByteSource> prefetch(
      std::span<const ByteRange>) const noexcept override {
    return kept ? nullptr : std::make_unique<Through>(*this);
  }
  [[nodiscard]] std::int64_t request_bytes() const noexcept override {
    return std::int64_t{2} << 20;
  }

  bool kept = false;  ///< Nothing has to be requested.

 private:
  class Through final : public io::WrappingSource {
   public:
    explicit Through(const Distant& source)
        : WrappingSource({std::shared_ptr<const ByteSource>(), &source}) {}
  };
};

/// Parents 1.5 MiB apart, each with a leaf before it and one behind; the first leaf of the last one
/// lies at the beginning of the file, and one leads outside of it.
struct TreeAmongChunks {
  static constexpr std::uint64_t kParents = 32;
  static constexpr std::int64_t kChunks = 2 * kParents;
  static constexpr std::int64_t kMissing = 15;

  TreeAmongChunks() {
    constexpr std::size_t kGap = std::size_t{512} << 10;
    const auto leaf = [&](std::uint64_t key) {
      leaves.push_back(file.add(0, {{key, 5000}}, key + 1));
      return leaves.back();
    };
    const auto of_last = leaf(2 * kParents - 2);
    std::vector<std::uint64_t> nodes;
    for (std::uint64_t i = 0; i < kParents; ++i) {
      const std::uint64_t key = 2 * i;
      const auto before = i + 1 == kParents ? of_last : leaf(key);
      file.skip(kGap);
      const std::uint64_t behind = file.bytes().size() + MadeTree::kNode + kGap;
      const bool outside = key + 1 == kMissing;
      nodes.push_back(
          file.add(1, {{key, before}, {key + 1, outside ? 1U << 30 : behind}}, key + 2));
      parents.push_back(nodes.back());
      file.skip(kGap);
      (void)leaf(key + 1);
      file.skip(kGap);
    }
    for (std::uint8_t level = 2; nodes.size() > 1; ++level) {
      std::vector<std::uint64_t> above;
      const std::uint64_t keys = std::uint64_t{1} << level;  // of a node
      for (std::size_t i = 0; i < nodes.size(); i += 2) {
        const std::uint64_t key = i / 2 * keys;
        above.push_back(
            file.add(level, {{key, nodes[i]}, {key + keys / 2, nodes[i + 1]}}, key + keys));
      }
      nodes = above;
    }
    tree = {.root = nodes[0], .node_entries = 2};
  }

  /// \param numbers  of the chunks that are listed, ascending.
  std::string list(const ByteSource& source, std::vector<std::int64_t>& numbers) const {
    std::string wrong =
        list_chunks(source, tree, Shape{kChunks}, Shape{1}, [&](const TreeEntry& entry) {
          numbers.push_back(entry.number);
        }).damage;
    std::sort(numbers.begin(), numbers.end());
    return wrong;
  }

  MadeTree file;
  std::vector<std::uint64_t> leaves;
  std::vector<std::uint64_t> parents;
  ChunkTree tree;
};

TEST(ChunkTree, OfADistantFileThatIsReadAnywayEachByteIsReadOnce) {
  const TreeAmongChunks made;
  Distant source(made.file.bytes());
  std::vector<std::int64_t> numbers;
  EXPECT_EQ(made.list(source, numbers), "its node at byte 1073741824 lies outside of the file");
  std::vector<std::int64_t> wanted;
  for (std::int64_t i = 0; i < TreeAmongChunks::kChunks; ++i) {
    if (i != TreeAmongChunks::kMissing) wanted.push_back(i);
  }
  EXPECT_EQ(numbers, wanted);
  // 31 nodes above, some 48 MiB in steps of 4, and the leaf at the beginning; not each of 32
  // parents and 63 leaves.
  EXPECT_LE(source.reads, 31 + 13 + 1);

  source.reads = 0;
  source.kept = true;
  std::vector<std::int64_t> again;
  (void)made.list(source, again);
  EXPECT_EQ(again, wanted);
  EXPECT_EQ(source.reads, 31 + 32 + 63) << "node by node";
}

TEST(DamagedChunkTree, OfADistantFileTheSameChunksAreListed) {
  TreeAmongChunks made;
  std::mt19937 random(static_cast<unsigned>(test::test_seed()));
  const auto one_of = [&](const std::vector<std::uint64_t>& nodes) {
    return nodes[random() % nodes.size()];
  };
  for (int round = 0; round < 60; ++round) {
    // Keys and addresses of children, levels, counts: mostly bytes that matter.
    const std::size_t at = (round % 2 == 0 ? one_of(made.parents) : one_of(made.leaves)) +
                           random() % (round % 3 == 0 ? 8 : MadeTree::kNode);
    const std::uint8_t before = made.file.at(at);
    made.file.at(at) = static_cast<std::uint8_t>(random());
    Distant source(made.file.bytes());
    std::vector<std::int64_t> swept;
    const bool damaged = !made.list(source, swept).empty();
    source.kept = true;
    std::vector<std::int64_t> by_levels;
    EXPECT_EQ(!made.list(source, by_levels).empty(), damaged) << "byte " << at;
    EXPECT_EQ(swept, by_levels) << "byte " << at;
    made.file.at(at) = before;
  }
}

TEST(DamagedChunkTree, SoundNodesAreListedBesideDamagedOnes) {
  MadeTree file;
  const auto one = file.add(0, {{0, 5000}, {1, 5001}}, 2);
  const auto two = file.add(0, {{7, 5007}, {3, 5003}}, 10);  // falls
  const auto three = file.add(0, {{11, 5011}}, 12);
  const auto left = file.add(1, {{0, one}, {3, two}}, 11);
  const auto right = file.add(1, {{11, three}, {12, 1U << 20}}, 20);  // a node outside of the file
  const auto root = file.add(2, {{0, left}, {11, right}}, 100);
  Numbers numbers;
  const std::string wrong = file.list(root, numbers);
  EXPECT_EQ(wrong, "its node at byte " + std::to_string(two) +
                       " has keys that do not rise from one chunk to the next");
  EXPECT_EQ(numbers, (Numbers{0, 1, 11}));
}

TEST(DamagedChunkTree, NodesThatAreNoneAreNamed) {
  MadeTree file;
  const auto leaf = file.add(0, {{0, 5000}}, 1);
  const auto wrong_level = file.add(3, {{0, leaf}}, 100);
  const auto wrong_root = file.add(40, {{0, leaf}}, 100);
  const auto too_many = file.add(0, {{0, 5000}, {1, 5001}, {2, 5002}}, 100);
  const auto outside = file.add(0, {{100, 5000}}, 101);
  const auto empty = file.add(0, {}, 0);
  const auto list = [&](std::uint64_t root) {
    Numbers numbers;
    std::string wrong = file.list(root, numbers);
    EXPECT_TRUE(numbers.empty() || root == leaf);
    return wrong;
  };
  EXPECT_EQ(list(leaf), "");
  EXPECT_FALSE(file.outside);
  EXPECT_EQ(list(outside), "");
  EXPECT_TRUE(file.outside);
  EXPECT_EQ(list(empty), "");
  EXPECT_NE(list(wrong_level).find("is of level 0"), std::string::npos);
  EXPECT_NE(list(wrong_root).find("is of level 40"), std::string::npos);
  EXPECT_NE(list(too_many).find("has 3 entries of at most 2"), std::string::npos);
  EXPECT_NE(list(0).find("is no node of an index of chunks"), std::string::npos);
  EXPECT_NE(list(1U << 30).find("lies outside of the file"), std::string::npos);
  EXPECT_NE(list(~std::uint64_t{0}).find("lies outside of the file"), std::string::npos);
}

/// Several threads read the nodes of a level of a local file, and find what one does.
TEST(DamagedChunkTree, OfALocalFileThreadsFindTheSame) {
  constexpr std::uint64_t kChunks = 4096;
  MadeTree file;
  std::vector<MadeTree::Entry> nodes;  // of a level, by their first chunks
  for (std::uint64_t chunk = 0; chunk < kChunks; ++chunk) nodes.push_back({chunk, chunk + 5000});
  for (std::uint8_t level = 0; nodes.size() > 1; ++level) {
    std::vector<MadeTree::Entry> parents;
    for (std::size_t i = 0; i < nodes.size(); i += 2) {
      const std::uint64_t end = i + 2 < nodes.size() ? nodes[i + 2].key : kChunks;
      parents.push_back({nodes[i].key, file.add(level, {nodes[i], nodes[i + 1]}, end)});
    }
    nodes = parents;
  }
  const std::uint64_t root = nodes.front().child;
  const test::ScratchFolder folder;
  const std::string path = folder.file("tree");
  const auto compare = [&] {
    Numbers expected;
    std::string damage = file.list(root, expected, kChunks);
    test::write_bytes(path, file.bytes());
    std::mutex mutex;  // guards `numbers`
    Numbers numbers;
    const ListedTree listed = list_chunks(io::LocalFile(path), {.root = root, .node_entries = 2},
                                          Shape{kChunks}, Shape{1}, [&](const TreeEntry& entry) {
                                            const std::lock_guard lock(mutex);
                                            numbers.push_back(entry.number);
                                          });
    std::ranges::sort(numbers);
    EXPECT_EQ(numbers, expected);
    EXPECT_EQ(listed.damage, damage);
    EXPECT_EQ(listed.outside, file.outside);
    return damage;
  };
  EXPECT_EQ(compare(), "");
  // Leaves come first in the file.
  const auto leaf = [](std::size_t i) { return 64 + i * MadeTree::kNode; };
  for (const std::size_t i : {2000U, 1200U, 300U}) file.at(leaf(i)) = 'F';
  file.put(leaf(700) + 32, kChunks + 7);  // its first chunk lies outside of the grid
  EXPECT_EQ(compare(),
            "its node at byte " + std::to_string(leaf(300)) + " is no node of an index of chunks");
}

/// Each node leads twice to the next: 2^30 ways to the leaf.
TEST(DamagedChunkTree, NoNodeIsReadForEachOfManyWaysToIt) {
  MadeTree file;
  std::uint64_t node = file.add(0, {{5, 5000}, {6, 5001}}, 100);
  for (std::uint8_t level = 1; level <= 30; ++level) {
    node = file.add(level, {{5, node}, {5, node}}, 100);
  }
  Numbers numbers;
  (void)file.list(node, numbers);
  EXPECT_LE(file.reads, 2 * 100 + 64);
  EXPECT_LE(numbers.size(), 2U);
  EXPECT_TRUE(file.outside) << "the other ways were not gone";
}

}  // namespace
}  // namespace chunkio::h5
