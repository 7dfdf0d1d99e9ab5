/// Reads chunks back behind those who write, in the time in which nobody writes.
///
/// Decoding takes longer than writing, as a rule, and the disk is idle meanwhile: what is read back
/// then need not be waited for in the end. Where chunks come as fast as the disk takes them,
/// reading would only be in the way of writing, and is left for the end.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "write/chunk_verification.hpp"

namespace chunkio::write {

/// What became of pieces of a file.
struct ReadBackResult {
  std::vector<ExpectedBytes> unread = {};   ///< Not looked at.
  std::vector<ExpectedBytes> damaged = {};  ///< Otherwise than expected, or not to be read.
};

/// A thread that reads bypassing the page cache where it can. All functions but finish() may be
/// called from any thread.
class WriteVerifier {
 public:
  /// \param fd  open for reading; must outlive this. \param size  of every piece.
  /// \param path  for messages.
  WriteVerifier(int fd, std::string path, const PieceSize& size);
  WriteVerifier(const WriteVerifier&) = delete;
  WriteVerifier& operator=(const WriteVerifier&) = delete;
  ~WriteVerifier();

  /// Nothing more is read while one of these lives.
  class Writing {
   public:
    explicit Writing(WriteVerifier& thread);
    Writing(const Writing&) = delete;
    Writing& operator=(const Writing&) = delete;
    ~Writing();

   private:
    WriteVerifier& thread_;
  };

  /// Takes pieces that are on disk. Does not block.
  void add(std::span<const ExpectedBytes> pieces);
  /// Ends, after the piece that is being read. To be called once.
  [[nodiscard]] ReadBackResult finish();

 private:
  [[nodiscard]] std::span<const ExpectedBytes> unread() const noexcept {
    return std::span(waiting_).subspan(num_read_);
  }
  void run() noexcept;
  void end();

  int fd_;
  std::string path_;
  PieceSize size_;
  std::mutex mutex_;  // Guards what follows.
  std::condition_variable changed_;
  std::vector<ExpectedBytes> waiting_;
  std::size_t num_read_ = 0;  // of those
  std::vector<ExpectedBytes> damaged_;
  int writing_ = 0;
  bool ended_ = false;
  std::jthread thread_;  // Last: it uses all of the above.
};

}  // namespace chunkio::write
