#include "write/write_verifier.hpp"

#include <exception>
#include <system_error>
#include <utility>

namespace chunkio::write {

WriteVerifier::WriteVerifier(int fd, std::string path, const PieceSize& size)
    : fd_(fd), path_(std::move(path)), size_(size) {
  try {
    thread_ = std::jthread([this] { run(); });
  } catch (const std::system_error&) {
    // A process that may start no more threads reads all at the end.
  }
}

WriteVerifier::~WriteVerifier() { end(); }

WriteVerifier::Writing::Writing(WriteVerifier& thread) : thread_(thread) {
  const std::lock_guard lock(thread_.mutex_);
  ++thread_.writing_;
}

WriteVerifier::Writing::~Writing() {
  const std::lock_guard lock(thread_.mutex_);
  if (--thread_.writing_ == 0) thread_.changed_.notify_one();
}

void WriteVerifier::add(std::span<const ExpectedBytes> pieces) {
  const std::lock_guard lock(mutex_);
  waiting_.insert(waiting_.end(), pieces.begin(), pieces.end());
  changed_.notify_one();
}

ReadBackResult WriteVerifier::finish() {
  end();
  return {.unread = {unread().begin(), unread().end()}, .damaged = std::move(damaged_)};
}

void WriteVerifier::end() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    changed_.notify_one();
  }
  thread_.join();
}

void WriteVerifier::run() noexcept {
  try {
    PieceReader reader(fd_, path_, size_);
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [&] { return ended_ || (writing_ == 0 && num_read_ < waiting_.size()); });
      if (ended_) return;
      const auto next = unread().first(reader.run_of(unread()));
      const std::vector<ExpectedBytes> run(next.begin(), next.end());
      lock.unlock();
      const std::vector<std::size_t> damaged = reader.find_damaged(run);
      lock.lock();
      for (const std::size_t piece : damaged) damaged_.push_back(run[piece]);
      num_read_ += run.size();
      if (num_read_ < waiting_.size()) continue;
      waiting_.clear();
      num_read_ = 0;
    }
  } catch (const std::exception&) {
    // Without memory: what waits is read at the end, where there is somebody to tell.
  }
}

}  // namespace chunkio::write
