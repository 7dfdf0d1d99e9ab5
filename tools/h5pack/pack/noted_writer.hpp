/// Writes encoded images, and notes in the journal what a resumed run needs to know of them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <chunkio/dataset_writer.hpp>

#include "h5pack/pack/chunk_record.hpp"

namespace h5pack {

/// What a note says of an image.
struct NotedImage {
  std::optional<PixelStatistics> pixels = {};  ///< Of it alone; absent: not needed.
  std::optional<ImageSize> source_size = {};   ///< Absent: unknown.
  bool limited = false;                        ///< It was made smaller.
};

/// One thread at a time.
class NotedWriter {
 public:
  /// \param num_places  in pack order.
  /// \param options  overwrite, identity, resume, stop and commit_bytes count.
  /// \throws chunkio::Error as EncodedWriter; corrupt_data: as from_note().
  NotedWriter(const std::string& path, const chunkio::EncodedSpec& spec, std::int64_t num_places,
              const chunkio::WriterOptions& options);

  /// Of all places before next_place(), those of an earlier run first.
  [[nodiscard]] ChunkRecord so_far() const;
  [[nodiscard]] std::int64_t num_rows() const noexcept { return writer_.num_rows(); }
  /// The next place in pack order.
  [[nodiscard]] std::int64_t next_place() const noexcept { return part_.end_place; }

  /// Adds the image of the next place. \param name  for messages.
  /// \throws chunkio::Error as EncodedWriter::add() and commit().
  void add(const chunkio::EncodedImage& image, const std::string& name, const NotedImage& about);
  /// The next place has no image.
  void skip(const SkippedImage& image);

  void commit();
  [[nodiscard]] bool committed() const noexcept { return writer_.committed(); }
  /// \throws chunkio::Error as EncodedWriter::close() and commit().
  void close(std::vector<chunkio::FieldData> fields, const chunkio::DatasetStatistics& statistics);

 private:
  chunkio::EncodedWriter writer_;
  ChunkRecord committed_;
  ChunkRecord part_;  ///< Since then.
};

}  // namespace h5pack
