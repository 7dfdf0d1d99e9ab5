// Which way of asking a cold disk for row groups is fastest: mappings, threads with positional
// reads, or an io_uring?
//
// A file of noise is read in shuffled row groups of about 4 MiB, nothing of it in the page cache
// (posix_fadvise DONTNEED before each turn), and every row is brought to its place in a ring of
// huge pages with non-temporal stores, as a loader does it. Each round runs fio, all ways
// one after the other, and fio again. Ratios to the highest of fio's figures are taken within a
// round.

#include <fcntl.h>
#include <liburing.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <functional>
#include <mutex>
#include <numeric>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "base/host_memory.hpp"
#include "base/positional_io.hpp"
#include "base/streaming_copy.hpp"
#include "cold_file.hpp"
#include "fio.hpp"
#include "noise.hpp"
#include "scratch_folder.hpp"
#include "spread.hpp"

namespace {

using chunkio::base::FileDescriptor;
using chunkio::base::HostBuffer;
using Json = nlohmann::ordered_json;

constexpr std::int64_t kMiB = std::int64_t{1} << 20;
/// Sectors of the disk and pages of memory: what O_DIRECT must be aligned to.
constexpr std::int64_t kAlignment = 4096;
/// Where the first row lies, as in a file with a header.
constexpr std::int64_t kFirstRow = 2048;
constexpr std::int64_t kGroupBytes = 4 * kMiB;
/// Row groups mixed together: the default window of 256 MiB.
constexpr std::int64_t kWindowGroups = 64;
/// What is asked of the kernel before it is needed.
constexpr std::int64_t kAheadBytes = 64 * kMiB;

struct Options {
  std::int64_t bytes = 2048 * kMiB;
  std::int64_t row_bytes = 218 * 178 * 3;
  std::string folder = std::filesystem::temp_directory_path().string();
  std::int64_t rounds = 5;
  std::string only;
  std::string json;
};

[[noreturn]] void fail(int error, const char* what) {
  throw std::system_error(error, std::generic_category(), what);
}

FileDescriptor open_file(const std::string& path, int flags) {
  const int fd = ::open(path.c_str(), flags | O_CLOEXEC, 0600);
  if (fd < 0) throw chunkio::base::system_error(errno, "open", path);
  return FileDescriptor(fd);
}

/// Every row group is a part of the noise.
void write_file(const std::string& path, std::int64_t num_groups, std::int64_t group_bytes) {
  const FileDescriptor file = open_file(path, O_WRONLY | O_CREAT | O_EXCL);
  std::vector<std::byte> group(static_cast<std::size_t>(group_bytes));
  for (std::int64_t g = 0; g < num_groups; ++g) {
    bench::fill_with_noise(group, static_cast<std::uint64_t>(g));
    chunkio::base::write_at(file.get(), kFirstRow + g * group_bytes, group, path);
  }
}

/// Part of a row group that is read at once.
struct Piece {
  std::int64_t begin = 0, end = 0;  ///< In the file; only these bytes are rows.
  std::size_t visit = 0;
};

/// The epoch: row groups in random order, their rows mixed within windows.
class Epoch {
 public:
  Epoch(std::int64_t bytes, std::int64_t row_bytes)
      : row_bytes_(row_bytes),
        group_rows_(std::max<std::int64_t>(1, kGroupBytes / row_bytes)),
        num_groups_(std::max<std::int64_t>(1, bytes / (group_rows_ * row_bytes))),
        ring_(static_cast<std::size_t>(2 * kWindowGroups * group_rows_ * row_bytes)) {
    std::mt19937_64 random(7);
    order_.resize(static_cast<std::size_t>(num_groups_));
    std::iota(order_.begin(), order_.end(), 0);
    std::shuffle(order_.begin(), order_.end(), random);
    slot_.resize(static_cast<std::size_t>(num_groups_ * group_rows_));
    const std::int64_t window_rows = kWindowGroups * group_rows_;
    const auto rows = static_cast<std::int64_t>(slot_.size());
    for (std::int64_t first = 0; first < rows; first += window_rows) {
      const auto begin = slot_.begin() + first;
      const auto end = slot_.begin() + std::min(first + window_rows, rows);
      std::iota(begin, end, first % (2 * window_rows));
      std::shuffle(begin, end, random);
    }
    missing_ = std::vector<std::atomic<std::int64_t>>(
        static_cast<std::size_t>((num_groups_ + kWindowGroups - 1) / kWindowGroups));
    start();
  }

