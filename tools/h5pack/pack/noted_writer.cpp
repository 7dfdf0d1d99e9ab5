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

}  // namespace

NotedWriter::NotedWriter(const std::string& path, const chunkio::EncodedSpec& spec,
                         std::int64_t num_places, const chunkio::WriterOptions& options)
    : writer_(path, spec,
              {.overwrite = options.overwrite,
               .identity = options.identity,
               .resume = options.resume,
               .stop = options.stop,
               .commit_bytes = options.commit_bytes}),
      part_(part_from(0)) {
  for (const chunkio::ResumedChunk& resumed : writer_.resumed()) {
    ChunkRecord record = from_note(resumed.note, kRgb, chunkio::Layout::nhwc);
    const std::int64_t images = record.end_place - record.first_place - std::ssize(record.skipped);
    if (record.first_place != part_.first_place || images != resumed.num_rows ||
        record.end_place > num_places) {
      throw chunkio::Error(chunkio::ErrorCode::corrupt_data,
                           "the journal of an earlier run leaves out images, or has too many, "
                           "from place " +
                               std::to_string(part_.first_place) + " on; start again with --force");
    }
    part_ = part_from(record.end_place);
    resumed_.push_back(std::move(record));
  }
}

void NotedWriter::add(const chunkio::EncodedImage& image,
                      const std::optional<PixelStatistics>& pixels, std::optional<ImageSize> size,
                      bool limited) {
  writer_.add(image);
  ++num_new_;
  ++part_.end_place;
  if (pixels) part_.pixels.merge(*pixels);
  if (size) part_.sizes.add(*size);
  part_.num_limited += limited ? 1 : 0;
  if (writer_.commit_due()) commit();
}

void NotedWriter::skip(const SkippedImage& image) {
  ++part_.end_place;
  part_.skipped.push_back(image);
}

void NotedWriter::commit() {
  if (num_new_ == 0) return;  // places without images are looked at again
  writer_.commit(to_note(part_));
  part_ = part_from(part_.end_place);
  num_new_ = 0;
}

void NotedWriter::close(std::vector<chunkio::FieldData> fields,
                        const chunkio::DatasetStatistics& statistics) {
  commit();
  writer_.close(std::move(fields), statistics);
}

}  // namespace h5pack
