/// The simulated chunk cache against libhdf5's own: real files, random chunks, cache settings and
/// orders, and every request that libhdf5 makes to the file counted. After each single read, what
/// was predicted is what was counted. The seed is logged; set CHUNKIO_TEST_SEED to repeat a run.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <hdf5.h>

#include "h5/error_stack.hpp"
#include "h5/handle.hpp"
#include "h5/library.hpp"
#include "harness/metered_driver.hpp"
#include "plan/cache_simulator.hpp"
#include "support/scratch.hpp"

namespace chunkio::plan {
namespace {

using h5::check_id;
using h5::check_status;
using Numbers = std::vector<std::int64_t>;

constexpr const char* kDoing = "test the chunk cache with";

/// One H5Dread of a box.
struct Box {
  Numbers first;
  Numbers count;
};

enum class Filter { none, deflate, shuffle_deflate, fletcher32 };

struct Case {
  Numbers shape;
  Numbers chunk;
  std::int64_t element_bytes = 1;
  Filter filter = Filter::none;
  bool resizable = false;      // needed for chunks larger than the dataset
  bool newest_format = false;  // other chunk indexes
  ChunkCacheSettings settings;
  std::string order;
  std::vector<Box> reads;

  [[nodiscard]] std::int64_t chunk_bytes() const {
    return std::accumulate(chunk.begin(), chunk.end(), element_bytes, std::multiplies<>());
  }
  [[nodiscard]] std::string text() const {
    return "shape " + Shape(shape).to_string() + " chunks " + Shape(chunk).to_string() + " of " +
           std::to_string(element_bytes) + " bytes, filter " +
           std::to_string(static_cast<int>(filter)) + (newest_format ? " newest format" : "") +
           ", cache of " + std::to_string(settings.rdcc_nslots) + " slots, " +
           std::to_string(settings.rdcc_nbytes) + " bytes, w0 " + std::to_string(settings.rdcc_w0) +
           ", order " + order;
  }
};

std::vector<hsize_t> as_sizes(const Numbers& numbers) { return {numbers.begin(), numbers.end()}; }

class ChunkCacheTest : public ::testing::Test {
 protected:
  std::int64_t between(std::int64_t least, std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(least, most)(random_);
  }
  bool once_in(std::int64_t n) { return between(1, n) == 1; }
  template <class T>
  T one_of(const std::vector<T>& values) {
    return values[static_cast<std::size_t>(between(0, std::ssize(values) - 1))];
  }

  /// \param longest_first, num_reads  the most rows, and H5Dreads.
  Case make_case(std::int64_t longest_first, std::int64_t num_reads) {
    Case made;
    const std::int64_t rank = between(1, 4);
    made.resizable = once_in(6);
    std::int64_t elements = 1;
    for (std::int64_t axis = 0; axis < rank; ++axis) {
      const std::int64_t size = axis == 0 ? between(1, longest_first) : between(1, 12);
      made.shape.push_back(size);
      elements *= size;
      std::int64_t chunk = between(1, size);
      if (axis > 0 && once_in(2)) chunk = size;  // whole samples
      if (made.resizable && once_in(4)) chunk = between(size, 2 * size);
      if (axis == 0 && rank == 1 && chunk > 64) chunk = between(1, 64);
      made.chunk.push_back(chunk);
    }
    made.element_bytes = one_of<std::int64_t>({1, 2, 4, 8});
    made.filter = one_of<Filter>(
        {Filter::none, Filter::none, Filter::deflate, Filter::shuffle_deflate, Filter::fletcher32});
    made.newest_format = once_in(2);

    const std::int64_t chunk_bytes = made.chunk_bytes();
    std::int64_t num_chunks = 1;
    for (std::size_t axis = 0; axis < made.shape.size(); ++axis) {
      num_chunks *= (made.shape[axis] + made.chunk[axis] - 1) / made.chunk[axis];
    }
    made.settings.rdcc_nslots = static_cast<std::uint64_t>(one_of<std::int64_t>(
        {0, 1, 2, 3, 7, 11, 16, 101, 521, 521, 521, 11213, between(1, 2 * num_chunks + 1),
         between(1, num_chunks), between(1, num_chunks)}));
    made.settings.rdcc_nbytes = static_cast<std::uint64_t>(one_of<std::int64_t>(
        {0, 1, chunk_bytes - 1, chunk_bytes, 2 * chunk_bytes, 3 * chunk_bytes + 1,
         between(0, num_chunks * chunk_bytes), between(chunk_bytes, 6 * chunk_bytes),
         between(chunk_bytes, 20 * chunk_bytes), between(chunk_bytes, 20 * chunk_bytes),
         std::int64_t{1} << 20}));
    made.settings.rdcc_w0 = one_of<double>(
        {0, 0.25, 0.5, 0.75, 0.75, 1, 1, static_cast<double>(between(0, 1000)) / 1000});
    add_reads(made, num_reads);
    return made;
  }

