#include <algorithm>
#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <chunkio/cuda/device_loader.hpp>
#include <chunkio/error.hpp>

#include "base/require.hpp"
#include "base/trace.hpp"
#include "device/batch_maker.hpp"
#include "device/bounded_wait.hpp"
#include "device/device_counters.hpp"
#include "device/device_options.hpp"
#include "device/device_state.hpp"
#include "device/echo_deal.hpp"
#include "device/gpu.hpp"
#include "device/loader_buffers.hpp"
#include "device/output_ring.hpp"
#include "device/side_plan.hpp"
#include "read/loader_parts.hpp"
#include "read/loader_state.hpp"

namespace chunkio::cuda {
namespace {

using base::require;
using device::EchoBuffer;
using device::RowTask;
using internal::OutputSlot;
using read::Place;

}  // namespace

struct DeviceLoader::Impl {
  using Clock = std::chrono::steady_clock;

  Impl(std::shared_ptr<device::Gpu> gpu_in, Loader loader, DeviceOptions options_in)
      : options((device::check_options(loader, options_in), std::move(options_in))),
        gpu(std::move(gpu_in)),
        dataset(loader.dataset()),
        loader_options(loader.options()),
        echo{.echo = options.echo,
             .echo_buffer_batches = options.echo_buffer_batches,
             .num_batches = loader.num_steps()},
        side(device::SidePlan::of(loader, options.label_dtype)),
        maker(device::make_batch_maker(gpu, dataset.info(), options, side.labels,
                                       loader_options.seed)),
        stream(gpu) {
    const auto restored = read::restored_place(loader);
    require(!restored || options.echo == 1 || echo.begins_buffer(restored->position.step),
            "the loader was restored to batch " +
                std::to_string(restored ? restored->position.step : 0) +
                ", in the middle of an echo buffer, which echo uses as a whole; restore a state of "
                "the device loader instead");
    const std::string state = restored ? loader.state() : std::string();
    buffers = device::make_buffers(gpu, std::move(loader), options, side, *maker);
    if (restored) go_to(*restored, 0, state);
  }

  ~Impl() {
    try {
      gpu->synchronize(stream.get());
    } catch (const Error&) {
      // A device that is lost does nothing any more.
    }
  }

  void start_epoch(std::int64_t wanted) {
    require(wanted >= 0 && wanted <= read::kMaxEpoch,
            "epoch must be between 0 and 2^62, got " + std::to_string(wanted));
    rethrow_failure();
    if (restored_epoch == wanted) return;  // It goes on where restore() went.
    drop_current();
    started = false;  // If what follows throws, nothing will arrive.
    restored_epoch.reset();
    feed().start(wanted);
    begin(wanted, 0, 0);
  }

  void begin(std::int64_t at_epoch, std::int64_t at_batch, std::int64_t at_step) {
    counters.enter_epoch(at_epoch);
    epoch = at_epoch;
    next_batch = at_batch;
    skip = at_step;
    started = true;
    ended = false;
    restored_epoch.reset();
  }

  [[nodiscard]] OutputSlot* next(Stream consumer, const std::stop_token& stop,
                                 std::chrono::nanoseconds timeout) {
    const base::TraceRange range(base::Stage::device_hand_over);
    require(started, "no epoch was started; call start_epoch() first");
    rethrow_failure();
    if (ended) {
      restored_epoch.reset();
      return nullptr;
    }
    base::WaitHook look(options.on_wait, stop, timeout);
    try {
      if (!advance(look)) {
        ended = true;
        restored_epoch.reset();
        return nullptr;
      }
      OutputSlot& slot = take_output(look);
      fill(slot, consumer);
      restored_epoch.reset();
      ++within;
      if (within == std::ssize(current->batch_rows) * options.echo) drop_current();
      counters.count_batch(std::ssize(slot.sample_ids), std::exchange(waited_seconds, 0));
      return &slot;
    } catch (const base::WaitEnded&) {
      throw;  // No failure: what is late may come.
    } catch (const base::Interrupted& interrupted) {
      std::rethrow_exception(interrupted.thrown);
    } catch (...) {
      failure = std::current_exception();
      throw;
    }
  }

