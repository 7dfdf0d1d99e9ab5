#include "h5/library.hpp"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>

#include <hdf5.h>

#include <chunkio/error.hpp>

#include "h5/handle.hpp"

namespace chunkio::h5 {
namespace {

/// The program's own settings, put back when the outermost guard goes. Guarded by the mutex.
struct Settings {
  int depth = 0;
  bool has_error_handler = false;
  H5E_auto2_t error_handler = nullptr;
  void* error_handler_data = nullptr;
  bool has_plugin_state = false;
  unsigned int plugin_state = 0;
};

struct State {
  std::recursive_mutex mutex;
  Settings settings;
  pid_t process = ::getpid();
  std::atomic<bool> lost{false};  // see acquire()
};

// Far longer than a forked child's own threads hold the mutex.
constexpr std::chrono::seconds kForkedPatience{5};

/// Never destroyed: a Dataset in static storage may close its ids after this file's statics are
/// gone.
State& state() {
  static State* const kState = new State;
  return *kState;
}

std::atomic<std::int64_t> live_id_count{0};

/// Locks the mutex. In a child forked while another thread held it, nobody is left to release it,
/// and libhdf5's own lock is as lost: that is an error instead of a hang.
std::unique_lock<std::recursive_mutex> acquire() {
  State& shared = state();
  if (::getpid() == shared.process) return std::unique_lock(shared.mutex);
  const auto give_up = std::chrono::steady_clock::now() + kForkedPatience;
  while (true) {
    std::unique_lock lock(shared.mutex, std::try_to_lock);
    if (lock) return lock;
    if (shared.lost || std::chrono::steady_clock::now() > give_up) {
      shared.lost = true;
      throw Error(ErrorCode::unsupported,
                  "this process was forked while another thread used libhdf5, which cannot go on "
                  "here; fork before reading starts, or start processes by spawning");
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace

Library::Guard::Guard() : lock_(acquire()) {
  Settings& settings = state().settings;
  if (settings.depth++ > 0) return;
  // Per thread in thread-safe builds, so it is set anew by whichever thread comes in. Reading fails
  // where the program installed a handler of the old kind, which can't be put back from here.
  settings.has_error_handler =
      H5Eget_auto2(H5E_DEFAULT, &settings.error_handler, &settings.error_handler_data) >= 0;
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  settings.has_plugin_state = H5PLget_loading_state(&settings.plugin_state) >= 0;
  H5PLset_loading_state(0);
}

Library::Guard::~Guard() {
  Settings& settings = state().settings;
  if (--settings.depth > 0) return;
  if (settings.has_plugin_state) H5PLset_loading_state(settings.plugin_state);
  if (settings.has_error_handler) {
    H5Eset_auto2(H5E_DEFAULT, settings.error_handler, settings.error_handler_data);
  }
}

LibraryNumber Library::version() {
  const Guard guard;
  LibraryNumber number;
  H5get_libversion(&number.major, &number.minor, &number.release);
  return number;
}

std::string LibraryNumber::text() const {
  return std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(release);
}

std::int64_t live_ids() noexcept { return live_id_count.load(); }

namespace internal {

void count_id() noexcept { ++live_id_count; }

int close_id(CloseFunction close, hid_t id) noexcept {
  --live_id_count;
  try {
    const auto guard = Library::lock();
    return close(id);
  } catch (const Error&) {
    return -1;  // a forked child: the id is its parent's
  }
}

}  // namespace internal
}  // namespace chunkio::h5
