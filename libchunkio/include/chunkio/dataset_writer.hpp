/// Writes a dataset file: structure first, pixels second, published whole or not at all.
///
///     const chunkio::DatasetSpec spec{
///         .num_samples = 1000, .height = 32, .width = 32, .channels = 3, .fields = {labels}};
///     chunkio::DatasetWriter writer(path, spec);
///     for (std::int64_t chunk = 0; chunk < writer.num_chunks(); ++chunk) {
///       writer.write_chunk(chunk, images_of(chunk));
///     }
///     writer.close();  // the file appears
///     const std::vector<std::int64_t> columns = {1, 3, 0};  // rows of 2, 0 and 1 entries
///     const std::vector<float> ratings = {4.5F, 3, 1};
///     chunkio::SparseWriter sparse("ratings.h5ad", {.row_lengths = {2, 0, 1}, .num_columns = 4});
///     sparse.write_rows(0, 3, columns, std::as_bytes(std::span(ratings)));
///     sparse.close();
///
/// Construction writes the complete HDF5 structure to `PATH.partial` and reserves its space; from
/// then on pixels go to known offsets with positional writes, from any number of threads and
/// without libhdf5. `close()` adds what is only known at the end, checks the file by reading it
/// back and renames it to PATH. Until then PATH stays as it was, whatever ends the process.
///
/// With an `identity` the writer keeps `PATH.partial.journal`, which says what of the partial file
/// has reached the disk, and another run with the same identity and `resume` goes on from there.
/// Without one, a writer destroyed without a successful close() removes the partial file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include <chunkio/chunk_layout.hpp>
#include <chunkio/dataset.hpp>
#include <chunkio/export.hpp>
#include <chunkio/tensor.hpp>

namespace chunkio {

/// A dataset parallel to the images, with all its rows: as `values`, or as a `stream` of them for
/// what is too large to be held in memory.
struct FieldData {
  /// Takes the next rows: whole ones, row-major, native byte order.
  using Sink = std::function<void(std::span<const std::byte> rows)>;

  FieldInfo info = {};
  /// num_samples * row elements, row-major, native byte order; empty if there is a stream.
  std::vector<std::byte> values = {};
  /// Gives all rows to the sink, in order and in blocks of any size. Called several times, from the
  /// constructor of DatasetWriter or from set_rows() and close(), and must give the same each time.
  /// What it throws goes through to the caller.
  std::function<void(const Sink& sink)> stream = {};

  /// Gives all rows to the sink, from wherever they are.
  void for_each_block(const Sink& sink) const {
    if (stream) {
      stream(sink);
    } else {
      sink(values);
    }
  }
};

/// Samples of each class: `labels` counted if they are one int64 a sample; else empty. Labels
/// without class names are counted from 0 to the largest, if none is negative and there are at most
/// 65,536 of them.
[[nodiscard]] CHUNKIO_EXPORT std::vector<std::int64_t> count_classes(
    std::span<const FieldData> fields, const std::vector<std::string>& class_names);

/// How chunks of the images are stored. Filtered files are smaller, take decoding to read, and
/// cannot be resumed while they are written.
struct ChunkFilter {
  /// Deflate level, 1 (fast) to 9 (small); 0 (default): no filter.
  int deflate_level = 0;
  /// HDF5's byte shuffle before deflate. It changes nothing in elements of one byte, which pixels
  /// are: for programs that expect it in the pipeline. Only with deflate.
  bool shuffle = false;

  /// "none", "deflate:6" or "shuffle+deflate:6".
  [[nodiscard]] std::string to_string() const {
    if (deflate_level == 0) return "none";
    return (shuffle ? "shuffle+deflate:" : "deflate:") + std::to_string(deflate_level);
  }
};

/// What a file will hold.
struct DatasetSpec {
  std::int64_t num_samples = 0;        ///< >= 1.
  std::int64_t height = 0, width = 0;  ///< In pixels, >= 1.
  std::int64_t channels = 0;           ///< >= 1, of one byte each; a sample has at most 1 GiB.
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
  /// The part of a larger dataset that this file is.
  std::optional<ShardInfo> shard = {};
};

/// How a file is written.
struct WriterOptions {
  // Behaviour.

