#include "cli/progress.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <stop_token>
#include <system_error>
#include <thread>
#include <utility>

#include "cli/progress_text.hpp"

namespace cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kRedrawInterval{100};
constexpr std::chrono::seconds kLineInterval{3};
constexpr int kDefaultColumns = 80;

bool can_redraw() {
  const char* terminal = std::getenv("TERM");
  return ::isatty(STDERR_FILENO) == 1 && terminal != nullptr && std::strcmp(terminal, "dumb") != 0;
}

int terminal_columns() {
  winsize size{};
  const bool known = ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : kDefaultColumns;
}

}  // namespace

struct Progress::Impl {
  Impl(ProgressState state_in, const std::atomic<std::int64_t>& done_in,
       const std::atomic<std::int64_t>& skipped_in)
      : state(std::move(state_in)), done(done_in), skipped(skipped_in), redraw(can_redraw()) {
    try {
      thread = std::jthread([this](const std::stop_token& stop) { run(stop); });
    } catch (const std::system_error&) {
      // The work goes on without being watched.
    }
  }

  void run(const std::stop_token& stop) {
    const Clock::duration interval =
        redraw ? Clock::duration(kRedrawInterval) : Clock::duration(kLineInterval);
    std::unique_lock lock(mutex);
    while (!wake.wait_for(lock, stop, interval, [&] { return stop.stop_requested(); })) {
      draw();
    }
  }

  void draw() {
    state.done = done.load(std::memory_order_relaxed);
    state.skipped = skipped.load(std::memory_order_relaxed);
    state.seconds = std::chrono::duration<double>(Clock::now() - start).count();
    // One call each, so that lines of other threads do not land in between. On a terminal the line
    // is rewritten in place and what is left of a longer one erased.
    if (redraw) {
      std::fputs(("\r" + progress_bar(state, terminal_columns()) + "\x1b[K").c_str(), stderr);
      std::fflush(stderr);
    } else {
      std::fputs((progress_line(state) + "\n").c_str(), stderr);
    }
    drawn = true;
  }

  void finish() {
    if (!thread.joinable()) return;
    thread.request_stop();
    thread.join();
    // What took less than one interval needs no line in a log.
    if (!redraw && !drawn) return;
    draw();
    if (!redraw) return;
    // What is complete leaves its result alone on the terminal; what was not stays to be seen.
    std::fputs(state.done >= state.total ? "\r\x1b[K" : "\n", stderr);
    std::fflush(stderr);
  }

  ProgressState state;  // drawing thread, then finish() after the join
  const std::atomic<std::int64_t>& done;
  const std::atomic<std::int64_t>& skipped;
  const bool redraw;
  const Clock::time_point start = Clock::now();
  bool drawn = false;  // as `state`
  std::mutex mutex;    // of `wake` alone
  std::condition_variable_any wake;
  std::jthread thread;
};

Progress::Progress(std::string label, std::string unit, std::int64_t total, bool quiet) {
  if (quiet) return;
  impl_ = std::make_unique<Impl>(
      ProgressState{.label = std::move(label), .unit = std::move(unit), .total = total}, done_,
      skipped_);
}

Progress::~Progress() { finish(); }

void Progress::finish() {
  if (impl_) impl_->finish();
}

}  // namespace cli
