/// Asking a server again for bytes that cannot be right.
///
/// TCP's check sums let some damage pass, and proxies add their own, so that what came may be wrong
/// and the file not. What is wrong each time is damaged in the file.
#pragma once

#include <optional>

#include <chunkio/byte_source.hpp>
#include <chunkio/error.hpp>

#include "io/remote_file.hpp"

namespace chunkio::io {

/// Where one request in twenty brings wrong bytes, one row group in 160,000 stays wrong.
inline constexpr int kMostTries = 4;

/// Runs `look` until it throws no error of which `wrong(code)` holds, `most` times at most: once
/// where `bytes` are not of a server. From the second time on, nothing that was kept is used.
/// \returns what `look` does. \throws what it throws at last.
template <class Look, class Wrong>
auto ask_again(const ByteSource& bytes, Look look, Wrong wrong, int most = kMostTries) {
  const RemoteFile* const remote = as_remote_file(bytes);
  std::optional<Distrust> distrust;
  for (int tries = 1;; ++tries) {
    try {
      return look();
    } catch (const Error& error) {
      if (remote == nullptr || tries == most || !wrong(error.code())) throw;
    }
    if (!distrust) distrust.emplace(*remote);
  }
}

}  // namespace chunkio::io