  /// Bytes of a chunk; samples per chunk = max(1, chunk_bytes / sample bytes). Default 4 MiB, >= 1.
  std::int64_t chunk_bytes = kDefaultChunkBytes;
  /// Samples per chunk; 0 (default): from chunk_bytes.
  std::int64_t chunk_samples = 0;
  /// Default: none, as training wants it. Chunks of filtered files have at most 256 MiB, no journal
  /// is kept of them, and `resume` starts afresh (but never over what another kind of run left).
  ChunkFilter filter = {};
  /// Replace an existing PATH (at close, atomically) and, without `resume`, discard a leftover
  /// PATH.partial.
  bool overwrite = false;
  /// What makes two runs the same beside the DatasetSpec: a JSON object whose values are strings,
  /// numbers and booleans (a digest of the source list, options, ...). Empty (default): no journal.
  std::string identity = {};
  /// Go on from a leftover PATH.partial with its journal; start afresh if there is nothing to go on
  /// from. Needs an identity.
  bool resume = false;

  /// Compute mean, std, mean_picture_std and class_counts while the chunks are written, and store
  /// them at close() unless set_statistics() gave others. On the thread that writes the chunk; of
  /// chunks that an earlier run wrote at close(), which reads them once more.
  bool statistics = true;

  /// Requested to stop: reading back what an earlier run wrote, or at close() what this one did,
  /// ends with Error cancelled. What is there stays to be resumed.
  std::stop_token stop = {};

  // Performance.

  /// Chunks are brought to disk and into the journal in groups of this many bytes (or what is
  /// written in two seconds). Default 64 MiB, >= 1. Larger: fewer waits, more to do again.
  std::int64_t commit_bytes = std::int64_t{64} << 20;
};

/// A chunk that an earlier run wrote, and that was found intact.
struct ResumedChunk {
  std::int64_t chunk = 0;
  std::int64_t num_rows = 0;
  std::string note = {};  ///< As given to write_chunk().
};

/// What is only known when all pixels have been seen.
struct DatasetStatistics {
  ChannelStatistics channels = {};
  std::vector<std::int64_t> class_counts = {};
  std::vector<double> mean_picture_std = {};     ///< See DatasetInfo; empty: not known.
  std::optional<SourceSizes> source_sizes = {};  ///< Absent: not known.
};

/// One file being written. write_chunk(), commit() and committed() may be called from several
/// threads, everything else from one at a time and not beside them.
class CHUNKIO_EXPORT DatasetWriter {
 public:
  /// Creates PATH.partial with everything but the pixels, or takes up what an earlier run left.
  /// Blocks on I/O; a resume reads all chunks of the earlier run once.
  /// \throws Error output_exists (PATH exists, or PATH.partial is left over or in use by another
  ///         writer), invalid_argument (also: `resume` with another identity or specification, of
  ///         which the first difference is named), corrupt_data (the leftover structure is not what
  ///         its journal says), unsupported (journal of another version), not_found (no such
  ///         folder), no_space, io_failed, hdf5_failed, cancelled.
  ///         After a throw of a fresh start nothing is left behind; of a resume, everything.
  DatasetWriter(const std::string& path, const DatasetSpec& spec,
                const WriterOptions& options = {});
  DatasetWriter(DatasetWriter&&) noexcept;
  DatasetWriter& operator=(DatasetWriter&&) noexcept;
  /// Without close(): removes PATH.partial and its journal, unless committed() says that there is
  /// something to resume. Does not commit.
  ~DatasetWriter();

  /// Whether PATH is there and no unfinished file is left beside it: what `resume` need not do
  /// again. Removes the journal of a writer that was killed just after it published PATH.
  /// Says nothing of what PATH holds. \throws Error io_failed.
  [[nodiscard]] static bool is_published(const std::string& path);

  [[nodiscard]] std::int64_t num_chunks() const noexcept;
  [[nodiscard]] std::int64_t chunk_samples() const noexcept;
  /// Bytes of a whole chunk, rows of the last one beyond num_samples included.
  [[nodiscard]] std::int64_t chunk_bytes() const noexcept;

  /// The chunks that need not be written again, ascending: each was read back and has its digest.
  /// Empty unless an earlier run was resumed.
  [[nodiscard]] const std::vector<ResumedChunk>& resumed() const noexcept;

