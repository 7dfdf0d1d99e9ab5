#include "h5/filters.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <hdf5.h>
#include <libdeflate.h>

#include "h5/handle.hpp"
#include "h5/stored_chunk.hpp"
#include "support/scratch.hpp"

namespace chunkio::h5 {
namespace {

using Bytes = std::vector<std::byte>;

FilterStep deflate() { return {FilterStep::kDeflate, "deflate", {6}}; }
FilterStep shuffle(unsigned int bytes) { return {FilterStep::kShuffle, "shuffle", {bytes}}; }
FilterStep lzf_step() { return {FilterStep::kLzf, "lzf", {4, 261, 1000}}; }
FilterStep fletcher() { return {FilterStep::kFletcher32, "fletcher32", {}}; }

/// Every order of every subset of the three filters.
std::vector<std::vector<FilterStep>> pipelines(unsigned int element_bytes) {
  const std::array all{deflate(), shuffle(element_bytes), fletcher()};
  std::vector<std::vector<FilterStep>> found;
  std::array<std::size_t, 3> order{0, 1, 2};
  do {
    for (std::size_t length = 0; length <= 3; ++length) {
      std::vector<FilterStep> pipeline;
      for (std::size_t i = 0; i < length; ++i) pipeline.push_back(all[order[i]]);
      found.push_back(pipeline);
    }
  } while (std::next_permutation(order.begin(), order.end()));
  return found;
}

std::string describe(const std::vector<FilterStep>& filters) {
  std::string text;
  for (const FilterStep& filter : filters) text += filter.name + " ";
  return text;
}

/// The bytes that libhdf5 stores for one chunk `raw` of elements of `element_bytes`.
Bytes stored_by_libhdf5(const Bytes& raw, std::size_t element_bytes,
                        const std::vector<FilterStep>& filters) {
  const h5::ListId access(H5Pcreate(H5P_FILE_ACCESS));
  H5Pset_fapl_core(access.get(), 1 << 16, 0);
  const h5::FileId file(H5Fcreate("in memory", H5F_ACC_TRUNC, H5P_DEFAULT, access.get()));
  const h5::TypeId type(H5Tcreate(H5T_OPAQUE, element_bytes));
  const hsize_t count = raw.size() / element_bytes;
  const h5::SpaceId space(H5Screate_simple(1, &count, nullptr));
  const h5::ListId creation(H5Pcreate(H5P_DATASET_CREATE));
  H5Pset_chunk(creation.get(), 1, &count);
  for (const FilterStep& filter : filters) {
    if (filter.id == FilterStep::kDeflate) H5Pset_deflate(creation.get(), filter.values[0]);
    if (filter.id == FilterStep::kShuffle) H5Pset_shuffle(creation.get());
    if (filter.id == FilterStep::kFletcher32) H5Pset_fletcher32(creation.get());
  }
  const h5::DatasetId dataset(H5Dcreate2(file.get(), "x", type.get(), space.get(), H5P_DEFAULT,
                                         creation.get(), H5P_DEFAULT));
  EXPECT_GE(H5Dwrite(dataset.get(), type.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, raw.data()), 0);
  EXPECT_GE(H5Fflush(file.get(), H5F_SCOPE_LOCAL), 0);
  const hsize_t origin = 0;
  hsize_t size = 0;
  EXPECT_GE(H5Dget_chunk_storage_size(dataset.get(), &origin, &size), 0);
  Bytes stored(size);
  std::uint32_t mask = 0;
  EXPECT_GE(h5::read_stored_chunk(dataset.get(), &origin, mask, stored), 0);
  EXPECT_EQ(mask, 0U);
  return stored;
}

/// Smooth enough that every filter has something to do.
Bytes sample_bytes(std::size_t size, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Bytes bytes(size);
  std::uint64_t value = random();
  for (std::byte& byte : bytes) {
    if (random() % 4 == 0) value += random() % 16;
    byte = static_cast<std::byte>(value);
  }
  return bytes;
}

/// A decoder with buffers of exactly the size it asks for, so that sanitizers see what lies beyond.
class Decoding {
 public:
  Decoding(const std::vector<FilterStep>& filters, std::size_t raw_bytes)
      : decoder_(filters, raw_bytes),
        home_(decoder_.buffer_bytes()),
        other_(decoder_.buffer_bytes()) {}

