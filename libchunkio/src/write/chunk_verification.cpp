#include "write/chunk_verification.hpp"

#include <algorithm>
#include <cstddef>
#include <mutex>
#include <tuple>
#include <utility>

#include <chunkio/error.hpp>

#include "base/chunk_source.hpp"
#include "base/digest.hpp"
#include "base/run_on_threads.hpp"
#include "io/direct_file.hpp"
#include "io/local_file.hpp"
#include "io/page_cache.hpp"

namespace chunkio::write {
namespace {

constexpr std::int64_t kMaxThreads = 8;
/// In one read; more would be long without a look at the stop token.
constexpr std::int64_t kMostPieces = std::int64_t{1} << 16;
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

  /// What one thread does. \param failed  another one has thrown.
  void run(const std::stop_token& failed) {
    check_stop();
    PieceReader reader(fd_, path_, size_);
    for (auto [begin, end] = next_run(reader); begin < end && !failed.stop_requested();
         std::tie(begin, end) = next_run(reader)) {
      check_stop();
      TakeSound take_sound;
      if (take_sound_) {
        take_sound = [this, first = begin](std::size_t piece, std::span<const std::uint64_t> rows) {
          take_sound_(first + piece, rows);
        };
      }
      const std::vector<std::size_t> damaged =
          reader.find_damaged(pieces_.subspan(begin, end - begin), take_sound);
      const std::lock_guard lock(mutex_);
      for (const std::size_t piece : damaged) damaged_.push_back(begin + piece);
    }
  }

  /// To be called when all threads have ended.
  [[nodiscard]] std::vector<std::size_t> result() {
    std::sort(damaged_.begin(), damaged_.end());
    return std::move(damaged_);
  }

 private:
  /// Begin and end of what the calling thread is to read.
  std::pair<std::size_t, std::size_t> next_run(const PieceReader& reader) {
    const std::lock_guard lock(mutex_);
    const std::size_t begin = next_;
    next_ += reader.run_of(pieces_.subspan(begin));
    return {begin, next_};
  }
  void check_stop() const {
    if (!stop_.stop_requested()) return;
    throw Error(ErrorCode::cancelled,
                path_ + ": stopped while it was read back; another run with resume goes on",
                "resume");
  }

  const int fd_;
  const std::span<const ExpectedBytes> pieces_;
  const PieceSize size_;
  const std::string& path_;
  const std::stop_token stop_;
  const TakeSound& take_sound_;
  std::mutex mutex_;  ///< Guards those below while threads run.
  std::size_t next_ = 0;
  std::vector<std::size_t> damaged_;
};

}  // namespace

PieceReader::PieceReader(int fd, const std::string& path, const PieceSize& size)
    : bytes_(io::direct_if_possible(std::make_shared<const io::LocalFile>(fd, path))),
      reader_(*bytes_),
      size_(size),
      scratch_(reader_.scratch_bytes(io::kDirectPieceBytes)),
      rows_(size.row_bytes) {}

std::size_t PieceReader::run_of(std::span<const ExpectedBytes> pieces) const noexcept {
  const auto most = static_cast<std::size_t>(
      std::clamp<std::int64_t>(io::kDirectPieceBytes / size_.bytes(), 1, kMostPieces));
  std::size_t count = std::min<std::size_t>(pieces.size(), 1);
  while (count < pieces.size() && count < most &&
         pieces[count].file_offset == pieces[count - 1].file_offset + size_.bytes()) {
    ++count;
  }
  return count;
}

bool PieceReader::read(std::int64_t offset, std::int64_t bytes) {
  // Else the cache would vouch for the disk.
  const io::LocalFile* const cached = io::as_local_file(*bytes_);
  if (cached != nullptr) io::drop_pages(cached->fd(), offset, offset + bytes);
  try {
    ReadCost cost;
    rows_.clear();
    for (std::int64_t done = 0; done < bytes; done += io::kDirectPieceBytes) {
      const std::int64_t end = std::min(done + io::kDirectPieceBytes, bytes);
      rows_.add(reader_.read({offset + done, offset + end}, scratch_.bytes(), {}, cost));
    }
    return true;
  } catch (const Error&) {
    return false;  // the disk may hold it when it is written anew
  }
}

std::vector<std::size_t> PieceReader::find_damaged(std::span<const ExpectedBytes> run,
                                                   const TakeSound& take_sound) {
  const auto rows_of = [&](std::size_t piece) {
    const auto rows = static_cast<std::size_t>(size_.rows);
    return std::span<const std::uint64_t>(rows_.values()).subspan(piece * rows, rows);
  };
  const auto is_sound = [&](std::size_t piece, std::span<const std::uint64_t> rows) {
    if (base::digest(std::as_bytes(rows)) != run[piece].digest) return false;
    if (take_sound) take_sound(piece, rows);
    return true;
  };
  std::vector<std::size_t> damaged;
  const bool is_read = read(run.front().file_offset, std::ssize(run) * size_.bytes());
  for (std::size_t piece = 0; piece < run.size(); ++piece) {
    // What cannot be read at once may be readable but for one.
    const bool sound = is_read ? is_sound(piece, rows_of(piece))
                               : run.size() > 1 && read(run[piece].file_offset, size_.bytes()) &&
                                     is_sound(piece, rows_of(0));
    if (!sound) damaged.push_back(piece);
  }
  return damaged;
}

std::vector<std::size_t> find_damaged(int fd, std::span<const ExpectedBytes> pieces,
                                      const PieceSize& size, const std::string& path,
                                      std::stop_token stop, const TakeSound& take_sound) {
  Search search(fd, pieces, size, path, std::move(stop), take_sound);
  const std::int64_t pieces_per_thread = std::max<std::int64_t>(1, kBytesPerThread / size.bytes());
  const std::int64_t num_threads = std::min<std::int64_t>(
      {kMaxThreads, static_cast<std::int64_t>(pieces.size()) / pieces_per_thread});
  base::run_on_threads(
      num_threads, [&search](std::int64_t, const std::stop_token& failed) { search.run(failed); });
  return search.result();
}

}  // namespace chunkio::write