  [[nodiscard]] std::int64_t bytes() const noexcept { return num_groups_ * group_bytes(); }
  [[nodiscard]] std::int64_t file_bytes() const noexcept { return kFirstRow + bytes(); }
  [[nodiscard]] std::int64_t group_bytes() const noexcept { return group_rows_ * row_bytes_; }
  [[nodiscard]] std::int64_t num_groups() const noexcept { return num_groups_; }
  [[nodiscard]] std::size_t num_visits() const noexcept { return order_.size(); }
  /// Where the group of a visit begins in the file.
  [[nodiscard]] std::int64_t offset(std::size_t visit) const noexcept {
    return kFirstRow + order_[visit] * group_bytes();
  }

  /// All visits cut into pieces of about `size` bytes, in order.
  [[nodiscard]] std::vector<Piece> pieces(std::int64_t size) const {
    std::vector<Piece> result;
    for (std::size_t visit = 0; visit < num_visits(); ++visit) {
      const std::int64_t end = offset(visit) + group_bytes();
      for (std::int64_t at = offset(visit); at < end;) {
        // Cut at sectors, so that none is read twice.
        const std::int64_t next = std::min(end, (at + size) / kAlignment * kAlignment);
        result.push_back({at, next, visit});
        at = next;
      }
    }
    return result;
  }

  void start() {
    next_ = 0;
    for (std::size_t w = 0; w < missing_.size(); ++w) {
      const std::int64_t groups =
          std::min(kWindowGroups, num_groups_ - static_cast<std::int64_t>(w) * kWindowGroups);
      missing_[w] = groups * group_bytes();
    }
  }
  /// The next number to work on; counts visits or pieces.
  std::size_t take() noexcept { return next_++; }

  /// Brings a piece to the ring. Waits until the window before the last is complete: its places
  /// are in use until then.
  void place(const Piece& piece, const std::byte* bytes) {
    const std::size_t window = piece.visit / static_cast<std::size_t>(kWindowGroups);
    if (window >= 2) {
      while (missing_[window - 2].load(std::memory_order_acquire) != 0) {
        if (stopped_) return;
        std::this_thread::yield();
      }
    }
    const std::int64_t group_begin = offset(piece.visit);
    for (std::int64_t at = piece.begin; at < piece.end;) {
      const std::int64_t row = (at - group_begin) / row_bytes_;
      const std::int64_t within = (at - group_begin) % row_bytes_;
      const std::int64_t size = std::min(row_bytes_ - within, piece.end - at);
      chunkio::base::streaming_copy(ring_.data() + slot_of(piece.visit, row) * row_bytes_ + within,
                                    bytes + (at - piece.begin), static_cast<std::size_t>(size));
      at += size;
    }
    chunkio::base::store_fence();
    missing_[window].fetch_sub(piece.end - piece.begin, std::memory_order_release);
  }

  /// Rows that are left in the ring must be those of the last two windows.
  void check(const std::string& what) {
    std::vector<std::byte> expected(static_cast<std::size_t>(group_bytes()));
    const auto num_windows = static_cast<std::int64_t>(missing_.size());
    for (const auto& missing : missing_) {
      if (missing.load() != 0) throw std::runtime_error(what + " left out rows");
    }
    const std::int64_t first = std::max<std::int64_t>(0, num_windows - 2) * kWindowGroups;
    for (auto visit = static_cast<std::size_t>(first); visit < num_visits(); ++visit) {
      bench::fill_with_noise(expected, static_cast<std::uint64_t>(order_[visit]));
      for (std::int64_t row = 0; row < group_rows_; ++row) {
        if (std::memcmp(expected.data() + row * row_bytes_,
                        ring_.data() + slot_of(visit, row) * row_bytes_,
                        static_cast<std::size_t>(row_bytes_)) != 0) {
          throw std::runtime_error(what + " left a wrong row " + std::to_string(row) +
                                   " of visit " + std::to_string(visit));
        }
      }
    }
    std::memset(ring_.data(), 0, ring_.size());
  }

