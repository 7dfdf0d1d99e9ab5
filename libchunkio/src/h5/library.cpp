#include "h5/library.hpp"

#include <atomic>
#include <cstdint>

#include <hdf5.h>

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
};

/// Never destroyed: a Dataset in static storage may close its ids after this file's statics are
/// gone.
State& state() {
  static State* const kState = new State;
  return *kState;
}

std::atomic<std::int64_t> live_id_count{0};

}  // namespace

Library::Guard::Guard() : lock_(state().mutex) {
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

std::int64_t live_ids() noexcept { return live_id_count.load(); }

namespace internal {

void count_id() noexcept { ++live_id_count; }

int close_id(CloseFunction close, hid_t id) noexcept {
  const auto guard = Library::lock();
  --live_id_count;
  return close(id);
}

}  // namespace internal
}  // namespace chunkio::h5