  /// Writes chunk i: rows [i * chunk_samples, min((i+1) * chunk_samples, N)), each [H,W,C] or
  /// [C,H,W]. Each chunk is written once, in any order. Thread-safe for distinct chunks. Blocks on
  /// I/O, now and then until a group of chunks is on disk. With a filter it compresses the chunk on
  /// the calling thread; some chunks are then held back, so that they come into the file in order
  /// if they are given nearly so (at most 32 MiB of them, or two).
  /// \param rows  the chunk's rows, whole ones and at least one; what is missing is zero-filled.
  ///              Fewer than all are possible in the last chunk of a file that set_rows() shortens.
  /// \param note  any bytes, at most 1 GiB, to be handed out by resumed(); ignored without journal.
  /// \throws Error invalid_argument (chunk, size, note, written before or resumed, after close()),
  ///         io_failed, no_space. A chunk whose pixels failed to be written may be written again.
  ///         After a failure to bring a group to disk every further call fails likewise: the kernel
  ///         may have dropped what it could not write.
  void write_chunk(std::int64_t chunk, std::span<const std::byte> rows, std::string_view note = {});

  /// Brings all chunks written so far to disk and into the journal now. Without a journal, or with
  /// nothing new, it does nothing. Blocks on I/O.
  /// \throws Error io_failed, no_space: as for write_chunk(), final.
  void commit();
  /// Whether chunks are in the journal, so that another run can resume: the destructor and a
  /// failing close() keep PATH.partial and its journal. False once published.
  [[nodiscard]] bool committed() const noexcept;

  /// To be called before close(): stored instead of what WriterOptions::statistics computes.
  /// \throws Error invalid_argument if counts or values do not fit the dataset or are not finite.
  void set_statistics(DatasetStatistics statistics);

  /// Replaces the fields, whose values may be known only now, and shortens the file if some samples
  /// were left out. To be called before close(). The chunks that hold rows [0, n) are written; the
  /// last of them may have been given fewer rows than it has room for.
  /// \param num_rows  n, 1 <= n <= num_samples.
  /// \param fields  all fields of the specification again, with n rows each.
  /// \throws Error invalid_argument; unsupported: fewer rows with a filter.
  void set_rows(std::int64_t num_rows, std::vector<FieldData> fields);

  /// Finishes, verifies and publishes the file. Blocks on I/O: fsync, and one read of what was not
  /// read back before (with a journal, while nobody wrote), and of all fields.
  /// Called again after it succeeded, it does nothing.
  ///
  /// After a throw PATH is as it was before, with one exception: if only the last step failed,
  /// writing the folder of the renamed file to disk, PATH is the new file, whole and verified, but
  /// its name may not survive a power failure; the error names the folder. After invalid_argument
  /// for a missing chunk the writer goes on as before. After anything else the writer is done for:
  /// PATH.partial is gone, or with a journal left to be resumed.
  /// \throws Error invalid_argument (a chunk was not written, or not with all its rows),
  ///         output_exists (PATH appeared meanwhile), digest_mismatch (the disk did not keep what
  ///         was written), io_failed, no_space, hdf5_failed, cancelled.
  void close();

  /// How long close() only read back what was not read back before, in seconds; 0 before.
  [[nodiscard]] double read_back_seconds() const noexcept;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Of the writers that keep no journal.
struct PublishOptions {
  /// Replace an existing PATH (at close, atomically), and discard a leftover PATH.partial.
  bool overwrite = false;
  /// Requested to stop: close() ends with Error cancelled.
  std::stop_token stop = {};
};

/// What a file of a sparse matrix [N,M] will hold: rows of different lengths, in compressed sparse
/// rows (CSR), as anndata and scipy have them.
struct SparseSpec {
  /// Stored entries of each row: N of them, N >= 1, each from 0 to M, not all of them 0. A row has
  /// at most 1 GiB.
  std::vector<std::int64_t> row_lengths = {};
  std::int64_t num_columns = 0;  ///< M, >= 1. Column numbers are stored as int32 below 2^31.
  DType dtype = DType::float32;  ///< Of the values: any that files have.
  /// The name of a row, or of a column, from 0: UTF-8 of at most 4,096 bytes without zero bytes,
  /// valid until the next call. Called twice for each, from the constructor, in order. Absent: its
  /// number. Names are padded to the longest.
  std::function<std::string_view(std::int64_t row)> row_name = {};
  std::function<std::string_view(std::int64_t column)> column_name = {};
  /// Numbers of each row ([N], without further axes): `source_index` (int64), labels.
  std::vector<FieldData> fields = {};
  /// The texts that the numbers of a field stand for, from 0 on, by the name of the field, which has
  /// whole numbers then; -1 stands for none. anndata reads such a field as a categorical. UTF-8 of
  /// at most 4,096 bytes each, no two alike.
  std::map<std::string, std::vector<std::string>> categories = {};
  std::string split = {};           ///< "train", "test", ...; may be empty.
  std::string order = "source";     ///< "shuffled" or "source".
  std::uint64_t seed = 0;           ///< Of the shuffle.
  std::string options_json = "{}";  ///< Packing options and source.
  /// The part of a larger matrix that this file is.
  std::optional<ShardInfo> shard = {};
};

/// One file with a sparse matrix being written. Like DatasetWriter it writes the structure first
/// and entries by position, and publishes the file whole or not at all; but it keeps no journal. In
/// memory it has 25 bytes a row. write_rows() may be called from several threads, everything else
/// from one at a time and not beside them.
class CHUNKIO_EXPORT SparseWriter {
 public:
  /// Creates PATH.partial with everything but the entries, and reserves its space. Blocks on I/O.
  /// \throws Error output_exists (PATH exists, or PATH.partial is left over or in use by another
  ///         writer), invalid_argument, not_found (no such folder), no_space, io_failed,
  ///         hdf5_failed. Nothing is left behind then.
  SparseWriter(const std::string& path, const SparseSpec& spec, const PublishOptions& options = {});
  SparseWriter(SparseWriter&&) noexcept;
  SparseWriter& operator=(SparseWriter&&) noexcept;
  /// Without close(): removes PATH.partial.
  ~SparseWriter();