  /// Runs `work` on `threads` threads; the first exception of any is thrown here.
  void run(int threads, const std::function<void()>& work) {
    start();
    stopped_ = false;
    std::exception_ptr first_error;
    std::mutex mutex;
    const auto guarded = [&] {
      try {
        work();
      } catch (...) {
        stopped_ = true;
        const std::lock_guard lock(mutex);
        if (!first_error) first_error = std::current_exception();
      }
    };
    {
      std::vector<std::jthread> workers;
      for (int t = 1; t < threads; ++t) workers.emplace_back(guarded);
      guarded();
    }
    if (first_error) std::rethrow_exception(first_error);
  }

 private:
  [[nodiscard]] std::int64_t slot_of(std::size_t visit, std::int64_t row) const noexcept {
    return slot_[visit * static_cast<std::size_t>(group_rows_) + static_cast<std::size_t>(row)];
  }

  std::int64_t row_bytes_, group_rows_, num_groups_;
  HostBuffer ring_;
  std::vector<std::int64_t> order_;  // group of each visit
  std::vector<std::int64_t> slot_;   // place in the ring of each row, in visiting order
  std::vector<std::atomic<std::int64_t>> missing_;  // bytes, of each window
  std::atomic<std::size_t> next_{0};
  std::atomic<bool> stopped_{false};
};

/// Whole sectors, of which the end of the file may cut the last: `needed` bytes must come.
void read_sectors(int file, std::byte* target, std::int64_t offset, std::int64_t size,
                  std::int64_t needed) {
  for (std::int64_t done = 0; done < needed;) {
    const ssize_t got =
        ::pread(file, target + done, static_cast<std::size_t>(size - done), offset + done);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) fail(got < 0 ? errno : EIO, "pread");
    done += got;
  }
}

/// The piece, widened to sectors.
struct Aligned {
  explicit Aligned(const Piece& piece)
      : begin(piece.begin / kAlignment * kAlignment),
        size((piece.end + kAlignment - 1) / kAlignment * kAlignment - begin),
        needed(piece.end - begin),
        skip(piece.begin - begin) {}
  std::int64_t begin, size;
  std::int64_t needed;  ///< The end of the file may not be aligned.
  std::int64_t skip;
};

/// Asks for the group of visit `visit` + 64 MiB; at the start for all until then.
template <class Ask>
void ask_ahead(const Epoch& epoch, std::size_t visit, Ask ask) {
  const auto ahead = static_cast<std::size_t>(kAheadBytes / epoch.group_bytes());
  const std::size_t first = visit == 0 ? 0 : visit + ahead;
  for (std::size_t v = first; v <= visit + ahead && v < epoch.num_visits(); ++v) {
    ask(epoch.offset(v), epoch.group_bytes());
  }
}

/// The kernel's readahead, `step` bytes a call.
void read_ahead(int file, std::int64_t offset, std::int64_t size, std::int64_t step) {
  for (std::int64_t at = 0; at < size; at += step) {
    (void)::readahead(file, offset + at, static_cast<std::size_t>(std::min(step, size - at)));
  }
}

void read_mapped(const std::string& path, Epoch& epoch, int threads, std::int64_t step) {
  const FileDescriptor file = open_file(path, O_RDONLY);
  const auto size = static_cast<std::size_t>(epoch.file_bytes());
  void* map = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, file.get(), 0);
  if (map == MAP_FAILED) fail(errno, "mmap");
  const auto* bytes = static_cast<const std::byte*>(map);
  epoch.run(threads, [&] {
    for (std::size_t v = epoch.take(); v < epoch.num_visits(); v = epoch.take()) {
      ask_ahead(epoch, v, [&](std::int64_t offset, std::int64_t length) {
        read_ahead(file.get(), offset, length, step);
      });
      const Piece group{epoch.offset(v), epoch.offset(v) + epoch.group_bytes(), v};
      const Aligned pages(group);
      // Faults pages in all at once. An older kernel does not know it: then they come one by one.
      (void)::madvise(static_cast<std::byte*>(map) + pages.begin,
                      static_cast<std::size_t>(pages.size), 22 /* MADV_POPULATE_READ */);
      epoch.place(group, bytes + group.begin);
    }
  });
  ::munmap(map, size);
}

