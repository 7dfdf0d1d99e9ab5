#include "h5pack/sparse/byte_stream.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

#include <chunkio/error.hpp>

#include "cli/file_bytes.hpp"
#include "cli/quote.hpp"
#include "cli/stop_signal.hpp"

namespace h5pack {

namespace {

using chunkio::Error;
using chunkio::ErrorCode;

}  // namespace

ByteStream::ByteStream(const std::string& path)
    : name_(path == "-" ? "standard input" : cli::quote(path)), fd_(STDIN_FILENO) {
  if (path != "-") {
    fd_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd_ < 0) cli::throw_errno("open", name_);
    owned_ = true;
  }
  struct ::stat status {};
  is_file_ = ::fstat(fd_, &status) == 0 && S_ISREG(status.st_mode);
  if (is_file_) size_ = status.st_size;
  try {
    fill();
    compressed_ = unread_.size() >= 2 && unread_[0] == '\x1f' && unread_[1] == '\x8b';
    // 16: with the header and the check of gzip.
    if (compressed_ && ::inflateInit2(&inflater_, 15 + 16) != Z_OK) throw std::bad_alloc();
  } catch (...) {
    if (owned_) ::close(fd_);
    throw;
  }
}

ByteStream::~ByteStream() {
  if (compressed_) ::inflateEnd(&inflater_);
  if (owned_) ::close(fd_);
}

/// Whoever writes to a pipe may take any time, in which the user may want to stop.
void ByteStream::wait_for_pipe() const {
  constexpr int kMilliseconds = 100;
  struct ::pollfd waiting {
    .fd = fd_, .events = POLLIN, .revents = 0
  };
  while (!is_file_) {
    cli::StopSignal::check();
    const int ready = ::poll(&waiting, 1, kMilliseconds);
    if (ready > 0 || (ready < 0 && errno != EINTR)) return;
  }
}

/// Reads on, if nothing is left. At the end nothing comes.
void ByteStream::fill() {
  while (unread_.empty()) {
    wait_for_pipe();
    const ::ssize_t count = ::read(fd_, input_.data(), input_.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) cli::throw_errno("read", name_);
    position_ += count;
    unread_ = std::span(input_).first(static_cast<std::size_t>(count));
    return;
  }
}

std::size_t ByteStream::read_plain(std::span<char> out) {
  fill();
  const std::size_t count = std::min(out.size(), unread_.size());
  std::memcpy(out.data(), unread_.data(), count);
  unread_ = unread_.subspan(count);
  return count;
}

/// \returns 0 at the end.
std::size_t ByteStream::inflate_some(std::span<char> out) {
  const auto damaged = [&](const std::string& why) {
    return Error(ErrorCode::corrupt_data,
                 name_ + ": the compressed data " + why + "; get the file again");
  };
  inflater_.next_out = reinterpret_cast<Bytef*>(out.data());
  inflater_.avail_out = static_cast<uInt>(std::min<std::size_t>(out.size(), 1U << 30));
  const uInt wanted = inflater_.avail_out;
  while (inflater_.avail_out == wanted) {
    fill();
    if (unread_.empty()) {
      if (between_members_) return 0;
      throw damaged("ends early");
    }
    if (between_members_ && ::inflateReset(&inflater_) != Z_OK) throw damaged("is damaged");
    between_members_ = false;
    inflater_.next_in = reinterpret_cast<Bytef*>(unread_.data());
    inflater_.avail_in = static_cast<uInt>(unread_.size());
    const int status = ::inflate(&inflater_, Z_NO_FLUSH);
    unread_ = unread_.last(inflater_.avail_in);
    if (status == Z_STREAM_END) {
      between_members_ = true;
    } else if (status != Z_OK && status != Z_BUF_ERROR) {
      throw damaged("is damaged");
    }
  }
  return wanted - inflater_.avail_out;
}

std::size_t ByteStream::read(std::span<char> out) {
  std::size_t done = std::min(out.size(), peeked_.size());
  std::memcpy(out.data(), peeked_.data(), done);
  peeked_.erase(0, done);
  while (done < out.size()) {
    const auto rest = out.subspan(done);
    const std::size_t count = compressed_ ? inflate_some(rest) : read_plain(rest);
    if (count == 0) break;
    done += count;
  }
  return done;
}

std::span<const char> ByteStream::peek(std::size_t count) {
  if (peeked_.size() < count) {
    std::string more(count - peeked_.size(), '\0');
    const std::string before = std::move(peeked_);
    peeked_.clear();
    more.resize(read(more));
    peeked_ = before + more;
  }
  return std::span(peeked_).first(std::min(count, peeked_.size()));
}

}  // namespace h5pack
