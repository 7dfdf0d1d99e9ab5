/// Errors: one exception type with a closed set of codes.
///
///     try {
///       while (auto batch = loader.next()) train(*batch);
///     } catch (const chunkio::Error& error) {
///       if (error.code() != chunkio::ErrorCode::timed_out) throw;
///       std::fprintf(stderr, "%s\n", error.what());
///     }
///
/// Every function of the library that can fail throws `chunkio::Error`. The message is one line
/// that names the file (and dataset or chunk), the cause below it, and the hint, in terms of the
/// library's options: a program that has other names for them finds them in options(). The library
/// never prints, exits or aborts.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

#include <chunkio/export.hpp>

namespace chunkio {

/// What kind of failure it was. Values are stable: never renumber.
enum class ErrorCode {
  invalid_argument = 1,   ///< An option or argument is out of range or contradicts another.
  not_found = 2,          ///< A file, dataset or field does not exist.
  unsupported = 3,        ///< Valid, but not something this library handles.
  refused_by_policy = 4,  ///< Handled only when an option allows it.
  corrupt_data = 5,       ///< The file is damaged, truncated or not what it claims to be.
  digest_mismatch = 6,    ///< Stored bytes do not match their stored digest.
  io_failed = 7,          ///< The operating system reported an error (its text is in the message).
  no_space = 8,           ///< Disk full, quota or file size limit.
  output_exists = 9,      ///< The output exists and overwriting was not asked for, or is locked.
  hdf5_failed = 10,       ///< libhdf5 reported an error (its stack is in the message).
  cuda_failed = 11,       ///< CUDA reported an error.
  out_of_resources = 12,  ///< A memory budget or system resource is too small.
  cancelled = 13,         ///< Stopped on request.
  timed_out = 14,         ///< Not there in time; nothing is lost, and the call may be repeated.
};

/// The enumerator's name, as a static string.
CHUNKIO_EXPORT std::string_view to_string(ErrorCode code) noexcept;

/// The only exception type thrown by this library (besides std::bad_alloc).
class CHUNKIO_EXPORT Error : public std::runtime_error {
 public:
  /// \param option, other  what options() holds, if not empty. String literals: nothing is copied.
  Error(ErrorCode code, const std::string& message, std::string_view option = {},
        std::string_view other = {});
  Error(const Error&) = default;
  Error& operator=(const Error&) = default;
  ~Error() override;

  [[nodiscard]] ErrorCode code() const noexcept { return code_; }

  /// The options that the message names as its subject or its hint, as they are written in a
  /// program ("overwrite", "verify = off").
  [[nodiscard]] std::span<const std::string_view> options() const noexcept {
    return std::span(options_).first(num_options_);
  }

  /// The same error in other words.
  [[nodiscard]] Error with_message(const std::string& message) const;

 private:
  ErrorCode code_;
  std::size_t num_options_ = 0;
  std::array<std::string_view, 2> options_;
};

}  // namespace chunkio