  [[nodiscard]] std::int64_t num_rows() const noexcept;
  [[nodiscard]] std::int64_t num_entries() const noexcept;  ///< Of all rows.

  /// Writes rows [first_row, first_row + num_rows), one behind the other. Each row that has entries
  /// is written once, in any order. Thread-safe for distinct rows. Blocks on I/O. Takes memory for
  /// the column numbers once more.
  /// \param columns  of each row ascending, no two alike, from 0 to M - 1.
  /// \param values   as many, in the element type of the specification, native byte order.
  /// \throws Error invalid_argument (rows, their columns or the number of entries; a row that was
  ///         written before; after close()), and nothing was written; io_failed, no_space, after
  ///         which the same rows may be written again.
  void write_rows(std::int64_t first_row, std::int64_t num_rows,
                  std::span<const std::int64_t> columns, std::span<const std::byte> values);

  /// Adds the digests, reads the file back and publishes it. Blocks on I/O: fsync, and one read of
  /// the file. Called again after it succeeded, it does nothing.
  /// After invalid_argument the writer goes on as before; after anything else it is done for, and
  /// PATH as it was, with the exception that DatasetWriter::close() names.
  /// \throws Error invalid_argument (a row was not written), output_exists (PATH appeared
  ///         meanwhile), digest_mismatch (the disk did not keep what was written), io_failed,
  ///         no_space, hdf5_failed, cancelled.
  void close();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// What a file of encoded images will hold beside them.
struct EncodedSpec {
  /// Of labels 0..K-1; empty: none.
  std::vector<std::string> class_names = {};
  std::vector<std::string> attribute_names = {};  ///< Of the columns of a label table; or empty.
  std::string split = {};                         ///< "train", "test", ...; may be empty.
  std::string order = "source";                   ///< "shuffled" or "source".
  std::uint64_t seed = 0;                         ///< Of the shuffle.
  std::string options_json = "{}";                ///< Packing options and source.
  /// Bytes of all images, about: reserved at once, so that a full disk is an error before the work.
  std::int64_t expected_bytes = 0;
  /// The part of a larger dataset that this file is.
  std::optional<ShardInfo> shard = {};
};

/// How an EncodedWriter writes.
struct EncodedWriterOptions {
  /// Replace an existing PATH (at close, atomically) and, without `resume`, discard a leftover
  /// PATH.partial.
  bool overwrite = false;
  /// What makes two runs the same beside the EncodedSpec. Empty (default): no journal.
  std::string identity = {};
  /// Go on from a leftover PATH.partial with its journal; start afresh if there is nothing to go on
  /// from. Needs an identity.
  bool resume = false;
  /// Requested to stop: reading back what an earlier run wrote, or at close() what this one did,
  /// ends with Error cancelled. What is there stays to be resumed.
  std::stop_token stop = {};
  /// Bytes after which commit_due() says so. Default 64 MiB, >= 1.
  std::int64_t commit_bytes = std::int64_t{64} << 20;
};

/// One file of images that stay encoded (JPEG, PNG, WebP), each in a size of its own. They are
/// added one after the other; what is known only then, such as labels, comes with close(). The file
/// is published whole or not at all. In memory it has 25 bytes an image. One thread at a time.
class CHUNKIO_EXPORT EncodedWriter {
 public:
  /// Creates PATH.partial, or takes up what an earlier run left. Blocks on I/O; a resume reads the
  /// images of the earlier run once.
  /// \throws Error as DatasetWriter.
  EncodedWriter(const std::string& path, const EncodedSpec& spec,
                const EncodedWriterOptions& options = {});
  EncodedWriter(EncodedWriter&&) noexcept;
  EncodedWriter& operator=(EncodedWriter&&) noexcept;
  /// Without close(): removes PATH.partial, unless committed() says that there is something to
  /// resume. Does not commit.
  ~EncodedWriter();

