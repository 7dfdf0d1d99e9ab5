#include "stop_signal.hpp"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <string>
#include <string_view>

#include <chunkio/error.hpp>

namespace h5pack {

namespace {

constexpr std::array<int, 3> kSignals = {SIGINT, SIGTERM, SIGHUP};

// A handler reaches nothing but static storage; lock-free, so a store in it is safe.
std::atomic<int> received_signal{0};
static_assert(std::atomic<int>::is_always_lock_free);

void on_signal(int number) {
  if (received_signal.exchange(number) != 0) ::_exit(128 + number);
  ::alarm(StopSignal::kLimitSeconds);
}

void on_alarm(int /*number*/) {
  constexpr std::string_view kMessage =
      "h5pack: error: it was told to stop and did not within 5 seconds, so it was ended; an output "
      "that was begun is left as after a kill: the same command with --resume or --force goes on\n";
  static_assert(StopSignal::kLimitSeconds == 5);
  // Nobody to tell if that fails.
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, kMessage.data(), kMessage.size());
  ::_exit(128 + received_signal.load());
}

}  // namespace

StopSignal::StopSignal() {
  received_signal = 0;
  struct ::sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  ::sigemptyset(&action.sa_mask);
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    ::sigaction(kSignals[i], &action, &previous_[i]);
    // A process started in the background with SIGINT ignored, or by nohup, keeps ignoring it.
    if (previous_[i].sa_handler == SIG_IGN) ::sigaction(kSignals[i], &previous_[i], nullptr);
  }
  action.sa_handler = on_alarm;
  ::sigaction(SIGALRM, &action, &previous_alarm_);
}

StopSignal::~StopSignal() {
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    ::sigaction(kSignals[i], &previous_[i], nullptr);
  }
  ::alarm(0);
  ::sigaction(SIGALRM, &previous_alarm_, nullptr);
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
        constexpr std::chrono::milliseconds kInterval{100};
        std::mutex mutex;
        std::condition_variable_any wake;
        std::unique_lock lock(mutex);
        while (!wake.wait_for(lock, end, kInterval, [&] { return end.stop_requested(); })) {
          if (StopSignal::received() != 0) source_.request_stop();
        }
      }) {}

}  // namespace h5pack