  [[nodiscard]] std::span<const std::byte> undo(std::span<const std::byte> stored,
                                                std::uint32_t mask = 0) {
    if (stored.size() > home_.size()) return decoder_.decode(stored, mask, home_, other_);
    // At the end of its buffer, where a read of whole blocks may leave it.
    const auto place = std::span(home_).last(stored.size());
    std::copy(stored.begin(), stored.end(), place.begin());
    return decoder_.decode(place, mask, home_, other_);
  }

  /// The reason why it cannot be undone; absent if it can.
  [[nodiscard]] std::optional<std::string> refusal(std::span<const std::byte> stored,
                                                   std::uint32_t mask = 0) {
    try {
      (void)undo(stored, mask);
      return std::nullopt;
    } catch (const DamagedChunkError& error) {
      return error.what();
    }
  }

 private:
  ChunkDecoder decoder_;
  Bytes home_;
  Bytes other_;
};

bool same(std::span<const std::byte> a, const Bytes& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end());
}

TEST(Filters, UndoWhatLibhdf5WroteForEveryPipelineMaskAndElementSize) {
  const std::uint64_t seed = test::test_seed();
  for (const std::size_t element_bytes : {1U, 2U, 3U, 4U, 8U}) {
    for (const std::size_t count : {1U, 2U, 15U, 33U, 1000U, 4099U}) {
      const Bytes raw = sample_bytes(count * element_bytes, seed + count);
      for (const auto& pipeline : pipelines(static_cast<unsigned int>(element_bytes))) {
        Decoding decoding(pipeline, raw.size());
        for (std::uint32_t mask = 0; mask < 1U << pipeline.size(); ++mask) {
          std::vector<FilterStep> applied;
          for (std::size_t i = 0; i < pipeline.size(); ++i) {
            if ((mask >> i & 1) == 0) applied.push_back(pipeline[i]);
          }
          const Bytes stored = stored_by_libhdf5(raw, element_bytes, applied);
          // Bits beyond the pipeline mean nothing.
          ASSERT_TRUE(same(decoding.undo(stored, mask | 0xffff0000U), raw))
              << count << " elements of " << element_bytes << ": " << describe(pipeline) << "mask "
              << mask;
        }
      }
    }
  }
}

TEST(Filters, UndoADeflateStreamThatIsLargerThanItsChunk) {
  std::mt19937_64 random(1);
  for (const std::size_t size : {1U, 17U, 100000U}) {
    Bytes raw(size);
    for (std::byte& byte : raw) byte = static_cast<std::byte>(random());
    // libhdf5 skips an optional deflate that gains nothing; level 0 stores.
    Bytes stored(size + 100);
    libdeflate_compressor* const storing = libdeflate_alloc_compressor(0);
    stored.resize(
        libdeflate_zlib_compress(storing, raw.data(), size, stored.data(), stored.size()));
    libdeflate_free_compressor(storing);
    EXPECT_GT(stored.size(), raw.size());
    EXPECT_TRUE(same(Decoding({deflate()}, size).undo(stored), raw)) << size;
  }
}

TEST(Filters, MayFollowEachOtherMoreThanOnce) {
  const Bytes raw = sample_bytes(4000, 5);
  const std::vector<FilterStep> once{fletcher(), deflate()};
  const Bytes inner = stored_by_libhdf5(raw, 1, once);
  const Bytes outer = stored_by_libhdf5(inner, 1, once);
  const std::vector<FilterStep> twice{fletcher(), deflate(), fletcher(), deflate()};
  EXPECT_TRUE(same(Decoding(twice, raw.size()).undo(outer), raw));
}

/// A simple encoder: the longest earlier match of the last kWindow bytes, else literals.
Bytes lzf(const Bytes& raw) {
  constexpr std::size_t kWindow = 8192;
  Bytes stream;
  Bytes literals;
  const auto put = [&](std::size_t byte) { stream.push_back(static_cast<std::byte>(byte)); };
  const auto flush = [&] {
    for (std::size_t at = 0; at < literals.size(); at += 32) {
      const std::size_t count = std::min<std::size_t>(32, literals.size() - at);
      put(count - 1);
      const auto from = literals.begin() + static_cast<std::ptrdiff_t>(at);
      stream.insert(stream.end(), from, from + static_cast<std::ptrdiff_t>(count));
    }
    literals.clear();
  };
  for (std::size_t at = 0; at < raw.size();) {
    std::size_t best = 0;
    std::size_t distance = 0;
    for (std::size_t back = 1; back <= std::min(at, kWindow); ++back) {
      std::size_t length = 0;
      while (length < 264 && at + length < raw.size() &&
             raw[at + length] == raw[at + length - back]) {
        ++length;
      }
      if (length > best) {
        best = length;
        distance = back;
      }
    }
    if (best < 3) {
      literals.push_back(raw[at++]);
      continue;
    }
    flush();
    const std::size_t count = best - 2;
    put(std::min<std::size_t>(count, 7) << 5 | (distance - 1) >> 8);
    if (count >= 7) put(count - 7);
    put((distance - 1) & 255);
    at += best;
  }
  flush();
  return stream;
}

/// Long and short matches near and far, overlapping ones, and runs of literals.
Bytes lzf_sample(std::size_t size, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Bytes raw;
  while (raw.size() < size) {
    const std::size_t length = 1 + random() % (random() % 8 == 0 ? 300 : 20);
    const std::size_t back = raw.empty() || random() % 3 == 0 ? 0 : 1 + random() % raw.size();
    for (std::size_t i = 0; i < length && raw.size() < size; ++i) {
      raw.push_back(back == 0 ? static_cast<std::byte>(random()) : raw[raw.size() - back]);
    }
  }
  return raw;
}

TEST(Lzf, IsUndone) {
  const auto stream = [](std::initializer_list<unsigned int> bytes) {
    Bytes all;
    for (const unsigned int byte : bytes) all.push_back(static_cast<std::byte>(byte));
    return all;
  };
  // "ab", 3 bytes from 2 ago, 264 from 1 ago.
  Bytes out(2 + 3 + 264);
  EXPECT_EQ(undo_lzf(stream({1, 'a', 'b', 0x20, 1, 0xe0, 255, 0}), out), out.size());
  EXPECT_EQ(Bytes(out.begin(), out.begin() + 5), stream({'a', 'b', 'a', 'b', 'a'}));
  EXPECT_TRUE(std::all_of(out.begin() + 5, out.end(),
                          [](std::byte byte) { return byte == std::byte{'a'}; }));
  for (const std::size_t size : {1U, 2U, 31U, 32U, 33U, 500U, 9000U, 20000U}) {
    const Bytes raw = lzf_sample(size, size);
    Bytes undone(size);
    ASSERT_EQ(undo_lzf(lzf(raw), undone), size);
    EXPECT_EQ(undone, raw);
    for (const auto& pipeline :
         {std::vector{lzf_step()}, std::vector{lzf_step(), fletcher()},
          std::vector{fletcher(), lzf_step()}, std::vector{lzf_step(), lzf_step()}}) {
      Bytes stored = raw;
      for (const FilterStep& step : pipeline) {
        stored = step.id == FilterStep::kLzf ? lzf(stored) : stored_by_libhdf5(stored, 1, {step});
      }
      EXPECT_TRUE(same(Decoding(pipeline, size).undo(stored), raw)) << describe(pipeline) << size;
    }
  }
  EXPECT_TRUE(same(Decoding({lzf_step()}, 100).undo(Bytes(100), 1), Bytes(100))) << "skipped";
}

TEST(Lzf, DamageIsDescribed) {
  const Bytes raw = lzf_sample(1000, 3);
  const Bytes stored = lzf(raw);
  EXPECT_EQ(Decoding({lzf_step()}, 999).refusal(stored), "it decodes to more than 999 bytes");
  EXPECT_EQ(Decoding({lzf_step()}, 1001).refusal(stored),
            "it decodes to 1000 bytes instead of 1001");
  EXPECT_EQ(Decoding({lzf_step()}, 9).refusal(Bytes{std::byte{1}, std::byte{7}}),
            "its LZF stream ends in the middle");
  EXPECT_EQ(Decoding({lzf_step()}, 9).refusal(Bytes{std::byte{0x20}, std::byte{0}}),
            "its LZF stream refers to bytes before its begin");
  EXPECT_EQ(Decoding({lzf_step()}, 9).refusal(Bytes(20)),
            "it takes 20 bytes in the file, more than its 9 can become");
}

TEST(Lzf, DamagedStreamsStayInTheirBuffers) {
  std::mt19937_64 random(test::test_seed());
  std::size_t refused = 0;
  for (std::size_t round = 0; round < 5000; ++round) {
    // Exact sizes: a sanitizer sees every byte beyond.
    Bytes stored = lzf(lzf_sample(1 + random() % 400, random()));
    for (std::size_t changes = 1 + random() % 4; changes > 0; --changes) {
      stored[random() % stored.size()] = static_cast<std::byte>(random());
    }
    if (random() % 4 == 0) stored.resize(random() % (stored.size() + 1));
    Bytes out(1 + random() % 400, std::byte{0xA5});
    try {
      ASSERT_LE(undo_lzf(stored, out), out.size());
    } catch (const DamagedChunkError&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 1000U);
}

TEST(Lzf, ABombWritesNoMoreThanTheChunk) {
  Bytes bomb{std::byte{0}, std::byte{1}};
  for (int i = 0; i < 1000; ++i) {
    for (const unsigned int byte : {0xe0U, 255U, 0U}) bomb.push_back(static_cast<std::byte>(byte));
  }
  Bytes out(10001, std::byte{0xA5});
  EXPECT_THROW((void)undo_lzf(bomb, std::span(out).first(10000)), DamagedChunkError);
  EXPECT_EQ(out.back(), std::byte{0xA5});
}

TEST(Filters, NothingIsMovedWhereNothingHasToBe) {
  const Bytes raw = sample_bytes(64, 6);
  const Bytes stored = stored_by_libhdf5(raw, 1, {fletcher()});
  ChunkDecoder decoder(std::vector{fletcher()}, raw.size());
  EXPECT_EQ(decoder.decode(stored, 0, {}, {}).data(), stored.data());
}

TEST(Filters, TheFirstForeignOneIsNamed) {
  EXPECT_EQ(first_foreign_filter({}), nullptr);
  const std::vector<FilterStep> native{shuffle(4), deflate(), lzf_step(), fletcher()};
  EXPECT_EQ(first_foreign_filter(native), nullptr);
  const std::vector<FilterStep> mixed{shuffle(4), {4, "szip", {}}, {32008, "filter 32008", {}}};
  EXPECT_EQ(first_foreign_filter(mixed), &mixed[1]);
  const std::vector<FilterStep> of_nothing{shuffle(0)};
  EXPECT_EQ(first_foreign_filter(of_nothing), of_nothing.data());
  const std::vector<FilterStep> without_size{{FilterStep::kShuffle, "shuffle", {}}};
  EXPECT_EQ(first_foreign_filter(without_size), without_size.data());
}

TEST(Filters, EveryTruncationIsAnError) {
  const Bytes raw = sample_bytes(3000, 7);
  for (const auto& pipeline : pipelines(4)) {
    if (pipeline.empty()) continue;
    const Bytes stored = stored_by_libhdf5(raw, 4, pipeline);
    Decoding decoding(pipeline, raw.size());
    for (std::size_t size = 0; size < stored.size(); ++size) {
      ASSERT_TRUE(decoding.refusal(std::span(stored).first(size)).has_value())
          << describe(pipeline) << "cut to " << size << " of " << stored.size();
    }
  }
}

TEST(Filters, EveryFlippedBitOfACheckedChunkIsAnError) {
  const Bytes raw = sample_bytes(1200, 8);
  const std::vector<std::vector<FilterStep>> checked{{deflate(), fletcher()},
                                                     {shuffle(4), deflate(), fletcher()},
                                                     {fletcher(), shuffle(4), deflate()},
                                                     {fletcher()},
                                                     {deflate()}};
  for (const auto& pipeline : checked) {
    Bytes stored = stored_by_libhdf5(raw, 4, pipeline);
    Decoding decoding(pipeline, raw.size());
    for (std::size_t bit = 0; bit < 8 * stored.size(); ++bit) {
      const auto flip = static_cast<std::byte>(1U << bit % 8);
      stored[bit / 8] ^= flip;
      try {
        // Some bits of a deflate stream carry no information (the level it was made with).
        ASSERT_TRUE(same(decoding.undo(stored), raw)) << describe(pipeline) << "bit " << bit;
        ASSERT_EQ(pipeline.back().id, FilterStep::kDeflate) << "bit " << bit;
      } catch (const DamagedChunkError&) {
      }
      stored[bit / 8] ^= flip;
    }
    ASSERT_TRUE(same(decoding.undo(stored), raw));
  }
}

TEST(Filters, DamageIsDescribed) {
  const Bytes raw = sample_bytes(1024, 9);
  Bytes stored = stored_by_libhdf5(raw, 1, {deflate()});
  EXPECT_EQ(Decoding({deflate()}, 1023).refusal(stored), "it decodes to more than 1023 bytes");
  EXPECT_EQ(Decoding({deflate()}, 1025).refusal(stored),
            "it decodes to 1024 bytes instead of 1025");
  stored[0] = std::byte{0};
  EXPECT_EQ(Decoding({deflate()}, 1024).refusal(stored), "its deflate stream is damaged");

  const Bytes three(3);
  EXPECT_EQ(Decoding({fletcher()}, 1024).refusal(three),
            "it has 3 bytes, too few for its fletcher32 checksum");
  Bytes summed(1028);
  summed[1024] = std::byte{0x2a};
  EXPECT_EQ(Decoding({fletcher()}, 1024).refusal(summed),
            "its fletcher32 checksum is 0x00000000 instead of 0x0000002a");
  EXPECT_EQ(Decoding({fletcher()}, 1024).refusal(Bytes(1029)),
            "it takes 1029 bytes in the file, more than its 1024 can become");
  EXPECT_EQ(Decoding({deflate()}, 1024).refusal(Bytes(1023), 1),
            "it decodes to 1023 bytes instead of 1024");
}

TEST(Filters, ABombWritesNoMoreThanTheChunk) {
  const Bytes zeros(std::size_t{8} << 20);
  const Bytes bomb = stored_by_libhdf5(zeros, 1, {deflate()});
  ASSERT_LT(bomb.size(), 10000U);
  ChunkDecoder decoder(std::vector{deflate()}, 10000);
  const std::size_t room = decoder.buffer_bytes();
  Bytes home(room + 1, std::byte{0xA5});
  Bytes other(room + 1, std::byte{0xA5});
  EXPECT_THROW(
      (void)decoder.decode(bomb, 0, std::span(home).first(room), std::span(other).first(room)),
      DamagedChunkError);
  EXPECT_EQ(home.back(), std::byte{0xA5});
  EXPECT_TRUE(std::all_of(other.begin() + 10000, other.end(),
                          [](std::byte byte) { return byte == std::byte{0xA5}; }));
}

/// The one that libhdf5 stores behind the bytes.
std::uint32_t fletcher32_of_libhdf5(const Bytes& bytes) {
  std::uint32_t sum = 0;
  std::memcpy(&sum, &stored_by_libhdf5(bytes, 1, {fletcher()})[bytes.size()], sizeof sum);
  return sum;
}

TEST(Fletcher32, IsThatOfLibhdf5ForAllSizesAndExtremes) {
  std::mt19937_64 random(10);
  EXPECT_EQ(fletcher32({}), 0U);
  for (std::size_t size = 1; size < 300; ++size) {
    Bytes bytes(size);
    EXPECT_EQ(fletcher32(bytes), 0U);
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
    EXPECT_EQ(fletcher32(bytes), fletcher32_of_libhdf5(bytes)) << size;
  }
  for (const std::size_t size : {8191U, 8192U, 8193U, 8224U, 16385U, 1000001U}) {
    Bytes bytes(size, std::byte{0xff});
    EXPECT_EQ(fletcher32(bytes), fletcher32_of_libhdf5(bytes)) << size;
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
    EXPECT_EQ(fletcher32(bytes), fletcher32_of_libhdf5(bytes)) << size;
  }
}

TEST(Fletcher32, OfOldFilesIsAcceptedToo) {
  // Little-endian machines once summed words in their own order; libhdf5 reads such files.
  const Bytes raw = sample_bytes(1000, 11);
  Bytes stored = stored_by_libhdf5(raw, 1, {fletcher()});
  std::swap(stored[1000], stored[1001]);
  std::swap(stored[1002], stored[1003]);
  EXPECT_TRUE(same(Decoding({fletcher()}, raw.size()).undo(stored), raw));
}

TEST(Unshuffle, VectorAndPortableCodeAgree) {
  std::mt19937_64 random(12);
  for (std::size_t element_bytes = 1; element_bytes <= 17; ++element_bytes) {
    for (std::size_t size = 0; size < 700; size += 1 + random() % 5) {
      Bytes in(size);
      for (std::byte& byte : in) byte = static_cast<std::byte>(random());
      Bytes expected(size);
      const std::size_t count = size / element_bytes;
      for (std::size_t i = 0; i < size; ++i) {
        expected[i] =
            i < count * element_bytes ? in[i % element_bytes * count + i / element_bytes] : in[i];
      }
      Bytes fast(size);
      Bytes portable(size);
      unshuffle(in, element_bytes, fast);
      unshuffle_portable(in, element_bytes, portable);
      ASSERT_EQ(fast, expected) << size << " bytes, elements of " << element_bytes;
      ASSERT_EQ(portable, expected) << size << " bytes, elements of " << element_bytes;
    }
  }
}

}  // namespace
}  // namespace chunkio::h5
