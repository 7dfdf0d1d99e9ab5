#include <algorithm>
#include <chrono>
#include <deque>
#include <exception>
#include <limits>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <chunkio/cuda/device_loader.hpp>
#include <chunkio/error.hpp>

#include "base/require.hpp"
#include "base/trace.hpp"
#include "device/batch_maker.hpp"
#include "device/bounded_wait.hpp"
#include "device/device_options.hpp"
#include "device/device_state.hpp"
#include "device/echo_deal.hpp"
#include "device/gpu.hpp"
#include "device/memory_needs.hpp"
#include "device/output_ring.hpp"
#include "device/pinned_ring.hpp"
#include "device/resident_feed.hpp"
#include "device/side_plan.hpp"
#include "device/uploader.hpp"
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
  struct EpochStats {
    std::int64_t epoch = 0;
    Clock::time_point begun = {};
    DeviceStats counted = {};  // Counters only.
  };

  Impl(std::shared_ptr<device::Gpu> gpu_in, Loader loader, DeviceOptions options_in)
      : options((device::check_options(loader, options_in), std::move(options_in))),
        gpu(std::move(gpu_in)),
        dataset(loader.dataset()),
        loader_options(loader.options()),
        num_batches(loader.num_steps()),
        side(device::SidePlan::of(loader, options.label_dtype)),
        maker(device::make_batch_maker(gpu, dataset.info(), options, side.labels,
                                       loader_options.seed)),
        counted{.echo = options.echo,
                .dtype = maker->dtype(),
                .dataset_bytes = device::ResidentDataset::footprint(loader, side),
                .free_device_bytes = gpu->memory().free_bytes},
        stream(gpu) {
    const std::int64_t big = device::echo_buffer_batches_of(loader, options);
    const auto restored = read::restored_place(loader);
    require(!restored || options.echo == 1 || begins_echo_buffer(restored->position),
            "the loader was restored to batch " +
                std::to_string(restored ? restored->position.step : 0) +
                ", in the middle of an echo buffer, which echo uses as a whole; restore a state of "
                "the device loader instead");
    const std::string state = restored ? loader.state() : std::string();
    const device::MemoryNeeds fed =
        needs_with(device::Uploader::footprint(loader, big, side), false);
    const device::MemoryNeeds whole = needs_with(counted.dataset_bytes, true);
    const bool keep =
        fits_device(loader) && (whole.fit() || options.resident == DeviceResident::require);
    (keep ? whole : fed).require_room();
    outputs =
        std::make_shared<device::OutputRing>(gpu, options.max_held, loader_options.batch_size,
                                             *maker, side, options.pin_memory, keep ? whole : fed);
    std::optional<device::ResidentDataset> uploaded = keep ? upload(loader, whole) : std::nullopt;
    if (uploaded) {
      counted.resident = true;
      counted.pinned = uploaded->pinned;
      feed = std::make_unique<device::ResidentFeed>(std::move(loader), big, std::move(*uploaded));
    } else {
      fed.require_room();  // Not asked yet if the dataset was to be kept.
      // Nothing is read into the ring of a loader whose dataset is resident.
      pinned = device::PinnedRing::of(gpu, loader, options.pin_memory);
      counted.pinned = pinned != nullptr;
      feed = std::make_unique<device::Uploader>(gpu, std::move(loader), big, side,
                                                options.pin_memory, fed);
    }
    if (restored) go_to(*restored, 0, state);
  }

  ~Impl() {
    try {
      gpu->synchronize(stream.get());
    } catch (const Error&) {
      // A device that is lost does nothing any more.
    }
  }

  [[nodiscard]] device::MemoryNeeds needs_with(std::int64_t input_bytes, bool of_dataset) const {
    return {.output_bytes = device::OutputRing::footprint(options.max_held,
                                                          loader_options.batch_size, *maker, side),
            .input_bytes = input_bytes,
            .free_bytes = counted.free_device_bytes,
            .batch_size = loader_options.batch_size,
            .max_held = options.max_held,
            .echo_buffer_batches = options.echo_buffer_batches,
            .has_fields = !side.fields.empty(),
            .resident = of_dataset,
            .required = options.resident == DeviceResident::require};
  }

  /// Nothing, if it cannot be had and need not be.
  [[nodiscard]] std::optional<device::ResidentDataset> upload(
      const Loader& loader, const device::MemoryNeeds& needs) const {
    try {
      return std::optional<device::ResidentDataset>(std::in_place, gpu, loader, side,
                                                    options.pin_memory, needs);
    } catch (const Error& error) {
      const bool dispensable = options.resident == DeviceResident::automatic &&
                               error.code() == ErrorCode::out_of_resources;
      if (!dispensable) throw;
      return std::nullopt;
    }
  }

  [[nodiscard]] bool fits_device(const Loader& loader) const {
    if (options.resident == DeviceResident::off) return false;
    if (dataset.info().encoded && dataset.info().encoded->random_crops) {
      if (options.resident == DeviceResident::automatic) return false;
      throw Error(ErrorCode::unsupported,
                  dataset.info().path +
                      ": random crops are other ones each epoch, so they cannot be kept on the "
                      "device; set resident to automatic, or crop otherwise");
    }
    const std::int64_t rows = loader.row_groups().num_samples();
    const double limit = options.resident_share * static_cast<double>(counted.free_device_bytes);
    if (rows <= std::numeric_limits<std::int32_t>::max() &&
        static_cast<double>(counted.dataset_bytes) <= limit) {
      return true;
    }
    if (options.resident == DeviceResident::automatic) return false;
    throw Error(ErrorCode::out_of_resources,
                dataset.info().path + " takes " + std::to_string(counted.dataset_bytes) +
                    " bytes on the device, where " + std::to_string(counted.free_device_bytes) +
                    " are free; raise resident_share, or set resident to automatic");
  }

  void start_epoch(std::int64_t wanted) {
    require(wanted >= 0 && wanted <= read::kMaxEpoch,
            "epoch must be between 0 and 2^62, got " + std::to_string(wanted));
    rethrow_failure();
    if (restored_epoch == wanted) return;  // It goes on where restore() went.
    drop_current();
    started = false;  // If what follows throws, nothing will arrive.
    restored_epoch.reset();
    feed->start(wanted);
    begin(wanted, 0, 0);
  }

  void begin(std::int64_t at_epoch, std::int64_t at_batch, std::int64_t at_step) {
    if (!first_started) first_started = Clock::now();
    enter_epoch(at_epoch);
    epoch = at_epoch;
    next_batch = at_batch;
    skip = at_step;
    started = true;
    ended = false;
    restored_epoch.reset();
  }

  /// Its counters begin anew.
  void enter_epoch(std::int64_t entered) {
    constexpr std::size_t kEpochsRemembered = 8;
    const std::lock_guard lock(mutex);
    std::erase_if(epochs, [&](const EpochStats& old) { return old.epoch == entered; });
    if (epochs.size() == kEpochsRemembered) epochs.pop_front();
    epochs.push_back({.epoch = entered, .begun = Clock::now()});
  }

  /// Null for one that is not remembered. Mutex held.
  [[nodiscard]] EpochStats* find_epoch(std::int64_t wanted) {
    const auto found = std::find_if(epochs.begin(), epochs.end(), [wanted](const EpochStats& one) {
      return one.epoch == wanted;
    });
    return found == epochs.end() ? nullptr : &*found;
  }

  /// Adds to the counters of everything and, if it is remembered, of an epoch. Mutex held.
  template <class Add>
  void count(std::int64_t of_epoch, const Add& add) {
    add(counted);
    if (EpochStats* const found = find_epoch(of_epoch)) add(found->counted);
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
      const std::lock_guard lock(mutex);
      count(slot.epoch, [&, stall = std::exchange(waited_seconds, 0)](DeviceStats& stats) {
        ++stats.batches;
        stats.images += std::ssize(slot.sample_ids);
        stats.stall_seconds += stall;
      });
      counted.seconds = base::Seconds(Clock::now() - *first_started).count();
      epochs.back().counted.seconds = base::Seconds(Clock::now() - epochs.back().begun).count();
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
    OutputSlot& slot = outputs->take(base::Seconds(options.release_timeout_seconds), look);
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
      outputs->put_back(slot);
      throw;
    } catch (const base::Interrupted&) {
      outputs->put_back(slot);
      throw;
    }
    outputs->put_back(slot);
    throw_late();
  }

  [[noreturn]] void throw_late() const {
    throw base::WaitEnded(ErrorCode::timed_out,
                          "the device has not gone on for " +
                              base::to_text(base::Seconds(options.device_timeout_seconds)) +
                              " (device_timeout_seconds): " + outputs->unfinished() +
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
      arrived = feed->next(base::Seconds(options.device_timeout_seconds), look);
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
    feed->release(std::exchange(current, nullptr));
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
                   .scratch = outputs->scratch()},
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
    const std::lock_guard lock(mutex);
    count(slot.epoch, [&](DeviceStats& stats) {
      stats.kernel_seconds += kernel.value();
      // A stream that has not come there yet has other work, so it does not stand idle.
      stats.device_stall_seconds += idle.value_or(0);
    });
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
    device::DeviceState state{.echo_buffer_batches = options.echo_buffer_batches,
                              .echo = options.echo,
                              .rank = loader_options.ranks.rank,
                              .world_size = loader_options.ranks.world_size};
    // Without echo a batch is a batch of the loader, whatever it was uploaded with.
    LoaderPosition of_loader = position;
    if (options.echo > 1) {
      const std::int64_t batches = std::min(options.echo_buffer_batches, num_batches);
      of_loader.step = position.step / (batches * options.echo) * batches;
      state.step = position.step - of_loader.step * options.echo;
      // Behind the last echo buffer, which may be a shorter one.
      if (of_loader.step + state.step / options.echo == num_batches) {
        of_loader.step = num_batches;
        state.step = 0;
      }
    }
    state.loader = feed->loader().state_at(of_loader, at_end);
    return to_json(state);
  }

  void restore(std::string_view text) {
    rethrow_failure();
    // Everything is checked before anything is changed.
    const device::DeviceState state = device::parse_device_state(text);
    const auto same = [](const std::string& name, std::int64_t there, std::int64_t here) {
      require(there == here, "the state of the device loader was made with " + name + " " +
                                 std::to_string(there) + ", this one has " + std::to_string(here));
    };
    same("echo", state.echo, options.echo);
    if (options.echo > 1)
      same("echo_buffer_batches", state.echo_buffer_batches, options.echo_buffer_batches);
    if (state.step > 0) {
      same("rank", state.rank, loader_options.ranks.rank);
      same("world_size", state.world_size, loader_options.ranks.world_size);
    }
    const Place place = read::place_of(feed->loader(), state.loader);
    const LoaderPosition& position = place.position;
    const std::int64_t left = std::min(options.echo_buffer_batches, num_batches - position.step);
    require(options.echo == 1 ? state.step == 0
                              : begins_echo_buffer(position) &&
                                    (state.step == 0 || state.step < left * options.echo),
            "the state of the device loader is damaged: there is no such place in an echo buffer");

    go_to(place, state.step, state.loader);
  }

  /// \param step  output batches of the echo buffer at `place` that are left out.
  void go_to(const Place& place, std::int64_t step, const std::string& loader_state) {
    drop_current();
    started = false;
    restored_epoch.reset();
    feed->restore(loader_state);
    feed->start(place.position.epoch);
    begin(place.position.epoch, place.position.step, step);
    ended = place.ended;
    restored_epoch = place.position.epoch;
  }

  /// Thread-safe. \param of_epoch  absent: of all.
  [[nodiscard]] DeviceStats stats_of(std::optional<std::int64_t> of_epoch) {
    std::unique_lock lock(mutex);
    DeviceStats stats = counted;
    if (of_epoch) {
      const EpochStats* const found = find_epoch(*of_epoch);
      const DeviceStats counters = found == nullptr ? DeviceStats{} : found->counted;
      stats.batches = counters.batches;
      stats.images = counters.images;
      stats.seconds = counters.seconds;
      stats.stall_seconds = counters.stall_seconds;
      stats.device_stall_seconds = counters.device_stall_seconds;
      stats.kernel_seconds = counters.kernel_seconds;
    }
    lock.unlock();
    stats.loader = feed->loader_stats(of_epoch);
    const device::BatchFeed::Uploads uploads = feed->uploads(of_epoch);
    stats.bytes_uploaded = uploads.bytes;
    stats.upload_seconds = uploads.seconds;
    return stats;
  }

  [[nodiscard]] bool begins_echo_buffer(const LoaderPosition& position) const {
    return position.step % options.echo_buffer_batches == 0 || position.step == num_batches;
  }

  DeviceOptions options;
  std::shared_ptr<device::Gpu> gpu;
  Dataset dataset;
  LoaderOptions loader_options;
  std::int64_t num_batches = 0;
  device::SidePlan side;
  std::unique_ptr<device::BatchMaker> maker;

  std::mutex mutex;               // Guards what follows, `counted` once there are batches.
  DeviceStats counted;            // Without what the feed counts.
  std::deque<EpochStats> epochs;  // Those that the consumer was in last, the current one behind.

  // In this order: a member is destroyed before what it uses.
  std::unique_ptr<device::PinnedRing> pinned;
  device::GpuStream stream;
  std::shared_ptr<device::OutputRing> outputs;
  std::unique_ptr<device::BatchFeed> feed;

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

  std::optional<Clock::time_point> first_started;
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
  return DeviceBatch(impl().outputs->lease(*slot));
}