void read_buffered(const std::string& path, Epoch& epoch, int threads) {
  constexpr std::int64_t kPiece = 512 << 10;  // stays in the second-level cache
  const FileDescriptor file = open_file(path, O_RDONLY);
  epoch.run(threads, [&] {
    const HostBuffer scratch(static_cast<std::size_t>(kPiece + kAlignment));
    for (std::size_t v = epoch.take(); v < epoch.num_visits(); v = epoch.take()) {
      ask_ahead(epoch, v, [&](std::int64_t offset, std::int64_t length) {
        (void)::posix_fadvise(file.get(), offset, length, POSIX_FADV_WILLNEED);
      });
      const std::int64_t end = epoch.offset(v) + epoch.group_bytes();
      for (std::int64_t at = epoch.offset(v); at < end;) {
        const std::int64_t size = std::min(kPiece, end - at);
        chunkio::base::read_at(file.get(), at,
                               std::span(scratch.data(), static_cast<std::size_t>(size)), path);
        epoch.place({at, at + size, v}, scratch.data());
        at += size;
      }
    }
  });
}

void read_direct(const std::string& path, Epoch& epoch, int threads, std::int64_t piece_bytes) {
  const FileDescriptor file = open_file(path, O_RDONLY | O_DIRECT);
  const std::vector<Piece> pieces = epoch.pieces(piece_bytes);
  epoch.run(threads, [&] {
    const HostBuffer scratch(static_cast<std::size_t>(piece_bytes + 2 * kAlignment));
    for (std::size_t i = epoch.take(); i < pieces.size(); i = epoch.take()) {
      const Aligned range(pieces[i]);
      read_sectors(file.get(), scratch.data(), range.begin, range.size, range.needed);
      epoch.place(pieces[i], scratch.data() + range.skip);
    }
  });
}

class Uring {
 public:
  Uring(unsigned depth, std::span<const iovec> buffers) {
    int error = ::io_uring_queue_init(depth, &ring_, 0);
    if (error != 0) fail(-error, "io_uring_queue_init");
    error =
        ::io_uring_register_buffers(&ring_, buffers.data(), static_cast<unsigned>(buffers.size()));
    if (error != 0) {
      ::io_uring_queue_exit(&ring_);
      fail(-error, "io_uring_register_buffers");
    }
  }
  Uring(const Uring&) = delete;
  Uring& operator=(const Uring&) = delete;
  ~Uring() { ::io_uring_queue_exit(&ring_); }
  [[nodiscard]] io_uring* get() noexcept { return &ring_; }

 private:
  io_uring ring_{};
};

/// `depth` pieces of 1 MiB in flight, shared out to the threads, each with a ring of its own.
void read_uring(const std::string& path, Epoch& epoch, int threads, unsigned depth, bool direct) {
  const FileDescriptor file = open_file(path, O_RDONLY | (direct ? O_DIRECT : 0));
  const std::vector<Piece> pieces = epoch.pieces(kMiB);
  const unsigned share = std::max(1u, depth / static_cast<unsigned>(threads));
  constexpr auto kBuffer = static_cast<std::size_t>(kMiB + 2 * kAlignment);
  epoch.run(threads, [&] {
    const HostBuffer scratch(share * kBuffer);
    std::vector<iovec> buffers;
    for (unsigned b = 0; b < share; ++b) {
      buffers.push_back({.iov_base = scratch.data() + b * kBuffer, .iov_len = kBuffer});
    }
    std::vector<std::size_t> piece_of(share);
    Uring ring(share, buffers);
    unsigned in_flight = 0;
    const auto submit_next = [&](unsigned buffer) {
      const std::size_t i = epoch.take();
      if (i >= pieces.size()) return;
      piece_of[buffer] = i;
      const Aligned range(pieces[i]);
      io_uring_sqe* entry = ::io_uring_get_sqe(ring.get());
      if (entry == nullptr) fail(EBUSY, "io_uring_get_sqe");
      ::io_uring_prep_read_fixed(entry, file.get(), buffers[buffer].iov_base,
                                 static_cast<unsigned>(range.size),
                                 static_cast<std::uint64_t>(range.begin), static_cast<int>(buffer));
      ::io_uring_sqe_set_data64(entry, buffer);
      ++in_flight;
    };
    for (unsigned b = 0; b < share; ++b) submit_next(b);
    while (in_flight > 0) {
      const int submitted = ::io_uring_submit_and_wait(ring.get(), 1);
      if (submitted < 0 && submitted != -EINTR) fail(-submitted, "io_uring_submit_and_wait");
      io_uring_cqe* done = nullptr;
      while (::io_uring_peek_cqe(ring.get(), &done) == 0) {
        const auto buffer = static_cast<unsigned>(::io_uring_cqe_get_data64(done));
        const int got = done->res;
        ::io_uring_cqe_seen(ring.get(), done);
        --in_flight;
        if (got < 0) fail(-got, "io_uring read");
        const Piece& piece = pieces[piece_of[buffer]];
        const Aligned range(piece);
        auto* bytes = static_cast<std::byte*>(buffers[buffer].iov_base);
        // A short read is rare: what is missing is fetched at once.
        if (got < range.needed) {
          const std::int64_t have = got / kAlignment * kAlignment;
          read_sectors(file.get(), bytes + have, range.begin + have, range.size - have,
                       range.needed - have);
        }
        epoch.place(piece, bytes + range.skip);
        submit_next(buffer);
        // Keeps the queue full while the next completions are placed.
        ::io_uring_submit(ring.get());
      }
    }
  });
}

