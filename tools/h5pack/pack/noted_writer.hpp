/// Writes encoded images, and notes in the journal what a resumed run needs to know of them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <chunkio/dataset_writer.hpp>

#include "h5pack/pack/chunk_record.hpp"

namespace h5pack {

/// One thread at a time.
class NotedWriter {
 public:
  /// \param num_places  in pack order.
  /// \param options  overwrite, identity, resume, stop and commit_bytes count.
  /// \throws chunkio::Error as EncodedWriter; corrupt_data: as from_note().
  NotedWriter(const std::string& path, const chunkio::EncodedSpec& spec, std::int64_t num_places,
              const chunkio::WriterOptions& options);

  /// Of an earlier run, in pack order and without gaps.
  [[nodiscard]] const std::vector<ChunkRecord>& resumed() const noexcept { return resumed_; }
  [[nodiscard]] std::int64_t num_rows() const noexcept { return writer_.num_rows(); }
  /// The next place in pack order.
  [[nodiscard]] std::int64_t next_place() const noexcept { return part_.end_place; }

  /// Adds the image of the next place.
  /// \param pixels  of it alone; absent: not needed. \param size  in the source; absent: unknown.
  /// \param limited  it was made smaller.
  /// \throws chunkio::Error as EncodedWriter::add() and commit().
  void add(const chunkio::EncodedImage& image, const std::optional<PixelStatistics>& pixels,
           std::optional<ImageSize> size, bool limited = false);
  /// The next place has no image.
  void skip(const SkippedImage& image);

  void commit();
  [[nodiscard]] bool committed() const noexcept { return writer_.committed(); }
  /// \throws chunkio::Error as EncodedWriter::close() and commit().
  void close(std::vector<chunkio::FieldData> fields, const chunkio::DatasetStatistics& statistics);

 private:
  chunkio::EncodedWriter writer_;
  std::vector<ChunkRecord> resumed_;
  // Since the last commit.
  ChunkRecord part_;
  std::int64_t num_new_ = 0;  ///< Images.
};

}  // namespace h5pack