std::string DeviceLoader::state() const { return impl().state_at(impl().position(), impl().ended); }
std::string DeviceLoader::state_at(const LoaderPosition& position, bool ended) const {
  return impl().state_at(position, ended);
}
void DeviceLoader::restore(std::string_view state) { impl().restore(state); }
LoaderPosition DeviceLoader::position() const { return impl().position(); }
std::vector<SkippedRows> DeviceLoader::skipped() const { return impl().feed->skipped(); }
std::int64_t DeviceLoader::num_steps() const { return impl().num_batches * impl().options.echo; }

std::int64_t DeviceLoader::samples_per_epoch() const {
  return impl().feed->loader().samples_per_epoch() * impl().options.echo;
}

DeviceStats DeviceLoader::stats() const { return impl().stats_of({}); }
DeviceStats DeviceLoader::epoch_stats(std::int64_t epoch) const { return impl().stats_of(epoch); }

const DeviceOptions& DeviceLoader::options() const { return impl().options; }
const LoaderOptions& DeviceLoader::loader_options() const { return impl().loader_options; }
const Dataset& DeviceLoader::dataset() const { return impl().dataset; }
std::int64_t DeviceLoader::device_bytes() const {
  return impl().feed->device_bytes() + impl().outputs->device_bytes();
}

}  // namespace chunkio::cuda
