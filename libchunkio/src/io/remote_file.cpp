#include "io/remote_file.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <random>
#include <thread>
#include <utility>

#include <chunkio/error.hpp>

#include "base/stopwatch.hpp"
#include "io/local_file.hpp"
#include "io/merged_ranges.hpp"
#include "io/store_keys.hpp"

namespace chunkio::io {
namespace {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

/// Of what is kept of metadata. At 90 MB/s it takes some 6 ms, and the first byte 50 ms.
constexpr std::int64_t kBlockBytes = std::int64_t{512} << 10;
constexpr std::size_t kMostBlocks = 64;
/// Reads of no more than this go through blocks.
constexpr std::size_t kSmallRead = std::size_t{64} << 10;
/// More than any store takes: a server that says more is not believed.
constexpr std::int64_t kMostBytes = std::int64_t{1} << 60;
/// Prefetched ranges less than kNear apart share a request.
constexpr std::int64_t kNear = std::int64_t{1} << 20;
constexpr std::size_t kMergedRequests = 4;
constexpr double kFirstPause = 0.05;
constexpr double kLongestPause = 2;
/// A request that brings nothing is sent again: after kSilence times as long as requests take, in
/// seconds within these bounds, and twice as long each time. On a slow line, which requests share,
/// the first tell little.
constexpr double kSilence = 8;
constexpr double kLeastSilence = 2;
constexpr double kMostSilence = 10;
constexpr int kFewRequests = 32;
/// A server that is not there when a file is opened will not come: its name may be wrong.
constexpr int kTriesToReachServer = 3;

BlockCache& cache() {
  static BlockCache of_process(kMostBlocks);
  return of_process;
}

std::uint64_t next_number() {
  static std::atomic<std::uint64_t> number = 0;
  return ++number;
}

/// Whether an answer may be another one the next time.
bool is_passing(long status) {
  return status == 0 || status == 206 || status == 408 || status == 429 || status >= 500;
}

std::string status_text(const HttpReply& reply) {
  if (reply.status == 0 || reply.status == 206) return reply.failure;
  std::string text = "HTTP status " + std::to_string(reply.status);
  if (!reply.store_code.empty()) text += ", " + reply.store_code;
  return text;
}

/// Longer from time to time, and never the same for two threads that failed together.
double pause_before(int attempt) {
  thread_local std::minstd_rand random(std::random_device{}());
  const double most =
      std::min(kLongestPause, kFirstPause * static_cast<double>(1 << std::min(attempt, 10)));
  return std::uniform_real_distribution<double>(most / 2, most)(random);
}

/// \throws Error cancelled.
void wait(double seconds, const std::stop_token& stop, const std::string& name) {
  std::mutex mutex;
  std::condition_variable_any changed;
  std::unique_lock lock(mutex);
  if (changed.wait_for(lock, stop, Seconds(seconds), [&] { return stop.stop_requested(); })) {
    throw Error(ErrorCode::cancelled, "reading " + name + " was stopped");
  }
}

/// How long to go on with requests that bring nothing.
class Retries {
 public:
  explicit Retries(double timeout_seconds)
      : timeout_(std::chrono::duration_cast<Clock::duration>(Seconds(timeout_seconds))) {
    begin_again();
  }

  /// Requests that were waited after since begin_again().
  [[nodiscard]] int in_vain() const noexcept { return in_vain_; }
  void begin_again() {
    in_vain_ = 0;
    deadline_ = Clock::now() + timeout_;
  }
  /// Waits before the next request. \returns false if there is no time left for one.
  /// \throws Error cancelled.
  bool wait_after(const HttpReply& reply, const std::stop_token& stop, const std::string& name) {
    const double pause = std::max(pause_before(in_vain_++), reply.retry_after_seconds);
    if (Clock::now() + Seconds(pause) > deadline_) return false;
    wait(pause, stop, name);
    return true;
  }