  /// \throws WaitEnded, Interrupted; Error what a release met.
  [[nodiscard]] OutputSlot& take_output(base::WaitHook& look) {
    OutputSlot& slot = buffers.outputs->take(base::Seconds(options.release_timeout_seconds), look);
    const base::TraceRange range(base::Stage::wait_for_output);
    const base::Seconds limit(options.device_timeout_seconds);
    // What the slot was used for last may still be read: its tasks by the copy before its kernel.
    // That kernel waits for the consumer's stream, so this may take for ever. And a copy from
    // ordinary memory would wait for the stream itself, where no limit ends it.
    const auto is_done = [&](const auto& event) {
      return device::wait_until_done(*gpu, event.get(), limit, &look);
    };
    try {
      if (is_done(slot.computed) &&
          (slot.host_tasks.locked() ||
           std::all_of(slot.released.begin(), slot.released.end(), is_done))) {
        return slot;
      }
    } catch (const base::WaitEnded&) {
      buffers.outputs->put_back(slot);
      throw;
    } catch (const base::Interrupted&) {
      buffers.outputs->put_back(slot);
      throw;
    }
    buffers.outputs->put_back(slot);
    throw_late();
  }

  [[noreturn]] void throw_late() const {
    throw base::WaitEnded(ErrorCode::timed_out,
                          "the device has not gone on for " +
                              base::to_text(base::Seconds(options.device_timeout_seconds)) +
                              " (device_timeout_seconds): " + buffers.outputs->unfinished() +
                              "; see what the consumer's stream waits for, or raise "
                              "device_timeout_seconds",
                          "device_timeout_seconds");
  }

  void rethrow_failure() const {
    if (failure) std::rethrow_exception(failure);
  }

  /// Makes `current` the echo buffer of the next output batch; false at the end of the epoch.
  [[nodiscard]] bool advance(base::WaitHook& look) {
    if (current != nullptr) return true;
    const auto start = Clock::now();
    const auto count_wait = [&] { waited_seconds += base::Seconds(Clock::now() - start).count(); };
    std::optional<EchoBuffer*> arrived;
    try {
      arrived = feed().next(base::Seconds(options.device_timeout_seconds), look);
    } catch (...) {
      count_wait();  // Of the batch that comes in the end.
      throw;
    }
    count_wait();
    if (!arrived) throw_late();
    current = *arrived;
    if (current == nullptr) return false;
    within = std::exchange(skip, 0);
    next_batch = current->first_batch + std::ssize(current->batch_rows);
    dealt_pass = -1;
    if (current->uploaded) gpu->wait(stream.get(), current->uploaded.get());
    return true;
  }

  void drop_current() {
    if (current == nullptr) return;
    if (current->consumed) gpu->record(current->consumed.get(), stream.get());
    feed().release(std::exchange(current, nullptr));
  }

  void fill(OutputSlot& slot, Stream consumer) {
    const std::int64_t num_slices = std::ssize(current->batch_rows);
    const std::int64_t pass = within / num_slices;
    const std::int64_t slice = within % num_slices;
    deal(pass);
    const auto rows_of = [&](std::int64_t i) {
      return current->batch_rows[static_cast<std::size_t>(i)];
    };
    std::int64_t first = 0;
    for (std::int64_t i = 0; i < slice; ++i) first += rows_of(i);
    const std::span<const std::int32_t> rows = std::span(dealt).subspan(
        static_cast<std::size_t>(first), static_cast<std::size_t>(rows_of(slice)));

    count_times(slot);
    const base::TraceRange range(base::Stage::kernel);
    for (const device::GpuEvent& released : slot.released) gpu->wait(stream.get(), released.get());
    if (slot.use > 0) slot.before = {slot.epoch, slot.step};
    slot.epoch = current->epoch;
    slot.step = current->first_batch * options.echo + within;
    slot.echo_pass = pass;
    slot.consumers.assign(1, consumer);
    describe(slot, std::ssize(rows));
    slot.sample_ids.clear();
    for (const std::int32_t row : rows) {
      slot.sample_ids.push_back(current->sample_ids[static_cast<std::size_t>(row)]);
    }
    maker->write_tasks(*current, rows, pass, slot.host_tasks.get());
    // After what the host did: on an idle stream its time would count as the kernel's.
    gpu->record(slot.wait_begun.get(), consumer);
    gpu->record(slot.begun.get(), stream.get());
    if (!rows.empty()) {
      const std::size_t task_bytes = rows.size() * static_cast<std::size_t>(maker->task_bytes());
      if (slot.host_tasks.locked()) {
        gpu->fetch(slot.tasks.get(), slot.host_tasks.get(), task_bytes, stream.get());
      } else {
        gpu->copy_to_device(slot.tasks.get(), slot.host_tasks.get(), task_bytes, stream.get());
      }
      maker->make(*current,
                  {.tasks = slot.tasks.get(),
                   .num_rows = std::ssize(rows),
                   .output = slot.leading.get(),
                   .output_labels = slot.labels.get(),
                   .scratch = buffers.outputs->scratch()},
                  stream.get());
      gather_fields(slot, std::ssize(rows));
    }
    gpu->record(slot.computed.get(), stream.get());
    gpu->wait(consumer, slot.computed.get());
    gpu->record(slot.wait_ended.get(), consumer);
    slot.use = ++uses;
  }

