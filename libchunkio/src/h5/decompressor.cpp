#include "h5/decompressor.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#include <libdeflate.h>

#include <chunkio/error.hpp>

#ifdef CHUNKIO_HAS_ZSTD
#include <zstd.h>
#include <zstd_errors.h>
#endif
#ifdef CHUNKIO_HAS_LZ4
#include <lz4.h>
#endif
#ifdef CHUNKIO_HAS_BLOSC
#include <blosc.h>
#endif

namespace chunkio::h5 {
namespace {

DamagedChunkError decodes_to_more(std::size_t max_bytes) {
  return DamagedChunkError("it decodes to more than " + std::to_string(max_bytes) + " bytes");
}

DamagedChunkError damaged(const std::string& format) {
  return DamagedChunkError("its " + format + " stream is damaged");
}

std::size_t undo_deflate(libdeflate_decompressor* decompressor, std::span<const std::byte> stream,
                         std::span<std::byte> out) {
  std::size_t size = 0;
  switch (libdeflate_zlib_decompress(decompressor, stream.data(), stream.size(), out.data(),
                                     out.size(), &size)) {
    case LIBDEFLATE_SUCCESS:
      return size;
    case LIBDEFLATE_INSUFFICIENT_SPACE:
      throw decodes_to_more(out.size());
    default:
      throw damaged("deflate");
  }
}

#ifdef CHUNKIO_HAS_ZSTD

std::size_t undo_zstandard(ZSTD_DCtx* context, std::span<const std::byte> stream,
                           std::span<std::byte> out) {
  // A library may also know formats from before there was a standard, which nobody looks after.
  std::uint32_t magic = 0;
  if (stream.size() < sizeof magic) throw damaged("Zstandard");
  std::memcpy(&magic, stream.data(), sizeof magic);
  if (magic != ZSTD_MAGICNUMBER) throw damaged("Zstandard");
  const std::size_t size =
      ZSTD_decompressDCtx(context, out.data(), out.size(), stream.data(), stream.size());
  if (ZSTD_isError(size) == 0) return size;
  if (ZSTD_getErrorCode(size) == ZSTD_error_dstSize_tooSmall) throw decodes_to_more(out.size());
  throw damaged("Zstandard");
}

#endif

#ifdef CHUNKIO_HAS_LZ4

/// Filter 32004: the size before (8 bytes) and that of a block before (4), then the blocks, each
/// with its size in the stream (4). All numbers are big-endian. A block that did not become smaller
/// is stored as it is; the last one may be shorter.
std::size_t undo_lz4(std::span<const std::byte> stream, std::span<std::byte> out) {
  const auto take = [&](std::size_t count) {
    if (count > stream.size()) throw DamagedChunkError("its LZ4 stream ends in the middle");
    const auto taken = stream.first(count);
    stream = stream.subspan(count);
    return taken;
  };
  const auto number = [&](std::size_t bytes) {
    std::uint64_t value = 0;
    for (const std::byte byte : take(bytes)) value = value << 8 | std::to_integer<unsigned>(byte);
    return value;
  };
  const std::uint64_t size = number(8);
  const std::uint64_t block = number(4);
  if (size > out.size()) throw decodes_to_more(out.size());
  if (size > 0 && block == 0) throw damaged("LZ4");
  for (std::uint64_t done = 0; done < size;) {
    const auto target = out.subspan(done, std::min(block, size - done));
    const auto stored = take(number(4));
    if (stored.size() == target.size()) {
      std::memcpy(target.data(), stored.data(), stored.size());
    } else if (!std::in_range<int>(stored.size()) || !std::in_range<int>(target.size()) ||
               LZ4_decompress_safe(
                   reinterpret_cast<const char*>(stored.data()),
                   reinterpret_cast<char*>(target.data()), static_cast<int>(stored.size()),
                   static_cast<int>(target.size())) != static_cast<int>(target.size())) {
      throw damaged("LZ4");
    }
    done += target.size();
  }
  return size;
}

#endif

#ifdef CHUNKIO_HAS_BLOSC

/// Of what Blosc takes for a chunk beside two blocks.
constexpr std::size_t kBloscSlack = std::size_t{4} << 10;

std::size_t undo_blosc(std::span<const std::byte> stream, std::span<std::byte> out) {
  std::size_t size = 0;
  if (blosc_cbuffer_validate(stream.data(), stream.size(), &size) != 0) throw damaged("Blosc");
  if (size > out.size()) throw decodes_to_more(out.size());
  // Blosc takes memory for two blocks and does not look whether it got it.
  std::size_t stored = 0;
  std::size_t block = 0;
  blosc_cbuffer_sizes(stream.data(), &size, &stored, &block);
  if (block > out.size()) throw damaged("Blosc");
  void* volatile const probe = std::malloc(2 * block + kBloscSlack);
  if (probe == nullptr) throw std::bad_alloc();
  std::free(probe);
  // One thread of Blosc's: chunks are undone by several of ours.
  const int written = blosc_decompress_ctx(stream.data(), out.data(), out.size(), 1);
  if (written < 0 || std::cmp_not_equal(written, size)) throw damaged("Blosc");
  return size;
}

#endif

template <class State>
State* required(State* state, const char* of) {
  if (state != nullptr) return state;
  throw Error(ErrorCode::out_of_resources,
              std::string("no memory for a decompressor of ") + of + " streams");
}

}  // namespace

Decompressor::Decompressor(std::span<const FilterStep> filters, std::size_t raw_bytes)
    : state_bytes_(std::size_t{32} << 10) {
  for (const FilterStep& filter : filters) {
    if (filter.id == FilterStep::kDeflate && deflate_ == nullptr) {
      deflate_.reset(required(libdeflate_alloc_decompressor(), "deflate"));
    }
#ifdef CHUNKIO_HAS_ZSTD
    if (filter.id == FilterStep::kZstandard && zstandard_ == nullptr) {
      zstandard_.reset(required(ZSTD_createDCtx(), "Zstandard"));
      state_bytes_ += std::size_t{160} << 10;
    }
#endif
#ifdef CHUNKIO_HAS_BLOSC
    if (filter.id == FilterStep::kBlosc) state_bytes_ += 2 * raw_bytes + kBloscSlack;
#endif
  }
}

Decompressor::~Decompressor() = default;
Decompressor::Decompressor(Decompressor&& other) noexcept = default;
Decompressor& Decompressor::operator=(Decompressor&& other) noexcept = default;

void Decompressor::Free::operator()(libdeflate_decompressor* decompressor) const noexcept {
  libdeflate_free_decompressor(decompressor);
}

void Decompressor::Free::operator()([[maybe_unused]] ZSTD_DCtx_s* context) const noexcept {
#ifdef CHUNKIO_HAS_ZSTD
  ZSTD_freeDCtx(context);
#endif
}

bool Decompressor::knows(int filter) noexcept {
  switch (filter) {
    case FilterStep::kDeflate:
    case FilterStep::kLzf:
#ifdef CHUNKIO_HAS_ZSTD
    case FilterStep::kZstandard:
#endif
#ifdef CHUNKIO_HAS_LZ4
    case FilterStep::kLz4:
#endif
#ifdef CHUNKIO_HAS_BLOSC
    case FilterStep::kBlosc:
#endif
      return true;
    default:
      return false;
  }
}

std::size_t Decompressor::max_stored_bytes(int filter, std::size_t size) noexcept {
  // One byte more for every 32. h5py stores no chunk that did not become smaller.
  if (filter == FilterStep::kLzf) return size + size / 32 + 1;
  // zlib adds less than 1/23, HDF5 itself accepts no more than 1/1000 of deflate, Zstandard adds
  // 1/256, LZ4 a number of 4 bytes a block, of 64 bytes or more, and Blosc 16 bytes; the constant
  // is for small chunks.
  return size + size / 16 + 4096;
}

std::size_t Decompressor::undo(int filter, std::span<const std::byte> stream,
                               std::span<std::byte> out) const {
  switch (filter) {
#ifdef CHUNKIO_HAS_ZSTD
    case FilterStep::kZstandard:
      return undo_zstandard(zstandard_.get(), stream, out);
#endif
#ifdef CHUNKIO_HAS_LZ4
    case FilterStep::kLz4:
      return undo_lz4(stream, out);
#endif
#ifdef CHUNKIO_HAS_BLOSC
    case FilterStep::kBlosc:
      return undo_blosc(stream, out);
#endif
    case FilterStep::kLzf:
      return undo_lzf(stream, out);
    default:
      return undo_deflate(deflate_.get(), stream, out);
  }
}

std::size_t undo_lzf(std::span<const std::byte> stream, std::span<std::byte> out) {
  std::size_t read = 0;
  std::size_t written = 0;
  const auto next = [&] {
    if (read == stream.size()) throw DamagedChunkError("its LZF stream ends in the middle");
    return std::to_integer<std::size_t>(stream[read++]);
  };
  const auto check_room = [&](std::size_t count) {
    if (count > out.size() - written) throw decodes_to_more(out.size());
  };
  while (read < stream.size()) {
    const std::size_t control = next();
    if (control < 32) {
      const std::size_t count = control + 1;
      if (count > stream.size() - read)
        throw DamagedChunkError("its LZF stream ends in the middle");
      check_room(count);
      std::memcpy(out.data() + written, stream.data() + read, count);
      read += count;
      written += count;
      continue;
    }
    std::size_t count = (control >> 5) + 2;
    if (count == 9) count += next();
    const std::size_t distance = ((control & 31) << 8 | next()) + 1;
    if (distance > written)
      throw DamagedChunkError("its LZF stream refers to bytes before its begin");
    check_room(count);
    std::byte* const to = out.data() + written;
    if (distance >= count) {
      std::memcpy(to, to - distance, count);
    } else if (distance == 1) {
      std::memset(to, std::to_integer<int>(to[-1]), count);
    } else {
      for (std::size_t i = 0; i < count; ++i) to[i] = *(to + i - distance);
    }
    written += count;
  }
  return written;
}

}  // namespace chunkio::h5
