#include "h5pack/pack/chunk_assembler.hpp"

#include <cstddef>
#include <cstring>

#include <chunkio/error.hpp>

namespace h5pack {

ChunkAssembler::ChunkAssembler(std::int64_t chunk_samples, std::int64_t sample_bytes,
                               PixelStatistics no_pixels, BufferPool& pool)
    : chunk_samples_(chunk_samples),
      sample_bytes_(static_cast<std::size_t>(sample_bytes)),
      no_pixels_(no_pixels),
      pool_(&pool),
      open_(empty_chunk(0, 0)) {}

PackedChunk ChunkAssembler::empty_chunk(std::int64_t chunk, std::int64_t first_place) const {
  return {.chunk = chunk,
          .record = {.first_place = first_place, .end_place = first_place, .pixels = no_pixels_}};
}

std::optional<PackedChunk> ChunkAssembler::add(DecodedBlock block) {
  const PendingRange& range = *block.range;
  if (block.first_place == range.first_place) {
    open_ = empty_chunk(range.first_chunk, range.first_place);
  }
  std::optional<PackedChunk> full;
  const std::uint8_t* sample = block.pixels.get();
  std::int64_t place = block.first_place;
  for (auto& outcome : block.outcomes) {
    if (auto* skipped = std::get_if<SkippedImage>(&outcome)) {
      open_.record.skipped.push_back(std::move(*skipped));
    } else {
      // Without a buffer of its own, the chunk grows at the front of the block's: never beyond what
      // has been read of it.
      std::uint8_t* const target = (open_.pixels ? open_.pixels.get() : block.pixels.get()) +
                                   static_cast<std::size_t>(open_.num_rows) * sample_bytes_;
      if (target != sample) std::memmove(target, sample, sample_bytes_);
      const ImageSize size = std::get<ImageSize>(outcome);
      if (size.pixels() > 0) open_.record.sizes.add(size);
      ++open_.num_rows;
    }
    sample += sample_bytes_;
    ++place;
    if (open_.num_rows < chunk_samples_) continue;
    if (!open_.pixels) open_.pixels = std::move(block.pixels);
    open_.record.end_place = place;
    const std::int64_t next = open_.chunk + 1;
    full = std::exchange(open_, empty_chunk(next, place));
  }
  if (open_.num_rows > 0 && !open_.pixels) open_.pixels = std::move(block.pixels);
  pool_->give_back(std::move(block.pixels));

  // Skipped places belong to the chunk of the next good image, so a gap ends with a good one.
  const bool complete =
      place < range.end_place ||
      (open_.chunk == range.end_chunk && open_.num_rows == 0 && open_.record.skipped.empty());
  const bool overfull = full && full->chunk >= range.end_chunk.value_or(INT64_MAX);
  if (range.end_chunk && (!complete || overfull)) {
    throw chunkio::Error(chunkio::ErrorCode::corrupt_data,
                         "some images can be read now and could not before, or the other way "
                         "round, so what the interrupted run packed does not fit; start afresh "
                         "with --force");
  }
  return full;
}

PackedChunk ChunkAssembler::finish(std::int64_t end_place) {
  open_.record.end_place = end_place;
  const std::int64_t next = open_.chunk + 1;
  return std::exchange(open_, empty_chunk(next, end_place));
}

}  // namespace h5pack
