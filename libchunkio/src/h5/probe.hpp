/// Has a process of its own look at a file first.
///
/// libhdf5 before 2.0 crashes on some damaged files and never returns from others. A process that
/// walks the whole file (walk_file()) meets both without harm to this one.
#pragma once

#include <chrono>
#include <string>

namespace chunkio::h5 {

/// Runs `program` with `path` as its argument. Starts nothing where libhdf5 is 2.0 or newer.
/// Thread-safe.
/// \param most  how long it may take.
/// \throws Error corrupt_data (it crashed, or did not end in time), not_found (there is no such
///         program), io_failed (no process), cancelled (a signal that was meant for all ended it).
void probe_file(const std::string& program, const std::string& path,
                std::chrono::milliseconds most = std::chrono::seconds(10));

}  // namespace chunkio::h5
