/// The bytes of a file or of standard input, from begin to end; what gzip compressed comes
/// inflated.
#pragma once

#include <zlib.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace h5pack {

/// Not thread-safe but for position(). Blocks on I/O.
class ByteStream {
 public:
  /// \param path  "-": standard input.
  /// \throws Error not_found, io_failed.
  explicit ByteStream(const std::string& path);
  ByteStream(const ByteStream&) = delete;
  ByteStream& operator=(const ByteStream&) = delete;
  ~ByteStream();

  /// What errors call it, in quotes.
  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  /// Whether it is a regular file, as it is stored: not a pipe, and not compressed.
  [[nodiscard]] bool is_file() const noexcept { return is_file_ && !compressed_; }
  /// Bytes of a regular file; 0 of anything else.
  [[nodiscard]] std::int64_t size() const noexcept { return size_; }
  /// Bytes that were read from the file so far. Thread-safe.
  [[nodiscard]] std::int64_t position() const noexcept { return position_; }

  /// The next bytes without taking them: at most as many as there are.
  [[nodiscard]] std::span<const char> peek(std::size_t count);

  /// Fills `out`. \returns fewer bytes than that at the end only.
  /// \throws Error io_failed; corrupt_data (the compressed data is damaged or ends early);
  ///         cancelled: stopped while it waited for a pipe.
  std::size_t read(std::span<char> out);

 private:
  std::size_t read_plain(std::span<char> out);
  std::size_t inflate_some(std::span<char> out);
  void wait_for_pipe() const;
  void fill();

  std::string name_;
  int fd_ = -1;
  bool owned_ = false;
  bool is_file_ = false;
  std::int64_t size_ = 0;
  std::atomic<std::int64_t> position_ = 0;
  std::array<char, std::size_t{1} << 18> input_{};  // From the file.
  std::span<char> unread_;                          // Of that.
  std::string peeked_;
  bool compressed_ = false;
  bool between_members_ = false;
  z_stream inflater_{};
};

}  // namespace h5pack
