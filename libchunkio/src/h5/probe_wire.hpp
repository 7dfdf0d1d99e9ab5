/// What a process that looks at a file and the one that started it say to each other, where only
/// the latter can read the file: because it lies on a server, or is a program's own ByteSource.
///
/// They share a socket that keeps messages apart, the standard input and output of the one that
/// looks. First it is told how many bytes there are. It then sends requests; each reply is a byte
/// that is 1, and the bytes, or a byte that is 0. A message of another length says that it is done.
#pragma once

#include <sys/socket.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace chunkio::h5 {

struct ProbeRequest {
  std::int64_t offset = 0;
  std::int64_t bytes = 0;  ///< 1 to kMostAsked
};

/// With it a reply fits the buffer of a socket, so that sending it does not block.
inline constexpr std::int64_t kMostAsked = std::int64_t{64} << 10;

/// Sends one message. \returns whether the other side is there. Never blocks for long, raises no
/// signal.
[[nodiscard]] inline bool send_message(int socket, std::span<const std::byte> message) noexcept {
  ssize_t sent = 0;
  do {
    sent = ::send(socket, message.data(), message.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  } while (sent < 0 && errno == EINTR);
  return sent == static_cast<ssize_t>(message.size());
}

/// Waits for a message. \returns its bytes, all of which are in `memory`; absent: there is no other
/// side any more, or the message is longer.
[[nodiscard]] inline std::optional<std::size_t> receive_message(
    int socket, std::span<std::byte> memory) noexcept {
  ssize_t received = 0;
  do {
    received = ::recv(socket, memory.data(), memory.size(), MSG_TRUNC);
  } while (received < 0 && errno == EINTR);
  if (received <= 0 || static_cast<std::size_t>(received) > memory.size()) return std::nullopt;
  return static_cast<std::size_t>(received);
}

}  // namespace chunkio::h5