  void add_rows(Case& made, const Numbers& rows, std::int64_t rows_a_read = 1) {
    for (const std::int64_t row : rows) {
      Box box{Numbers(made.shape.size(), 0), made.shape};
      box.first[0] = row;
      box.count[0] = std::min(rows_a_read, made.shape[0] - row);
      made.reads.push_back(std::move(box));
    }
  }

  void add_reads(Case& made, std::int64_t num_reads) {
    const std::int64_t n = made.shape[0];
    Numbers rows(static_cast<std::size_t>(n));
    std::iota(rows.begin(), rows.end(), 0);
    switch (between(0, 7)) {
      case 0:
        made.order = "sequential";
        add_rows(made, rows);
        break;
      case 1:
        made.order = "random";
        std::shuffle(rows.begin(), rows.end(), random_);
        add_rows(made, rows);
        add_rows(made, rows);
        break;
      case 2: {
        made.order = "chunk shuffled";
        Numbers groups(static_cast<std::size_t>((n + made.chunk[0] - 1) / made.chunk[0]));
        std::iota(groups.begin(), groups.end(), 0);
        std::shuffle(groups.begin(), groups.end(), random_);
        const std::int64_t window = between(1, 6);
        for (std::size_t first = 0; first < groups.size();
             first += static_cast<std::size_t>(window)) {
          Numbers mixed;
          for (std::size_t at = first;
               at < std::min(first + static_cast<std::size_t>(window), groups.size()); ++at) {
            for (std::int64_t row = groups[at] * made.chunk[0];
                 row < std::min(n, (groups[at] + 1) * made.chunk[0]); ++row) {
              mixed.push_back(row);
            }
          }
          std::shuffle(mixed.begin(), mixed.end(), random_);
          add_rows(made, mixed);
        }
        break;
      }
      case 3: {
        made.order = "repeated";
        const std::int64_t few = between(1, std::min<std::int64_t>(n, 6));
        std::shuffle(rows.begin(), rows.end(), random_);
        for (std::int64_t i = 0; i < num_reads; ++i) {
          add_rows(made, {rows[static_cast<std::size_t>(between(0, few - 1))]});
        }
        break;
      }
      case 4: {
        made.order = "strided";
        const std::int64_t stride = between(1, n);
        for (std::int64_t start = 0; start < stride; ++start) {
          for (std::int64_t row = start; row < n; row += stride) add_rows(made, {row});
        }
        break;
      }
      case 5:
        made.order = "parts of rows";
        for (std::int64_t i = 0; i < num_reads; ++i) made.reads.push_back(random_box(made, true));
        break;
      case 6:
        made.order = "several rows";
        for (std::int64_t i = 0; i < num_reads; ++i) {
          add_rows(made, {between(0, n - 1)}, between(1, 2 * made.chunk[0]));
        }
        break;
      default:
        made.order = "boxes";
        for (std::int64_t i = 0; i < num_reads; ++i) made.reads.push_back(random_box(made, false));
    }
    // Some begin in the middle of what they go through, and end early.
    if (std::ssize(made.reads) > num_reads) {
      const std::int64_t from = between(0, std::ssize(made.reads) - num_reads);
      made.reads = {made.reads.begin() + from, made.reads.begin() + from + num_reads};
    }
  }

  Box random_box(const Case& made, bool one_row) {
    Box box;
    for (std::size_t axis = 0; axis < made.shape.size(); ++axis) {
      const std::int64_t size = made.shape[axis];
      const std::int64_t count = axis == 0 && one_row ? 1 : between(1, size);
      box.count.push_back(axis > 0 && once_in(3) ? size : count);
      box.first.push_back(between(0, size - box.count.back()));
    }
    return box;
  }

