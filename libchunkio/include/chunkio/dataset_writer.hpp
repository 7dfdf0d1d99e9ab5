/// Writes a dataset file: structure first, pixels second, published whole or not at all.
///
/// Construction writes the complete HDF5 structure to `PATH.partial` and reserves its space; from
/// then on pixels go to known offsets with positional writes, from any number of threads and
/// without libhdf5. `close()` adds what is only known at the end, checks the file by reading it
/// back and renames it to PATH. A writer destroyed without a successful close() removes the partial
/// file; PATH stays as it was.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <chunkio/chunk_layout.hpp>
#include <chunkio/dataset.hpp>
#include <chunkio/export.hpp>
#include <chunkio/tensor.hpp>

namespace chunkio {

/// A dataset parallel to the pictures, with all its rows.
struct FieldData {
  FieldInfo info = {};
  /// num_samples * row elements, row-major, native byte order.
  std::vector<std::byte> values = {};
};

/// What a file will hold.
struct DatasetSpec {
  std::int64_t num_samples = 0;  ///< >= 1.
  std::int64_t height = 0, width = 0, channels = 0;
  Layout layout = Layout::nhwc;
  std::string channel_order = "RGB";  ///< "RGB" or "gray".
  /// `labels` (int64 [N] or uint8 [N,A]), `source_index` (int64 [N]) and any further fields.
  std::vector<FieldData> fields = {};
  std::vector<std::string> class_names = {};
  std::vector<std::string> attribute_names = {};
  std::string split = {};           ///< "train", "test", ...; may be empty.
  std::string order = "source";     ///< "shuffled" or "source".
  std::uint64_t seed = 0;           ///< Of the shuffle.
  std::string options_json = "{}";  ///< Packing options and source.
};

/// How a file is written.
struct WriterOptions {
  /// Bytes of a chunk; samples per chunk = max(1, chunk_bytes / sample bytes). Default 4 MiB, >= 1.
  std::int64_t chunk_bytes = kDefaultChunkBytes;
  /// Samples per chunk; 0 (default): from chunk_bytes.
  std::int64_t chunk_samples = 0;
  /// Replace an existing PATH (at close, atomically) and discard a leftover PATH.partial.
  bool overwrite = false;
};

/// What is only known when all pixels have been seen.
struct DatasetStatistics {
  ChannelStatistics channels = {};
  std::vector<std::int64_t> class_counts = {};
};

/// One file being written. write_chunk() may be called from several threads, everything else from
/// one at a time.
class CHUNKIO_EXPORT DatasetWriter {
 public:
  /// Creates PATH.partial with everything but the pixels. Blocks on I/O.
  /// \throws Error output_exists (PATH exists, or PATH.partial is left over or in use),
  ///         invalid_argument, not_found (no such folder), no_space, io_failed, hdf5_failed.
  ///         Nothing is left behind after a throw.
  DatasetWriter(const std::string& path, const DatasetSpec& spec,
                const WriterOptions& options = {});
  DatasetWriter(DatasetWriter&&) noexcept;
  DatasetWriter& operator=(DatasetWriter&&) noexcept;
  /// Without close(): removes PATH.partial.
  ~DatasetWriter();

  [[nodiscard]] std::int64_t num_chunks() const noexcept;
  [[nodiscard]] std::int64_t chunk_samples() const noexcept;
  /// Bytes of a whole chunk, rows of the last one beyond num_samples included.
  [[nodiscard]] std::int64_t chunk_bytes() const noexcept;

  /// Writes chunk i: rows [i * chunk_samples, min((i+1) * chunk_samples, N)), each [H,W,C] or
  /// [C,H,W]. Each chunk is written once, in any order. Thread-safe for distinct chunks. Blocks on
  /// I/O.
  /// \param rows  exactly the chunk's rows; a short last chunk is zero-filled by the writer.
  /// \throws Error invalid_argument (chunk, size, written before, after close()), io_failed,
  ///         no_space. A chunk that failed may be written again.
  void write_chunk(std::int64_t chunk, std::span<const std::byte> rows);

  /// To be called before close() if the statistics are to be stored.
  /// \throws Error invalid_argument if counts or values do not fit the dataset or are not finite.
  void set_statistics(DatasetStatistics statistics);

  /// Finishes, verifies and publishes the file. Blocks on I/O (fsync, one read of everything).
  /// Called again after it succeeded, it does nothing.
  ///
  /// After a throw PATH is as it was before, with one exception: if only the last step failed,
  /// writing the folder of the renamed file to disk, PATH is the new file, whole and verified, but
  /// its name may not survive a power failure; the error names the folder. After invalid_argument
  /// for a missing chunk the writer goes on as before. After anything else PATH.partial is gone.
  /// \throws Error invalid_argument (a chunk was not written), output_exists (PATH appeared
  ///         meanwhile), digest_mismatch (the disk did not keep what was written), io_failed,
  ///         no_space, hdf5_failed.
  void close();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace chunkio
