#include "pipeline/read_back.hpp"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include <chunkio/error.hpp>

#include "base/chunk_source.hpp"
#include "base/digest.hpp"
#include "io/direct_file.hpp"
#include "io/page_cache.hpp"

namespace chunkio::pipeline {
namespace {

constexpr std::int64_t kMaxThreads = 8;
/// A thread for less than this costs more than it saves.
constexpr std::int64_t kBytesPerThread = std::int64_t{16} << 20;

/// What the threads share; each takes one piece after the other.
class Search {
 public:
  Search(int fd, std::span<const ExpectedBytes> pieces, const PieceSize& size,
         const std::string& path, std::stop_token stop, const TakeSound& take_sound)
      : fd_(fd),
        pieces_(pieces),
        size_(size),
        path_(path),
        stop_(std::move(stop)),
        take_sound_(take_sound) {}

  void run() noexcept {
    try {
      check_stop();
      PieceReader reader(fd_, path_, size_);
      for (std::size_t i = next_++; i < pieces_.size(); i = next_++) {
        check_stop();
        if (reader.is_sound(pieces_[i])) {
          if (take_sound_) take_sound_(i, reader.row_digests());
          continue;
        }
        const std::lock_guard lock(mutex_);
        damaged_.push_back(i);
      }
    } catch (...) {
      next_ = pieces_.size();
      const std::lock_guard lock(mutex_);
      if (!error_) error_ = std::current_exception();
    }
  }

  /// To be called when all threads have ended.
  [[nodiscard]] std::vector<std::size_t> result() {
    if (error_) std::rethrow_exception(error_);
    std::sort(damaged_.begin(), damaged_.end());
    return std::move(damaged_);
  }

 private:
  void check_stop() const {
    if (!stop_.stop_requested()) return;
    throw Error(ErrorCode::cancelled,
                path_ + ": stopped while it was read back; another run can resume (--resume)");
  }

  const int fd_;
  const std::span<const ExpectedBytes> pieces_;
  const PieceSize size_;
  const std::string& path_;
  const std::stop_token stop_;
  const TakeSound& take_sound_;
  std::atomic<std::size_t> next_{0};
  std::mutex mutex_;  ///< Guards the two below while threads run.
  std::vector<std::size_t> damaged_;
  std::exception_ptr error_;
};

}  // namespace

PieceReader::PieceReader(int fd, const std::string& path, const PieceSize& size)
    : fd_(fd),
      reader_(fd, path, true),
      piece_bytes_(size.bytes()),
      scratch_(reader_.scratch_bytes(std::min(size.bytes(), io::kDirectPieceBytes))),
      rows_(size.row_bytes) {}

bool PieceReader::is_sound(const ExpectedBytes& piece) {
  // Else the cache would vouch for the disk.
  if (!reader_.direct()) {
    io::drop_pages(fd_, piece.file_offset, piece.file_offset + piece_bytes_);
  }
  try {
    PlaceCost cost;
    rows_.clear();
    for (std::int64_t done = 0; done < piece_bytes_; done += io::kDirectPieceBytes) {
      rows_.add(reader_.read(piece.file_offset + done,
                             std::min(io::kDirectPieceBytes, piece_bytes_ - done), scratch_.bytes(),
                             cost));
    }
    return base::digest(std::as_bytes(row_digests())) == piece.digest;
  } catch (const Error&) {
    return false;  // the disk may hold it when it is written anew
  }
}

std::vector<std::size_t> find_damaged(int fd, std::span<const ExpectedBytes> pieces,
                                      const PieceSize& size, const std::string& path,
                                      std::stop_token stop, const TakeSound& take_sound) {
  Search search(fd, pieces, size, path, std::move(stop), take_sound);
  {
    const std::int64_t pieces_per_thread =
        std::max<std::int64_t>(1, kBytesPerThread / size.bytes());
    const std::int64_t num_threads = std::min<std::int64_t>(
        {kMaxThreads, static_cast<std::int64_t>(pieces.size()) / pieces_per_thread});
    std::vector<std::jthread> helpers;
    try {
      for (std::int64_t i = 1; i < num_threads; ++i) {
        helpers.emplace_back([&search] { search.run(); });
      }
    } catch (const std::system_error&) {
      // A process that may start no more threads does with those it has.
    }
    search.run();
  }
  return search.result();
}

}  // namespace chunkio::pipeline