  void gather_fields(OutputSlot& slot, std::int64_t rows) const {
    for (std::size_t i = 0; i < slot.fields.size(); ++i) {
      if (!slot.fields[i]) continue;
      gpu->gather({.source = current->fields[i],
                   .row_bytes = static_cast<std::int64_t>(side.fields[i].row_bytes),
                   .tasks = reinterpret_cast<const RowTask*>(slot.tasks.get()),
                   .num_rows = rows,
                   .target = slot.fields[i].get()},
                  stream.get());
    }
  }

  /// Of the use before, whose kernel is done.
  void count_times(const OutputSlot& slot) {
    if (slot.use == 0) return;
    const auto kernel = gpu->seconds_between(slot.begun.get(), slot.computed.get());
    const auto idle = gpu->seconds_between(slot.wait_begun.get(), slot.wait_ended.get());
    // A stream that has not come there yet has other work, so it does not stand idle.
    counters.count_times(slot.epoch, kernel.value(), idle.value_or(0));
  }

  void deal(std::int64_t pass) {
    if (dealt_pass == pass) return;
    dealt.resize(current->sample_ids.size());
    device::deal_rows({.seed = loader_options.seed,
                       .epoch = current->epoch,
                       .rank = loader_options.ranks.rank,
                       .first_batch = current->first_batch},
                      pass, dealt);
    dealt_pass = pass;
  }

  void describe(OutputSlot& slot, std::int64_t rows) const {
    const Device on{DeviceType::cuda, options.device};
    slot.leading_tensor =
        Tensor::writable(slot.leading.get(), maker->dtype(), maker->output_shape(rows), on);
    if (side.labels.values > 0) {
      slot.label_tensor =
          Tensor::writable(slot.labels.get(), options.label_dtype,
                           dataset.info().labels->row_shape.with_first_axis(rows), on);
    }
    for (std::size_t i = 0; i < slot.fields.size(); ++i) {
      const FieldInfo& field = side.fields[i].info;
      slot.field_tensors[i] = Tensor::writable(slot.fields[i].get(), field.dtype,
                                               field.row_shape.with_first_axis(rows), on);
    }
  }

  /// The next output batch.
  [[nodiscard]] LoaderPosition position() const {
    const std::int64_t first = current != nullptr ? current->first_batch : next_batch;
    return {epoch, first * options.echo + (current != nullptr ? within : skip)};
  }

  /// Thread-safe. \param position  of an output batch.
  [[nodiscard]] std::string state_at(const LoaderPosition& position, bool at_end) const {
    const device::EchoPlace place = echo.place_of(position);
    return to_json(device::DeviceState{.loader = feed().loader().state_at(place.buffer, at_end),
                                       .echo_buffer_batches = options.echo_buffer_batches,
                                       .echo = options.echo,
                                       .rank = loader_options.ranks.rank,
                                       .world_size = loader_options.ranks.world_size,
                                       .step = place.step});
  }

  void restore(std::string_view text) {
    rethrow_failure();
    // Everything is checked before anything is changed.
    const device::DeviceState state = device::parse_device_state(text);
    const Place place = read::place_of(feed().loader(), state.loader);
    device::check_state(state, place.position, echo, loader_options.ranks);
    go_to(place, state.step, state.loader);
  }

  /// \param step  output batches of the echo buffer at `place` that are left out.
  void go_to(const Place& place, std::int64_t step, const std::string& loader_state) {
    drop_current();
    started = false;
    restored_epoch.reset();
    feed().restore(loader_state);
    feed().start(place.position.epoch);
    begin(place.position.epoch, place.position.step, step);
    ended = place.ended;
    restored_epoch = place.position.epoch;
  }

  /// Thread-safe. \param of_epoch  absent: of all.
  [[nodiscard]] DeviceStats stats_of(std::optional<std::int64_t> of_epoch) const {
    DeviceStats stats = counters.of(of_epoch);
    stats.loader = feed().loader_stats(of_epoch);
    const device::BatchFeed::Uploads uploads = feed().uploads(of_epoch);
    stats.bytes_uploaded = uploads.bytes;
    stats.upload_seconds = uploads.seconds;
    stats.pinned = buffers.pinned;
    stats.resident = buffers.resident;
    stats.echo = options.echo;
    stats.dtype = maker->dtype();
    stats.dataset_bytes = buffers.dataset_bytes;
    stats.free_device_bytes = buffers.free_device_bytes;
    return stats;
  }

  [[nodiscard]] device::BatchFeed& feed() const noexcept { return *buffers.feed; }