 private:
  Clock::duration timeout_;
  Clock::time_point deadline_;
  int in_vain_ = 0;
};

}  // namespace

RemoteFile::RemoteFile(const std::string& address, const RemoteOptions& options)
    : object_(find_object(address)),
      options_(options),
      client_(HttpClient::shared()),
      number_(next_number()) {
  if (options_.requests < 1 || options_.requests > 1024) {
    throw Error(ErrorCode::invalid_argument,
                "remote_requests must be 1 to 1024, not " + std::to_string(options_.requests),
                "remote_requests");
  }
  if (!(options_.timeout_seconds > 0)) {
    throw Error(ErrorCode::invalid_argument, "remote_timeout must be more than 0",
                "remote_timeout");
  }
  if (options_.cache_bytes < 0) {
    throw Error(ErrorCode::invalid_argument, "remote_cache_bytes must not be negative",
                "remote_cache_bytes");
  }
  const BlockCache::Block first = read_first_block();
  if (size_ == 0) return;
  if (!options_.index.empty()) index_ = RemoteIndex::load(options_.index, object_version());
  if (!options_.cache.empty()) {
    const ObjectVersion object = object_version();
    cache_ = std::make_unique<DiskCache>(
        options_.cache, options_.cache_bytes,
        object.place + "\n" + object.validator + "\n" + std::to_string(object.bytes), object.bytes);
    // Rows lie in it.
    if (!cache_->holds(0, first->size())) cache_->keep(0, *first);
  }
}

ObjectVersion RemoteFile::object_version() const {
  if (!validator_.empty()) return {name(), object_.place, validator_, size_};
  throw Error(ErrorCode::unsupported,
              "nothing of " + name() + " can be kept: " +
                  (size_ == 0 ? "it is empty"
                              : "the server gives it neither an entity tag nor a time of "
                                "modification, so a new version would not be noticed"));
}

HttpReply RemoteFile::ask(std::int64_t begin, std::span<std::byte> out, int in_vain,
                          const std::stop_token& stop) const {
  std::optional<StoreKey> key;
  if (object_.keys) key = object_.keys->current();
  double silence = kMostSilence;
  {
    const std::lock_guard lock(time_mutex_);
    if (request_time_.count() >= kFewRequests) {
      silence = std::max(kLeastSilence, kSilence * request_time_.seconds());
    }
  }
  silence = std::min(kMostSilence, silence * (1 << std::min(in_vain, 3)));
  base::Stopwatch watch;
  HttpReply reply = client_->get(object_, key ? &*key : nullptr, begin, out, validator_,
                                 static_cast<long>(silence), stop);
  if (reply.received == out.size()) {
    const std::lock_guard lock(time_mutex_);
    request_time_.add(watch.lap());
  }
  return reply;
}

BlockCache::Block RemoteFile::read_first_block() {
  auto block = std::make_shared<std::vector<std::byte>>(static_cast<std::size_t>(kBlockBytes));
  Retries retries(options_.timeout_seconds);
  for (;;) {
    const HttpReply reply = ask(0, *block, retries.in_vain(), {});
    const bool empty = reply.status == 416 && reply.object_bytes == 0;
    if (reply.status == 206 && reply.failure.empty() && reply.range && reply.object_bytes > 0 &&
        reply.object_bytes <= kMostBytes &&
        std::cmp_equal(reply.received, std::min(reply.object_bytes, kBlockBytes))) {
      size_ = reply.object_bytes;
      validator_ = reply.validator;
      block->resize(reply.received);
      cache().add({number_, 0}, block);
      return block;
    }
    if (empty) return nullptr;
    refuse_what_is_final(reply);
    const bool away = reply.no_server && retries.in_vain() + 1 >= kTriesToReachServer;
    if (away || !retries.wait_after(reply, {}, name())) {
      throw Error(ErrorCode::io_failed, "cannot open " + name() + ": " + status_text(reply));
    }
  }
}

std::uint64_t RemoteFile::version() const {
  return std::hash<std::string>()(validator_) + (changed_ ? 1 : 0);
}

void RemoteFile::refuse_what_is_final(const HttpReply& reply) const {
  const bool other = reply.status == 206 && !validator_.empty() && reply.validator != validator_;
  if (other || reply.status == 412) {
    changed_ = true;
    throw Error(ErrorCode::corrupt_data,
                name() +
                    " was changed while being read: its entity tag is another one than when "
                    "it was opened; open it again when its writer is done");
  }
  if (is_passing(reply.status)) return;
  const std::string said = status_text(reply);
  if (reply.status == 404 || reply.status == 410) {
    throw Error(ErrorCode::not_found, "no file " + name() + " (" + said + ")");
  }
  if (reply.status == 401 || reply.status == 403) {
    throw Error(ErrorCode::io_failed,
                "may not read " + name() + " (" + said + "); " +
                    (object_.keys ? "the key that was found may not, or it has expired"
                                  : "no key was found: set AWS_ACCESS_KEY_ID and "
                                    "AWS_SECRET_ACCESS_KEY, or a profile; or sign the URL"));
  }
  if (reply.status < 300) {
    throw Error(ErrorCode::unsupported,
                name() + ": the server sends whole files only, no ranges of them; copy it here");
  }
  throw Error(ErrorCode::io_failed, "cannot read " + name() + ": " + said);
}

ReadTime RemoteFile::read_at(std::int64_t offset, std::span<std::byte> out,
                             const std::stop_token& stop) const {
  if (offset < 0 || std::cmp_greater(out.size(), size_) ||
      offset > size_ - static_cast<std::int64_t>(out.size())) {
    throw Error(ErrorCode::corrupt_data, name() + " has " + std::to_string(size_) + " bytes, and " +
                                             std::to_string(out.size()) + " were to be read at " +
                                             std::to_string(offset) +
                                             "; the file is truncated, copy it again");
  }
  base::Stopwatch watch;
  if (out.size() <= kSmallRead) {
    read_blocks(offset, out, stop);
  } else {
    read_pieces(offset, out, stop);
  }
  return {.waited_seconds = watch.lap()};
}

void RemoteFile::read_pieces(std::int64_t offset, std::span<std::byte> out,
                             const std::stop_token& stop) const {
  const auto [first, last] = pieces_around(offset, out.size());
  if (first == offset && last == offset + static_cast<std::int64_t>(out.size())) {
    fetch(offset, out, stop);
    return;
  }
  // Only libhdf5 asks for such, one read at a time.
  std::vector<std::byte> pieces(static_cast<std::size_t>(last - first));
  fetch(first, pieces, stop);
  std::memcpy(out.data(), pieces.data() + (offset - first), out.size());
}

ByteRange RemoteFile::pieces_around(std::int64_t offset, std::size_t bytes) const noexcept {
  const std::int64_t align = block_bytes();
  const std::int64_t end = offset + static_cast<std::int64_t>(bytes);
  return {offset / align * align, std::min((end + align - 1) / align * align, size_)};
}

void RemoteFile::read_blocks(std::int64_t offset, std::span<std::byte> out,
                             const std::stop_token& stop) const {
  while (!out.empty()) {
    const std::int64_t number = offset / kBlockBytes;
    const std::int64_t begin = number * kBlockBytes;
    const auto from = static_cast<std::size_t>(offset - begin);
    const std::size_t bytes =
        std::min(out.size(), static_cast<std::size_t>(std::min(kBlockBytes, size_ - begin)) - from);
    BlockCache::Block block = cache().find({number_, number});
    if (!block && read_kept(offset, out.first(bytes))) {
      offset += static_cast<std::int64_t>(bytes);
      out = out.subspan(bytes);
      continue;
    }
    if (!block) {
      auto read = std::make_shared<std::vector<std::byte>>(
          static_cast<std::size_t>(std::min(kBlockBytes, size_ - begin)));
      fetch(begin, *read, stop);
      block = std::move(read);
      cache().add({number_, number}, block);
    }
    std::memcpy(out.data(), block->data() + from, bytes);
    offset += static_cast<std::int64_t>(bytes);
    out = out.subspan(bytes);
  }
}

bool RemoteFile::read_kept(std::int64_t offset, std::span<std::byte> out) const {
  if (distrusted()) return false;
  if (index_ && index_->read(offset, out)) return true;
  if (!cache_) return false;
  const ByteRange pieces = pieces_around(offset, out.size());
  std::vector<std::byte> kept(static_cast<std::size_t>(pieces.end - pieces.begin));
  if (cache_->read(pieces.begin, kept) < kept.size()) return false;
  std::memcpy(out.data(), kept.data() + (offset - pieces.begin), out.size());
  return true;
}

bool RemoteFile::is_kept(const ByteRange& range) const {
  const std::int64_t block = range.begin / kBlockBytes;
  if (block == (range.end - 1) / kBlockBytes && cache().find({number_, block})) return true;
  if (distrusted()) return false;
  if (index_ && index_->holds(range)) return true;
  if (!cache_) return false;
  const ByteRange pieces =
      pieces_around(range.begin, static_cast<std::size_t>(range.end - range.begin));
  return cache_->holds(pieces.begin, static_cast<std::size_t>(pieces.end - pieces.begin));
}

std::unique_ptr<const ByteSource> RemoteFile::prefetch(
    std::span<const ByteRange> ranges) const noexcept try {
  std::vector<ByteRange> wanted;
  for (const ByteRange& asked : ranges) {
    if (asked.begin < 0 || asked.end > size_ || is_kept(asked)) continue;
    const ByteRange range =
        pieces_around(asked.begin, static_cast<std::size_t>(asked.end - asked.begin));
    if (!wanted.empty() && range.begin - wanted.back().end <= kNear) {
      wanted.back().end = std::max(wanted.back().end, range.end);
    } else {
      wanted.push_back(range);
    }
  }
  auto source = weak_from_this().lock();
  if (wanted.empty() || !source) return nullptr;
  return std::make_unique<const MergedRanges>(
      std::move(source), wanted,
      std::min(kMergedRequests, static_cast<std::size_t>(options_.requests)));
} catch (const std::exception&) {
  return nullptr;  // the reader reads the bytes itself
}

void RemoteFile::fetch(std::int64_t offset, std::span<std::byte> out,
                       const std::stop_token& stop) const {
  const auto advance = [&](std::size_t bytes) {
    offset += static_cast<std::int64_t>(bytes);
    out = out.subspan(bytes);
  };
  while (!out.empty()) {
    std::size_t missing = out.size();
    std::optional<ClaimedRanges::Claim> claim;
    if (cache_ && !distrusted()) {
      advance(cache_->read(offset, out));
      if (out.empty()) return;
      missing = cache_->missing(offset, out.size());
      claim = claimed_.claim({offset, offset + static_cast<std::int64_t>(missing)}, stop);
      if (!claim && !stop.stop_requested()) continue;
    }
    download(offset, out.first(missing), stop);
    if (cache_) cache_->keep(offset, out.first(missing));
    advance(missing);
  }
}

void RemoteFile::download(std::int64_t offset, std::span<std::byte> out,
                          const std::stop_token& stop) const {
  Retries retries(options_.timeout_seconds);
  while (!out.empty()) {
    const HttpReply reply = ask(offset, out, retries.in_vain(), stop);
    if (reply.stopped) throw Error(ErrorCode::cancelled, "reading " + name() + " was stopped");
    refuse_what_is_final(reply);
    offset += static_cast<std::int64_t>(reply.received);
    out = out.subspan(reply.received);
    if (out.empty()) return;
    if (reply.received > 0) retries.begin_again();  // it goes on behind them
    if (!retries.wait_after(reply, stop, name())) {
      throw Error(ErrorCode::io_failed,
                  "cannot read " + name() + ": " + std::to_string(retries.in_vain()) +
                      " requests in " + std::to_string(static_cast<int>(options_.timeout_seconds)) +
                      " s brought nothing; the last: " + status_text(reply),
                  "remote_timeout");
    }
  }
}

const RemoteFile* as_remote_file(const ByteSource& source) noexcept {
  const auto* const recording = dynamic_cast<const RecordingSource*>(&source);
  return recording != nullptr ? &recording->file() : dynamic_cast<const RemoteFile*>(&source);
}

RecordingSource::RecordingSource(std::shared_ptr<const RemoteFile> file)
    : RecordingSource(file, file, std::make_shared<Record>()) {}

ReadTime RecordingSource::read_at(std::int64_t offset, std::span<std::byte> out,
                                  const std::stop_token& stop) const {
  const ReadTime time = WrappingSource::read_at(offset, out, stop);
  if (out.empty() || out.size() > kSmallRead) return time;
  const std::lock_guard lock(record_->mutex);
  if (record_->doubts != file_->doubts()) {
    record_->parts.clear();
    record_->doubts = file_->doubts();
  }
  record_->parts.push_back({offset, {out.begin(), out.end()}});
  return time;
}

std::unique_ptr<const ByteSource> RecordingSource::prefetch(
    std::span<const ByteRange> ranges) const noexcept try {
  std::shared_ptr<const ByteSource> prefetched = source()->prefetch(ranges);
  if (!prefetched) return nullptr;
  return std::unique_ptr<const ByteSource>(
      new RecordingSource(std::move(prefetched), file_, record_));
} catch (const std::exception&) {
  return nullptr;
}

std::vector<ObjectPart> RecordingSource::take_parts() {
  const std::lock_guard lock(record_->mutex);
  return std::move(record_->parts);
}

Distrust::Distrust(const RemoteFile& file) : file_(file) {
  ++file_.distrusted_;
  ++file_.doubts_;
  cache().forget(file_.number_);
}

Distrust::~Distrust() { --file_.distrusted_; }

std::shared_ptr<const ByteSource> open_source(const std::string& path,
                                              const RemoteOptions& options) {
  if (is_remote(path)) return std::make_shared<const RemoteFile>(path, options);
  return std::make_shared<const LocalFile>(path);
}

std::vector<std::shared_ptr<const ByteSource>> open_sources(std::span<const std::string> paths,
                                                            const RemoteOptions& options) {
  std::vector<std::shared_ptr<const ByteSource>> sources(paths.size());
  std::vector<std::exception_ptr> errors(paths.size());
  std::atomic<std::size_t> next = 0;
  const auto open = [&] {
    for (std::size_t i = next++; i < paths.size(); i = next++) {
      try {
        sources[i] = open_source(paths[i], options);
      } catch (...) {
        errors[i] = std::current_exception();
      }
    }
  };
  {
    const bool remote = std::any_of(paths.begin(), paths.end(), &is_remote);
    const std::size_t threads =
        remote ? std::min(paths.size(), static_cast<std::size_t>(
                                            std::clamp<std::int64_t>(options.requests, 1, 1024)))
               : 1;
    std::vector<std::jthread> others;
    for (std::size_t i = 1; i < threads; ++i) others.emplace_back(open);
    open();
  }
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
  return sources;
}

}  // namespace chunkio::io
