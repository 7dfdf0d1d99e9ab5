/// Has a process of its own look at a file first.
///
/// libhdf5 crashes on some damaged files and never returns from others. A process that walks the
/// whole file meets both without harm to this one.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include <chunkio/byte_source.hpp>

namespace chunkio::h5 {

/// Runs `program` with the path of a local file as its argument, or with `-` for other sources,
/// whose bytes it is then given (probe_wire.hpp): what it asks for is read here, and is near when
/// this process opens the file. Thread-safe.
/// \param most  how long it may take, without the time in which it waits for bytes.
/// \throws Error corrupt_data (it crashed, did not end in time, or read on without end), not_found
///         (there is no such program), io_failed (no process), cancelled (a signal that was meant
///         for all ended it); and as ByteSource::read_at().
void probe_file(const std::string& program, const ByteSource& source,
                std::chrono::milliseconds most = std::chrono::seconds(10));

/// How far a walk goes.
enum class Reach {
  all,
  /// What is read may be far away: only what an opening reader may meet. No index of many chunks,
  /// no large chunks, no elements that are stored as they are.
  near,
};

/// What that process does: walks a file as far as any of its readers may go. Takes Library::lock().
/// \throws Error as opening the file does. Damage that an object has is no error.
void walk_source(std::shared_ptr<const ByteSource> source, Reach reach);

}  // namespace chunkio::h5