struct Way {
  std::string name;
  std::function<void(const std::string& path, Epoch& epoch)> read;
};

std::vector<Way> all_ways() {
  std::vector<Way> ways;
  for (const int t : {1, 2, 4, 8}) {
    const std::string threads = ", " + std::to_string(t) + (t == 1 ? " thread" : " threads");
    for (const std::int64_t step : {kMiB / 8, kMiB, 4 * kMiB}) {
      ways.push_back({"mapped, readahead " + std::to_string(step >> 10) + " KiB" + threads,
                      [t, step](const auto& path, Epoch& e) { read_mapped(path, e, t, step); }});
    }
    ways.push_back({"pread, fadvise" + threads,
                    [t](const auto& path, Epoch& e) { read_buffered(path, e, t); }});
    for (const std::int64_t piece : {kMiB, 4 * kMiB}) {
      ways.push_back({"pread O_DIRECT " + std::to_string(piece / kMiB) + " MiB" + threads,
                      [t, piece](const auto& path, Epoch& e) { read_direct(path, e, t, piece); }});
    }
  }
  for (const int t : {1, 2}) {
    const std::string threads = ", " + std::to_string(t) + (t == 1 ? " thread" : " threads");
    for (const unsigned depth : {8u, 32u}) {
      for (const bool direct : {true, false}) {
        ways.push_back({std::string("io_uring ") + (direct ? "O_DIRECT" : "buffered") + " QD " +
                            std::to_string(depth) + threads,
                        [t, depth, direct](const auto& path, Epoch& e) {
                          read_uring(path, e, t, depth, direct);
                        }});
      }
    }
  }
  return ways;
}

