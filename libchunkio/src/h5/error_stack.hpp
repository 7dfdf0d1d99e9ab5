/// Return values of libhdf5 become Errors.
///
/// All functions are called while Library::lock() is held, right after the call that failed.
#pragma once

#include <source_location>
#include <string>
#include <string_view>

#include <hdf5.h>

#include <chunkio/error.hpp>

namespace chunkio::h5 {

/// This thread's HDF5 error stack in one line: what was tried and the innermost cause. Empty if
/// there is none.
[[nodiscard]] std::string describe_error_stack();

/// "cannot ACTION PATH: libhdf5: CAUSE (file:line)"; no_space if that is the cause, else
/// hdf5_failed.
[[nodiscard]] Error hdf5_error(std::string_view action, std::string_view path,
                               std::source_location where = std::source_location::current());

/// Passes `id` on. `action` is an infinitive phrase ("read labels of"), `path` the file.
/// \throws Error hdf5_failed if it is invalid.
hid_t check_id(hid_t id, std::string_view action, std::string_view path,
               std::source_location where = std::source_location::current());

/// Passes a status or count on (herr_t, htri_t, int, ssize_t).
/// \throws Error hdf5_failed if it is negative.
template <class T>
T check_status(T status, std::string_view action, std::string_view path,
               std::source_location where = std::source_location::current()) {
  if (status < 0) throw hdf5_error(action, path, where);
  return status;
}

/// A name from a file as it may be shown: control characters and backslashes escaped, at most 200
/// bytes.
[[nodiscard]] std::string printable(std::string_view name);

}  // namespace chunkio::h5