  /// With those of an earlier run.
  [[nodiscard]] std::int64_t num_rows() const noexcept;

  /// What commit() of an earlier run was given, in order: each image was read back and has its
  /// digest. `chunk` counts the calls. Empty unless an earlier run was resumed.
  [[nodiscard]] const std::vector<ResumedChunk>& resumed() const noexcept;

  /// Adds an image. Its bytes are taken as they are: that they can be decoded is for the caller to
  /// know. Those of Dataset::read_encoded() are compared with the digest that they had there.
  /// Blocks on I/O.
  /// \throws Error invalid_argument (no bytes, or more than 1 GiB; a side that is not 1 to 65535;
  ///         an orientation that is not 1 to 8; after close()), digest_mismatch; io_failed,
  ///         no_space, after which the writer is done for.
  void add(const EncodedImage& image);

  /// Whether there is a journal, and commit_bytes were added since the last commit() or two seconds
  /// have passed.
  [[nodiscard]] bool commit_due() const noexcept;
  /// Brings what was added to disk and into the journal. Without a journal, with nothing new, and
  /// after close(), it does nothing. Blocks on I/O.
  /// \param note  of the images since the last call: any bytes, at most 512 MiB.
  /// \throws Error invalid_argument (a note that is too large, an earlier call failed); io_failed,
  ///         no_space, after which the writer is done for: the kernel may have dropped what it
  ///         could not write.
  void commit(std::string_view note = {});
  /// Whether images are in the journal, so that another run can resume: the destructor and a
  /// failing close() keep PATH.partial and its journal. False once published.
  [[nodiscard]] bool committed() const noexcept;

  /// Adds fields and structure, reads the file back and publishes it. Blocks on I/O: fsync, and one
  /// read of the file. Called again after it succeeded, it does nothing.
  /// \param fields      of num_rows() rows each: labels, source_index (int64 [N]).
  /// \param statistics  of RGB pixels; without means and deviations it has none.
  /// \throws Error invalid_argument (no images; fields of other lengths), and otherwise as
  ///         SparseWriter::close().
  void close(std::vector<FieldData> fields, const DatasetStatistics& statistics = {});

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

struct LinkOptions {
  bool overwrite = false;  ///< Replace an existing file, and discard a leftover PATH.partial.
};

/// Writes a file in which other programs find the shards as one dataset: HDF5 virtual datasets for
/// images, labels and fields, which refer to the shards by paths relative to it, and their
/// attributes. It holds no pixels, and works as long as the shards stay where they are beside it.
/// This library reads the shards themselves instead.
///
/// Appears whole or not at all; PATH.partial while it is written. Blocks on I/O; reads the first
/// and the last image of each shard through the new file.
/// \param dataset  of several files (DatasetInfo::shards).
/// \throws Error invalid_argument (one file only, or PATH is one of them), output_exists, not_found
///         (no such folder), no_space, io_failed, hdf5_failed, digest_mismatch (an image is
///         another one through the new file), corrupt_data (a shard was changed meanwhile).
CHUNKIO_EXPORT void link_shards(const Dataset& dataset, const std::string& path,
                                const LinkOptions& options = {});

/// Writes to a local file what opening remote files reads: RemoteOptions::index then opens each of
/// them by one request, however far its index of chunks is spread.
///
/// Appears whole or not at all; PATH.partial while it is written. Blocks on I/O.
/// \param path    address of a file, or pattern of several, as for Dataset::open().
/// \param output  the local file.
/// \param overwrite  an existing file, and discard a leftover PATH.partial.
/// \returns bytes of the local file.
/// \throws Error as Dataset::open(); invalid_argument (`path` is no address), unsupported (a server
///         does not tell versions of a file apart), output_exists, no_space.
CHUNKIO_EXPORT std::int64_t save_remote_index(const std::string& path, const std::string& output,
                                              const OpenOptions& options = {},
                                              bool overwrite = false);

}  // namespace chunkio