  DeviceOptions options;
  std::shared_ptr<device::Gpu> gpu;
  Dataset dataset;
  LoaderOptions loader_options;
  device::EchoUse echo;
  device::SidePlan side;
  std::unique_ptr<device::BatchMaker> maker;
  device::DeviceCounters counters;

  // In this order: a member is destroyed before what it uses.
  device::GpuStream stream;
  device::LoaderBuffers buffers;

  // Where the consumer stands.
  std::int64_t epoch = 0;
  bool started = false;
  bool ended = false;
  EchoBuffer* current = nullptr;
  std::int64_t within = 0;      // output batches of `current` handed out
  std::int64_t next_batch = 0;  // of the loader, behind `current`
  std::int64_t skip = 0;        // output batches of the next echo buffer that a state left behind
  std::optional<std::int64_t> restored_epoch;  // no batch of it was asked for yet
  std::exception_ptr failure;                  // thrown by every later call
  std::vector<std::int32_t> dealt;             // rows of `current`, in the order of dealt_pass
  std::int64_t dealt_pass = -1;
  std::int64_t uses = 0;      // of output buffers
  double waited_seconds = 0;  // for images of the batch that is handed out next
};

DeviceLoader::DeviceLoader(Loader loader, DeviceOptions options)
    : DeviceLoader(device::open_gpu(options.device), std::move(loader), std::move(options)) {}
DeviceLoader::DeviceLoader(std::shared_ptr<device::Gpu> gpu, Loader loader, DeviceOptions options)
    : impl_(std::make_unique<Impl>(std::move(gpu), std::move(loader), std::move(options))) {}
DeviceLoader::DeviceLoader(DeviceLoader&&) noexcept = default;
DeviceLoader& DeviceLoader::operator=(DeviceLoader&&) noexcept = default;
DeviceLoader::~DeviceLoader() = default;

DeviceLoader::Impl& DeviceLoader::impl() const {
  if (impl_) return *impl_;
  throw Error(ErrorCode::invalid_argument,
              "this DeviceLoader was moved from; use the one that it was moved into");
}

DeviceLoader DeviceLoader::resume(Dataset dataset, LoaderOptions loader, std::string_view state,
                                  DeviceOptions options) {
  return resume_on(device::open_gpu(options.device), std::move(dataset), std::move(loader), state,
                   std::move(options));
}

DeviceLoader DeviceLoader::resume_on(std::shared_ptr<device::Gpu> gpu, Dataset dataset,
                                     LoaderOptions loader, std::string_view state,
                                     DeviceOptions options) {
  const device::DeviceState wanted = device::parse_device_state(state);
  DeviceLoader resumed(std::move(gpu),
                       Loader::resume(std::move(dataset), std::move(loader), wanted.loader),
                       std::move(options));
  resumed.restore(state);
  return resumed;
}

EpochRange<DeviceBatch> DeviceLoader::epoch(std::int64_t epoch, Stream stream) & {
  start_epoch(epoch);
  return EpochRange<DeviceBatch>([this, stream] { return next(stream); });
}

void DeviceLoader::start_epoch(std::int64_t epoch) { impl().start_epoch(epoch); }

std::optional<DeviceBatch> DeviceLoader::next(Stream stream, const std::stop_token& stop,
                                              std::chrono::nanoseconds timeout) {
  OutputSlot* const slot = impl().next(stream, stop, timeout);
  if (slot == nullptr) return std::nullopt;
  return DeviceBatch(impl().buffers.outputs->lease(*slot));
}

std::string DeviceLoader::state() const { return impl().state_at(impl().position(), impl().ended); }
std::string DeviceLoader::state_at(const LoaderPosition& position, bool ended) const {
  return impl().state_at(position, ended);
}
void DeviceLoader::restore(std::string_view state) { impl().restore(state); }
LoaderPosition DeviceLoader::position() const { return impl().position(); }
std::vector<SkippedRows> DeviceLoader::skipped() const { return impl().feed().skipped(); }
std::int64_t DeviceLoader::num_steps() const {
  return impl().echo.num_batches * impl().options.echo;
}

std::int64_t DeviceLoader::samples_per_epoch() const {
  return impl().feed().loader().samples_per_epoch() * impl().options.echo;
}

DeviceStats DeviceLoader::stats() const { return impl().stats_of({}); }
DeviceStats DeviceLoader::epoch_stats(std::int64_t epoch) const { return impl().stats_of(epoch); }

const DeviceOptions& DeviceLoader::options() const { return impl().options; }
const LoaderOptions& DeviceLoader::loader_options() const { return impl().loader_options; }
const Dataset& DeviceLoader::dataset() const { return impl().dataset; }
std::int64_t DeviceLoader::device_bytes() const {
  return impl().feed().device_bytes() + impl().buffers.outputs->device_bytes();
}

}  // namespace chunkio::cuda
