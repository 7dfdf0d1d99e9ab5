#include "cli/stop_signal.hpp"

#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <optional>

#include <chunkio/error.hpp>

namespace cli {

namespace {

constexpr std::array<int, 3> kSignals = {SIGINT, SIGTERM, SIGHUP};

using Clock = std::chrono::steady_clock;

// A handler reaches nothing but static storage; lock-free, so a store in it is safe.
std::atomic<int> received_signal{0};
static_assert(std::atomic<int>::is_always_lock_free);

// Nothing but a flag: another thread may still be in it when the listener is gone.
void on_signal(int number) {
  if (received_signal.exchange(number) != 0) ::_exit(128 + number);
}

/// Calls `look` ten times a second until `end` is requested.
template <class Look>
void look_often(const std::stop_token& end, const Look& look) {
  constexpr std::chrono::milliseconds kInterval{100};
  std::mutex mutex;
  std::condition_variable_any wake;
  std::unique_lock lock(mutex);
  while (!wake.wait_for(lock, end, kInterval, [&] { return end.stop_requested(); })) look();
}

/// Ends the process when the limit has passed since a signal arrived.
void end_in_time(const std::stop_token& end, const std::string& last_words) {
  std::optional<Clock::time_point> limit;
  look_often(end, [&] {
    if (StopSignal::received() == 0) return;
    const Clock::time_point now = Clock::now();
    if (!limit) limit = now + StopSignal::kLimit;
    if (now < *limit) return;
    // Not through stdio, whose lock may be held for ever. Nobody to tell if it fails.
    [[maybe_unused]] const auto written =
        ::write(STDERR_FILENO, last_words.data(), last_words.size());
    ::_exit(128 + StopSignal::received());
  });
}

}  // namespace

StopSignal::StopSignal(const std::string& left) {
  received_signal = 0;
  watch_ =
      std::jthread(end_in_time, std::string(program_invocation_short_name) +
                                    ": error: it was told to stop and did not within " +
                                    std::to_string(kLimit.count()) + " seconds, so it was ended" +
                                    (left.empty() ? "" : "; " + left) + "\n");
  struct ::sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  ::sigemptyset(&action.sa_mask);
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    ::sigaction(kSignals[i], &action, &previous_[i]);
    // A process started in the background with SIGINT ignored, or by nohup, keeps ignoring it.
    if (previous_[i].sa_handler == SIG_IGN) ::sigaction(kSignals[i], &previous_[i], nullptr);
  }
}

StopSignal::~StopSignal() {
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    ::sigaction(kSignals[i], &previous_[i], nullptr);
  }
  // What comes later in this process was not asked to stop.
  received_signal = 0;
}

int StopSignal::received() noexcept { return received_signal.load(std::memory_order_relaxed); }

void StopSignal::check() {
  const int number = received();
  if (number == 0) return;
  throw chunkio::Error(chunkio::ErrorCode::cancelled,
                       std::string("stopped by ") + (number == SIGINT    ? "SIGINT"
                                                     : number == SIGTERM ? "SIGTERM"
                                                                         : "SIGHUP"));
}

StopSignalToken::StopSignalToken()
    : thread_([this](const std::stop_token& end) {
        look_often(end, [this] {
          if (StopSignal::received() != 0) source_.request_stop();
        });
      }) {}

}  // namespace cli