  /// Writes the file. Values have few bits, so that filters make chunks of different sizes.
  void write(const Case& made, const std::string& path) {
    const h5::ListId access(check_id(H5Pcreate(H5P_FILE_ACCESS), kDoing, path));
    check_status(H5Pset_libver_bounds(access.get(),
                                      made.newest_format ? H5F_LIBVER_LATEST : H5F_LIBVER_EARLIEST,
                                      H5F_LIBVER_LATEST),
                 kDoing, path);
    const h5::FileId file(
        check_id(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access.get()), kDoing, path));
    const h5::ListId create(check_id(H5Pcreate(H5P_DATASET_CREATE), kDoing, path));
    const int rank = static_cast<int>(made.shape.size());
    check_status(H5Pset_chunk(create.get(), rank, as_sizes(made.chunk).data()), kDoing, path);
    if (made.filter == Filter::shuffle_deflate) {
      check_status(H5Pset_shuffle(create.get()), kDoing, path);
    }
    if (made.filter == Filter::deflate || made.filter == Filter::shuffle_deflate) {
      check_status(H5Pset_deflate(create.get(), 1), kDoing, path);
    }
    if (made.filter == Filter::fletcher32) {
      check_status(H5Pset_fletcher32(create.get()), kDoing, path);
    }
    const std::vector<hsize_t> most(made.shape.size(), H5S_UNLIMITED);
    const h5::SpaceId space(check_id(
        H5Screate_simple(rank, as_sizes(made.shape).data(), made.resizable ? most.data() : nullptr),
        kDoing, path));
    const h5::DatasetId dataset(check_id(H5Dcreate2(file.get(), "images", type(made), space.get(),
                                                    H5P_DEFAULT, create.get(), H5P_DEFAULT),
                                         kDoing, path));
    std::vector<std::uint8_t> values(static_cast<std::size_t>(std::accumulate(
        made.shape.begin(), made.shape.end(), made.element_bytes, std::multiplies<>())));
    for (std::uint8_t& value : values) value = static_cast<std::uint8_t>(between(0, 3));
    check_status(H5Dwrite(dataset.get(), type(made), H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()),
                 kDoing, path);
  }

  static hid_t type(const Case& made) {
    switch (made.element_bytes) {
      case 1:
        return H5T_NATIVE_UINT8;
      case 2:
        return H5T_NATIVE_UINT16;
      case 4:
        return H5T_NATIVE_UINT32;
      default:
        return H5T_NATIVE_UINT64;
    }
  }

  /// Reads as `made` says, and compares after each H5Dread. \returns what it came to.
  CacheCounts compare(const Case& made) {
    const auto guard = h5::Library::lock();
    const std::string path = folder_.file("cache.h5");
    write(made, path);

    std::map<std::int64_t, std::int64_t> chunks;  // where each lies, and its stored bytes
    std::int64_t requests = 0;
    std::int64_t bytes = 0;
    std::int64_t whole_chunks = 0;
    bench::MeteredReads reads([&](const bench::MeteredRead& read) {
      if (!read.raw_data) return;
      ++requests;
      bytes += read.bytes;
      const auto found = chunks.find(read.file_offset);
      if (found != chunks.end() && found->second == read.bytes) ++whole_chunks;
    });
    const h5::ListId access(check_id(H5Pcreate(H5P_FILE_ACCESS), kDoing, path));
    reads.install(access, path);
    const h5::FileId file(
        check_id(H5Fopen(path.c_str(), H5F_ACC_RDONLY, access.get()), kDoing, path));
    const h5::ListId cache(check_id(H5Pcreate(H5P_DATASET_ACCESS), kDoing, path));
    check_status(H5Pset_chunk_cache(cache.get(), made.settings.rdcc_nslots,
                                    made.settings.rdcc_nbytes, made.settings.rdcc_w0),
                 kDoing, path);
    const h5::DatasetId dataset(
        check_id(H5Dopen2(file.get(), "images", cache.get()), kDoing, path));

    const StoredGeometry geometry{.shape = Shape(made.shape),
                                  .chunk_shape = Shape(made.chunk),
                                  .element_bytes = made.element_bytes,
                                  .filtered = made.filter != Filter::none,
                                  .stored_bytes = stored_bytes(made, dataset, path, chunks)};
    CacheSimulator simulated(geometry, made.settings);

    const h5::SpaceId space(check_id(H5Dget_space(dataset.get()), kDoing, path));
    std::vector<std::uint8_t> values;
    for (std::size_t i = 0; i < made.reads.size(); ++i) {
      const Box& box = made.reads[i];
      check_status(H5Sselect_hyperslab(space.get(), H5S_SELECT_SET, as_sizes(box.first).data(),
                                       nullptr, as_sizes(box.count).data(), nullptr),
                   kDoing, path);
      const h5::SpaceId memory(check_id(
          H5Screate_simple(static_cast<int>(box.count.size()), as_sizes(box.count).data(), nullptr),
          kDoing, path));
      values.resize(static_cast<std::size_t>(std::accumulate(
          box.count.begin(), box.count.end(), made.element_bytes, std::multiplies<>())));
      check_status(
          H5Dread(dataset.get(), type(made), memory.get(), space.get(), H5P_DEFAULT, values.data()),
          kDoing, path);
      simulated.read_box(box.first, box.count);
      EXPECT_EQ(simulated.counts().file_bytes, bytes) << "read " << i << ": " << made.text();
      EXPECT_EQ(simulated.counts().requests, requests) << "read " << i << ": " << made.text();
      if (HasFailure()) break;
    }
    const CacheCounts& counts = simulated.counts();
    if (counts.piece_reads == 0) {
      EXPECT_EQ(counts.loads, whole_chunks) << made.text();
    }
    EXPECT_EQ(counts.visits, counts.hits + counts.loads + counts.piece_reads);
    EXPECT_EQ(counts.reads, std::ssize(made.reads));
    return counts;
  }

