/// Checks a file without delivering its images: where their chunks lie, whether they still are
/// what was packed, and whether all else can be read.
///
///     for (const chunkio::DamagedChunk& chunk : chunkio::verify_chunks(dataset).damaged) {
///       std::puts(chunk.reason.c_str());  // names the file, the chunk and the rows
///     }
///
/// Dataset::open() has checked names, shapes, types, attributes and labels before; what is left are
/// the things that cost time. Files of this library keep a digest of each sample: of its pixels,
/// however they are stored, of its label and of its other fields. Those of format version 1 have
/// one of the pixels of each chunk instead. Thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include <chunkio/dataset.hpp>
#include <chunkio/epoch_order.hpp>
#include <chunkio/error.hpp>
#include <chunkio/export.hpp>

namespace chunkio {

/// How verify_chunks() works. Nothing here changes what is found.
struct VerifyOptions {
  /// Threads that read and compare, the calling one included, at most 1024; 0 (default): 8, enough
  /// to keep a disk busy. Where the system allows fewer, those do.
  std::int64_t num_threads = 0;
  /// Called with the number of chunks that were just finished, from any of the threads, also from
  /// several at once. Must not throw.
  std::function<void(std::int64_t chunks)> on_progress = {};
  /// Requested to stop early: the call then throws Error cancelled.
  std::stop_token stop = {};
};

/// A chunk that cannot be believed.
struct DamagedChunk {
  std::int64_t chunk = 0;  ///< Along the sample axis.
  RowRange rows = {};      ///< Of the dataset: all that it holds.
  /// The rows that cannot be believed, as ascending ranges: those that do not match their digests,
  /// where each has its own, else all.
  std::vector<RowRange> damaged_rows = {};
  /// digest_mismatch, io_failed, corrupt_data, unsupported (it overlaps another) or hdf5_failed.
  ErrorCode code = ErrorCode::digest_mismatch;
  std::string reason = {};  ///< One line that names file, chunk and rows.
};

struct VerifyResult {
  /// Checked; of images that are not stored in chunks, pieces.
  std::int64_t num_chunks = 0;
  std::int64_t bytes_read = 0;             ///< Stored bytes of images asked of the file.
  std::vector<DamagedChunk> damaged = {};  ///< Ascending by chunk, each once.
};

/// Why verify_chunks() cannot compare the images of this file with digests, as a clause ("it has
/// no digests", "its chunks were rewritten since it was packed (nbit filter)"); empty if it can.
CHUNKIO_EXPORT std::string why_not_verifiable(const Dataset& dataset);

/// Looks up every chunk of the images: inside the file, of a possible size, overlapping no other.
/// Reads no pixels. Where the chunks lie in one run there is nothing to look up, and num_chunks is
/// 0, as it is where libhdf5 alone can tell.
///
/// Some ten microseconds a chunk, on the calling thread, which also calls `on_progress` with the
/// number of chunks that were just finished. \throws Error cancelled (`stop` was requested).
CHUNKIO_EXPORT VerifyResult verify_chunk_index(
    const Dataset& dataset, const std::function<void(std::int64_t chunks)>& on_progress = {},
    const std::stop_token& stop = {});

/// Reads every chunk of the images, and the fields of their samples, and compares them with their
/// digests. Blocks on I/O.
///
/// The bytes come from the storage, bypassing the page cache (O_DIRECT); where the file system
/// refuses that, what is in the page cache is dropped before and behind the reads. Takes some 4 MiB
/// of memory a thread. \throws Error unsupported (why_not_verifiable), corrupt_data (the file was
/// changed while it was
///         read, or lacks a dataset that its digests cover), cancelled, out_of_resources,
///         invalid_argument. A chunk that cannot be read or does not match is no such error but one
///         of `damaged`.
CHUNKIO_EXPORT VerifyResult verify_chunks(const Dataset& dataset,
                                          const VerifyOptions& options = {});

/// Reads every attribute of every object, and every dataset but the images from its beginning to
/// its end: labels, fields, and what no loader delivers. Finds what cannot be opened or read, and
/// what contradicts a checksum of HDF5; not what was only replaced by other values.
///
/// On the calling thread. Blocks on I/O.
/// \returns one entry for each object or attribute, in the order of their names, the files of a
///          dataset one after the other.
/// \throws Error cancelled (`stop` was requested), corrupt_data (the file was changed while it was
///         read), out_of_resources.
CHUNKIO_EXPORT std::vector<DamagedObject> verify_objects(const Dataset& dataset,
                                                         const std::stop_token& stop = {});

}  // namespace chunkio
