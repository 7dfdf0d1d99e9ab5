/// What may end a wait of next() early: a stop token, a timeout, and what on_wait throws.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <stop_token>
#include <string>
#include <string_view>

#include <chunkio/error.hpp>

namespace chunkio::base {

using Seconds = std::chrono::duration<double>;

/// The largest value of options that are timeouts.
inline constexpr double kMaxTimeoutSeconds = 1e6;

/// As "5 s".
[[nodiscard]] inline std::string to_text(Seconds seconds) {
  std::string text = std::to_string(seconds.count());
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text + " s";
}

/// Something was not there in time (timed_out), or next() was told to stop (cancelled). Nothing was
/// changed: the next call goes on waiting.
class WaitEnded : public Error {
 public:
  using Error::Error;
};

/// Carries what on_wait threw. Likewise nothing was changed.
struct Interrupted {
  std::exception_ptr thrown;
};

/// Belongs to one call of next(), and to its thread.
class WaitHook {
 public:
  using Clock = std::chrono::steady_clock;
  /// Half of what a person who presses Ctrl-C takes for at once.
  static constexpr std::chrono::milliseconds kInterval{50};

  /// \param on_wait, stop  not copied; `on_wait` may be empty.
  /// \param timeout        the largest number: none.
  WaitHook(const std::function<void()>& on_wait, const std::stop_token& stop,
           std::chrono::nanoseconds timeout)
      : on_wait_(on_wait),
        stop_(stop),
        timeout_(std::max(timeout, std::chrono::nanoseconds::zero())) {}

  /// The longest sleep before the next look.
  [[nodiscard]] std::chrono::nanoseconds interval() const {
    // Without anything to look at, too: condition variables do not take any length.
    constexpr std::chrono::nanoseconds kLongest = std::chrono::hours(1);
    const std::chrono::nanoseconds longest =
        on_wait_ || stop_.stop_possible() ? std::chrono::nanoseconds(kInterval) : kLongest;
    return std::clamp(left(), std::chrono::nanoseconds::zero(), longest);
  }

  /// Waits until `ready()` holds, for `limit` at most, and looks meanwhile. Lets go of `lock` for
  /// each look, also if that throws.
  /// \param changed  notified when `ready()` may have begun to hold.
  /// \return whether it holds. \throws WaitEnded, Interrupted.
  template <class Ready>
  [[nodiscard]] bool wait(std::condition_variable& changed, std::unique_lock<std::mutex>& lock,
                          Seconds limit, const Ready& ready) {
    const Clock::time_point begun = Clock::now();
    while (!ready()) {
      const Seconds left = limit - (Clock::now() - begun);
      if (left <= Seconds::zero()) return false;
      if (changed.wait_for(lock, std::min<Seconds>(left, interval()), ready)) return true;
      lock.unlock();
      (*this)();
      lock.lock();
    }
    return true;
  }

  /// To be called while waiting, with no lock held. \throws WaitEnded, Interrupted.
  void operator()() {
    if (stop_.stop_requested()) {
      throw WaitEnded(ErrorCode::cancelled, "next() was told to stop; the next call goes on");
    }
    if (left() <= std::chrono::nanoseconds::zero()) {
      throw WaitEnded(ErrorCode::timed_out, "no batch was ready within " +
                                                to_text(Seconds(timeout_)) +
                                                ", the timeout of next(); the next call goes on");
    }
    const Clock::time_point now = Clock::now();
    if (!on_wait_ || now - called_ < kInterval) return;
    called_ = now;
    try {
      on_wait_();
    } catch (...) {
      throw Interrupted{std::current_exception()};
    }
  }

 private:
  [[nodiscard]] std::chrono::nanoseconds left() const {
    return timeout_ - std::chrono::nanoseconds(Clock::now() - begun_);
  }

  const std::function<void()>& on_wait_;
  const std::stop_token& stop_;
  std::chrono::nanoseconds timeout_;
  Clock::time_point begun_ = Clock::now();
  Clock::time_point called_ = begun_;
};

}  // namespace chunkio::base
