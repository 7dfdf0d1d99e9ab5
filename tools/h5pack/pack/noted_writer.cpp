#include "h5pack/pack/noted_writer.hpp"

#include <utility>

#include <chunkio/error.hpp>

namespace h5pack {
namespace {

constexpr std::int64_t kRgb = 3;

ChunkRecord part_from(std::int64_t place) {
  return {.first_place = place,
          .end_place = place,
          .pixels = PixelStatistics(kRgb, chunkio::Layout::nhwc)};
}

std::int64_t num_images(const ChunkRecord& record) {
  return record.end_place - record.first_place - std::ssize(record.skipped);
}

}  // namespace

NotedWriter::NotedWriter(const std::string& path, const chunkio::EncodedSpec& spec,
                         std::int64_t num_places, const chunkio::WriterOptions& options)
    : writer_(path, spec,
              {.overwrite = options.overwrite,
               .identity = options.identity,
               .resume = options.resume,
               .stop = options.stop,
               .commit_bytes = options.commit_bytes}),
      committed_(part_from(0)),
      part_(part_from(0)) {
  for (const chunkio::ResumedChunk& resumed : writer_.resumed()) {
    const ChunkRecord record = from_note(resumed.note, kRgb, chunkio::Layout::nhwc);
    if (record.first_place != part_.first_place || num_images(record) != resumed.num_rows ||
        record.end_place > num_places) {
      throw chunkio::Error(chunkio::ErrorCode::corrupt_data,
                           "the journal of an earlier run leaves out images, or has too many, "
                           "from place " +
                               std::to_string(part_.first_place) + " on; start again with --force");
    }
    committed_.add(record);
    part_ = part_from(record.end_place);
  }
}

void NotedWriter::add(const chunkio::EncodedImage& image, const std::string& name,
                      const NotedImage& about) {
  try {
    writer_.add(image);
  } catch (const chunkio::Error& error) {
    if (error.code() != chunkio::ErrorCode::digest_mismatch) throw;
    throw chunkio::Error(error.code(),
                         name + " does not match its digest; copy or pack the file again");
  }
  ++part_.end_place;
  if (about.pixels) part_.pixels.merge(*about.pixels);
  if (about.source_size) part_.sizes.add(*about.source_size);
  part_.num_limited += about.limited ? 1 : 0;
  if (writer_.commit_due()) commit();
}

void NotedWriter::skip(const SkippedImage& image) {
  ++part_.end_place;
  part_.skipped.push_back(image);
}

void NotedWriter::commit() {
  if (num_images(part_) == 0) return;  // places without images are looked at again
  writer_.commit(to_note(part_));
  committed_.add(part_);
  part_ = part_from(part_.end_place);
}

ChunkRecord NotedWriter::so_far() const {
  ChunkRecord all = committed_;
  all.add(part_);
  return all;
}

void NotedWriter::close(std::vector<chunkio::FieldData> fields,
                        const chunkio::DatasetStatistics& statistics) {
  commit();
  writer_.close(std::move(fields), statistics);
}

}  // namespace h5pack