  /// Of each chunk, by its number.
  static Numbers stored_bytes(const Case& made, const h5::DatasetId& dataset,
                              const std::string& path,
                              std::map<std::int64_t, std::int64_t>& chunks) {
    Numbers found;
    std::vector<hsize_t> at(made.shape.size(), 0);
    for (;;) {
      unsigned mask = 0;
      haddr_t address = HADDR_UNDEF;
      hsize_t size = 0;
      check_status(H5Dget_chunk_info_by_coord(dataset.get(), at.data(), &mask, &address, &size),
                   kDoing, path);
      found.push_back(static_cast<std::int64_t>(size));
      chunks[static_cast<std::int64_t>(address)] = static_cast<std::int64_t>(size);
      std::size_t axis = made.shape.size();
      while (axis > 0 && at[axis - 1] + static_cast<hsize_t>(made.chunk[axis - 1]) >=
                             static_cast<hsize_t>(made.shape[axis - 1])) {
        at[--axis] = 0;
      }
      if (axis == 0) return found;
      at[axis - 1] += static_cast<hsize_t>(made.chunk[axis - 1]);
    }
  }

  /// What all cases together must have come across, for a comparison to say something.
  void compare_many(int cases, std::int64_t longest_first, std::int64_t num_reads) {
    CacheCounts all;
    std::map<std::string, int> orders;
    std::map<Filter, int> filters;
    for (int i = 0; i < cases; ++i) {
      const Case made = make_case(longest_first, num_reads);
      const CacheCounts counts = compare(made);
      ASSERT_FALSE(HasFailure()) << "case " << i;
      all.hits += counts.hits;
      all.loads += counts.loads;
      all.piece_reads += counts.piece_reads;
      all.evictions += counts.evictions;
      ++orders[made.order];
      ++filters[made.filter];
    }
    EXPECT_GT(all.hits, cases);
    EXPECT_GT(all.loads, cases);
    EXPECT_GT(all.piece_reads, cases);
    EXPECT_GT(all.evictions, cases);
    EXPECT_EQ(orders.size(), 8U);
    EXPECT_EQ(filters.size(), 4U);
  }

  test::ScratchFolder folder_;
  std::mt19937_64 random_{test::test_seed()};
};

TEST_F(ChunkCacheTest, CountsOf400RandomCasesAreThoseOfLibhdf5) { compare_many(400, 60, 150); }

using EveryChunkCache = ChunkCacheTest;

TEST_F(EveryChunkCache, CountsOf3000RandomCasesAreThoseOfLibhdf5) { compare_many(3000, 120, 300); }

}  // namespace
}  // namespace chunkio::plan
