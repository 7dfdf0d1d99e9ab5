/// What each thread is doing, by name, on the time line of a profiler (NVIDIA Nsight Systems).
///
/// Ranges go to NVTX 3, in the domain "chunkio"; a build without its headers has none. With no
/// profiler attached a range is two calls that look at a pointer, so ranges may stand around pieces
/// of work from a few microseconds on: a piece of a row group, never a row.
///
/// Thread-safe; nothing fails.
#pragma once

#include <cstdint>
#include <string_view>

namespace chunkio::base {

/// The stages that have names. Waits are stages, too: a gap has a reason.
enum class Stage : std::uint8_t {
  // Workers of a loader.
  plan,             ///< Computing a window; of a resident dataset an epoch, and an echo buffer.
  prefetch,         ///< Telling sources what comes.
  read_group,       ///< One row group, all arrays; holds the four below.
  read,             ///< Asking storage for bytes.
  decode,           ///< Undoing filters.
  verify,           ///< Comparing digests.
  copy,             ///< Bringing rows to their places.
  read_ahead,       ///< Bringing the file into the page cache.
  wait_for_input,   ///< For a plan, or for other workers' last reads.
  wait_for_buffer,  ///< For a free batch buffer.
  // Its consumer.
  hand_over,       ///< Loader::next(); holds the next one.
  wait_for_batch,  ///< Until all rows have arrived: the stall.
  // On the way to the network.
  normalize,               ///< Normalizer, on the CPU.
  upload,                  ///< Putting copies into the copy stream.
  wait_for_copy,           ///< For a copy, to give its batch back to the loader.
  wait_for_device_buffer,  ///< For an echo buffer that the device is done with.
  device_hand_over,        ///< DeviceLoader::next(); holds the next three, or plan for the first.
  wait_for_upload,         ///< For an echo buffer: the stall.
  wait_for_output,         ///< For a release, or the kernel that used the buffer last.
  kernel,                  ///< Planning rows of a batch and launching its kernel.
};

/// As a profiler shows it.
[[nodiscard]] std::string_view to_string(Stage stage) noexcept;

/// The calling thread is in `stage` as long as this lives. Ranges of a thread nest.
class TraceRange {
 public:
  explicit TraceRange(Stage stage) noexcept;
  ~TraceRange();
  TraceRange(const TraceRange&) = delete;
  TraceRange& operator=(const TraceRange&) = delete;
};

/// Names the calling thread for profilers, debuggers and top.
/// \param name  at most 15 characters, as the kernel keeps.
void name_this_thread(const char* name) noexcept;

}  // namespace chunkio::base
