#include "h5/decompressor.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <libdeflate.h>

#ifdef CHUNKIO_HAS_ZSTD
#include <zstd.h>
#endif
#ifdef CHUNKIO_HAS_LZ4
#include <lz4.h>
#endif
#ifdef CHUNKIO_HAS_BLOSC
#include <blosc.h>
#endif

#include "support/scratch.hpp"

namespace chunkio::h5 {
namespace {

using Bytes = std::vector<std::byte>;

/// A filter, and what its stream of some bytes is.
struct Format {
  int filter;
  std::string name;
  Bytes (*compress)(const Bytes& raw);
};

Bytes deflated(const Bytes& raw) {
  libdeflate_compressor* const compressor = libdeflate_alloc_compressor(6);
  Bytes stream(libdeflate_zlib_compress_bound(compressor, raw.size()));
  stream.resize(
      libdeflate_zlib_compress(compressor, raw.data(), raw.size(), stream.data(), stream.size()));
  libdeflate_free_compressor(compressor);
  return stream;
}

#ifdef CHUNKIO_HAS_ZSTD
Bytes zstandard(const Bytes& raw) {
  Bytes stream(ZSTD_compressBound(raw.size()));
  stream.resize(ZSTD_compress(stream.data(), stream.size(), raw.data(), raw.size(), 3));
  return stream;
}
#endif

#ifdef CHUNKIO_HAS_LZ4
void put(Bytes& stream, std::uint64_t number, int bytes) {
  while (bytes-- > 0) stream.push_back(static_cast<std::byte>(number >> (8 * bytes)));
}

/// In blocks of 1000 bytes.
Bytes lz4(const Bytes& raw) {
  constexpr std::size_t kBlock = 1000;
  Bytes stream;
  put(stream, raw.size(), 8);
  put(stream, kBlock, 4);
  for (std::size_t at = 0; at < raw.size(); at += kBlock) {
    const std::size_t size = std::min(kBlock, raw.size() - at);
    Bytes block(static_cast<std::size_t>(LZ4_compressBound(static_cast<int>(size))));
    block.resize(static_cast<std::size_t>(LZ4_compress_default(
        reinterpret_cast<const char*>(raw.data() + at), reinterpret_cast<char*>(block.data()),
        static_cast<int>(size), static_cast<int>(block.size()))));
    if (block.size() >= size) {
      block.assign(raw.data() + at, raw.data() + at + size);
    }
    put(stream, block.size(), 4);
    stream.insert(stream.end(), block.begin(), block.end());
  }
  return stream;
}
#endif

#ifdef CHUNKIO_HAS_BLOSC
Bytes blosc(const Bytes& raw) {
  Bytes stream(raw.size() + BLOSC_MAX_OVERHEAD);
  const int size = blosc_compress_ctx(5, BLOSC_SHUFFLE, 2, raw.size(), raw.data(), stream.data(),
                                      stream.size(), "lz4", 0, 1);
  EXPECT_GT(size, 0);
  stream.resize(static_cast<std::size_t>(size));
  return stream;
}
#endif

std::vector<Format> formats() {
  return {
      {FilterStep::kDeflate, "deflate", deflated},
#ifdef CHUNKIO_HAS_ZSTD
      {FilterStep::kZstandard, "Zstandard", zstandard},
#endif
#ifdef CHUNKIO_HAS_LZ4
      {FilterStep::kLz4, "LZ4", lz4},
#endif
#ifdef CHUNKIO_HAS_BLOSC
      {FilterStep::kBlosc, "Blosc", blosc},
#endif
  };
}

Decompressor decompressor_of(const Format& format) {
  return {std::vector<FilterStep>{{.id = format.filter}}, 5000};
}

/// Runs of equal bytes, and bytes that nothing makes smaller.
Bytes sample(std::size_t size, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Bytes raw;
  while (raw.size() < size) {
    const bool noise = random() % 2 == 0;
    const auto byte = static_cast<std::byte>(random());
    for (std::uint64_t i = random() % 200; i > 0 && raw.size() < size; --i) {
      raw.push_back(noise ? static_cast<std::byte>(random()) : byte);
    }
  }
  return raw;
}

/// What undoing says is wrong; empty if `size` bytes came of it.
std::string refusal(const Format& format, const Bytes& stream, std::size_t size) {
  Bytes out(size);
  try {
    const std::size_t written = decompressor_of(format).undo(format.filter, stream, out);
    return written == size ? "" : "too few bytes";
  } catch (const DamagedChunkError& error) {
    return error.what();
  }
}

TEST(Decompressor, UndoesWhatLibrariesWrite) {
  for (const Format& format : formats()) {
    const Decompressor decompressor = decompressor_of(format);
    for (const std::size_t size : {1U, 17U, 999U, 1000U, 1001U, 5000U, 300'000U}) {
      SCOPED_TRACE(format.name + " " + std::to_string(size));
      const Bytes raw = sample(size, size);
      const Bytes stream = format.compress(raw);
      EXPECT_LE(stream.size(), Decompressor::max_stored_bytes(format.filter, size));
      Bytes undone(size);
      ASSERT_EQ(decompressor.undo(format.filter, stream, undone), size);
      EXPECT_EQ(undone, raw);
    }
  }
}

TEST(Decompressor, SaysWhatIsWrong) {
  for (const Format& format : formats()) {
    SCOPED_TRACE(format.name);
    const Bytes raw = sample(5000, 1);
    const Bytes stream = format.compress(raw);
    EXPECT_EQ(refusal(format, stream, 4999), "it decodes to more than 4999 bytes");
    Bytes garbage = stream;
    std::fill(garbage.begin(), garbage.end(), std::byte{0xEE});
    EXPECT_NE(refusal(format, garbage, 5000), "");
    for (const std::size_t size : {std::size_t{0}, std::size_t{3}, stream.size() - 1}) {
      const Bytes cut(stream.begin(), stream.begin() + static_cast<std::ptrdiff_t>(size));
      EXPECT_NE(refusal(format, cut, 5000), "") << size;
    }
  }
}

TEST(Decompressor, DamagedStreamsStayInTheirBuffers) {
  std::mt19937_64 random(test::test_seed());
  for (const Format& format : formats()) {
    SCOPED_TRACE(format.name);
    const Decompressor decompressor = decompressor_of(format);
    std::size_t refused = 0;
    for (int round = 0; round < 3000; ++round) {
      // Exact sizes: a sanitizer sees every byte beyond.
      Bytes stream = format.compress(sample(1 + random() % 3000, random()));
      for (std::uint64_t changes = 1 + random() % 4; changes > 0; --changes) {
        // Often in the head, where the sizes are.
        const std::size_t most =
            random() % 2 == 0 ? std::min<std::size_t>(16, stream.size()) : stream.size();
        stream[random() % most] = static_cast<std::byte>(random());
      }
      if (random() % 4 == 0) stream.resize(random() % (stream.size() + 1));
      Bytes out(1 + random() % 3000);
      try {
        ASSERT_LE(decompressor.undo(format.filter, stream, out), out.size());
      } catch (const DamagedChunkError&) {
        ++refused;
      }
    }
    EXPECT_GT(refused, 1000U);
  }
}

}  // namespace
}  // namespace chunkio::h5