void run(const Options& options) {
  const std::string no_fio = bench::reason_without_fio();
  if (!no_fio.empty()) throw std::runtime_error(no_fio);
  std::vector<Way> ways = all_ways();
  std::erase_if(ways,
                [&](const Way& way) { return way.name.find(options.only) == std::string::npos; });
  if (ways.empty()) throw std::runtime_error("no way has '" + options.only + "' in its name");

  Epoch epoch(options.bytes, options.row_bytes);
  const chunkio::test::ScratchFolder scratch(options.folder);
  const std::string path = scratch.file("cold");
  write_file(path, epoch.num_groups(), epoch.group_bytes());
  std::printf("%.2f GiB in row groups of %.2f MiB, rows of %lld bytes; %s; %lld rounds\n",
              static_cast<double>(epoch.bytes()) / static_cast<double>(1024 * kMiB),
              static_cast<double>(epoch.group_bytes()) / static_cast<double>(kMiB),
              static_cast<long long>(options.row_bytes), bench::fio_version().c_str(),
              static_cast<long long>(options.rounds));
  for (const Way& way : ways) {
    way.read(path, epoch);
    epoch.check(way.name);
  }

  std::vector<double> random_direct;
  std::vector<double> sequential;
  std::vector<double> ceiling;
  std::vector<std::vector<double>> rates(ways.size());
  std::vector<std::vector<double>> ratios(ways.size());
  for (std::int64_t round = 0; round < options.rounds; ++round) {
    // Before and after: a disk that others use drifts.
    const bench::FioRates before = bench::measure_fio(path);
    std::vector<double> round_rates;
    for (const Way& way : ways) {
      bench::drop_from_page_cache(path);
      const auto start = std::chrono::steady_clock::now();
      way.read(path, epoch);
      const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
      round_rates.push_back(static_cast<double>(epoch.bytes()) / seconds.count());
    }
    const bench::FioRates after = bench::measure_fio(path);
    random_direct.push_back(std::max(before.random_direct, after.random_direct));
    sequential.push_back(std::max(before.sequential_buffered, after.sequential_buffered));
    ceiling.push_back(std::max(random_direct.back(), sequential.back()));
    for (std::size_t i = 0; i < ways.size(); ++i) {
      rates[i].push_back(round_rates[i]);
      ratios[i].push_back(round_rates[i] / ceiling.back());
    }
    std::fprintf(stderr, "round %lld of %lld\n", static_cast<long long>(round + 1),
                 static_cast<long long>(options.rounds));
  }

  Json report = {{"program", "cold_read"},
                 {"bytes", epoch.bytes()},
                 {"group_bytes", epoch.group_bytes()},
                 {"row_bytes", options.row_bytes},
                 {"fio_version", bench::fio_version()},
                 {"page_cache", "cold (posix_fadvise DONTNEED)"},
                 {"fio_random_direct", bench::to_json(bench::spread_of(random_direct))},
                 {"fio_sequential_buffered", bench::to_json(bench::spread_of(sequential))},
                 {"ways", Json::array()}};
  const auto print = [](const std::string& name, const bench::Spread& rate,
                        const bench::Spread& ratio) {
    std::printf("  %-44s %5.2f (%4.2f to %4.2f) GB/s   %5.2f (%4.2f to %4.2f) of fio\n",
                name.c_str(), rate.median / 1e9, rate.lowest / 1e9, rate.highest / 1e9,
                ratio.median, ratio.lowest, ratio.highest);
  };
  const auto over_ceiling = [&](std::vector<double> values) {
    for (std::size_t i = 0; i < values.size(); ++i) values[i] /= ceiling[i];
    return bench::spread_of(values);
  };
  print("fio, 1 MiB random, io_uring QD 32, O_DIRECT", bench::spread_of(random_direct),
        over_ceiling(random_direct));
  print("fio, sequential, buffered", bench::spread_of(sequential), over_ceiling(sequential));
  for (std::size_t i = 0; i < ways.size(); ++i) {
    const bench::Spread rate = bench::spread_of(rates[i]);
    const bench::Spread ratio = bench::spread_of(ratios[i]);
    print(ways[i].name, rate, ratio);
    report["ways"].push_back({{"name", ways[i].name},
                              {"bytes_per_second", bench::to_json(rate)},
                              {"relative_to_fio", bench::to_json(ratio)}});
  }
  if (!options.json.empty()) {
    std::ofstream file(options.json);
    file << report.dump(2) << '\n';
    file.close();
    if (!file) throw std::runtime_error("cannot write " + options.json);
  }
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("Times ways of reading shuffled row groups from a cold file, against fio.",
               "cold_read");
  app.add_option("--bytes", options.bytes, "Bytes of the file")
      ->transform(CLI::AsSizeValue(false))
      ->check(CLI::Range(8 * kMiB, std::int64_t{1} << 40));
  app.add_option("--row-bytes", options.row_bytes, "Bytes of a row")
      ->check(CLI::Range(std::int64_t{1}, kGroupBytes));
  app.add_option("--dir", options.folder, "Where the file goes; it is removed at the end");
  app.add_option("--rounds", options.rounds, "Interleaved rounds, 5 or more for a figure to quote")
      ->check(CLI::Range(1, 1000));
  app.add_option("--only", options.only, "Only ways with this in their name");
  app.add_option("--json", options.json, "Also write everything to this file");
  try {
    app.parse(argc, argv);
    run(options);
    return 0;
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "cold_read: %s\n", error.what());
    return 1;
  }
}
