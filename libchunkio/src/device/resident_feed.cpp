#include "device/resident_feed.hpp"

#include <algorithm>
#include <deque>
#include <exception>
#include <future>
#include <iterator>
#include <span>
#include <utility>

#include "base/checked_math.hpp"
#include "base/trace.hpp"
#include "device/pinned_ring.hpp"
#include "read/loader_parts.hpp"
#include "read/loader_state.hpp"

namespace chunkio::device {
namespace {

/// Of a batch that is copied to the device, unless the memory budget is small.
constexpr std::int64_t kCopyBytes = std::int64_t{16} << 20;
/// A loader has some ten batches of this size, and more beside them.
constexpr std::int64_t kBatchesOfBudget = 32;
/// Batches whose copies are under way, while others are read.
constexpr std::int64_t kCopies = 3;

/// The rows of `options` one after the other.
LoaderOptions sequential(LoaderOptions options, std::int64_t row_bytes) {
  const std::int64_t bytes = std::min(kCopyBytes, options.memory.budget / kBatchesOfBudget);
  options.batch_size = std::max<std::int64_t>(bytes / row_bytes, 1);
  options.order = {.mode = OrderMode::sequential, .window_bytes = options.order.window_bytes};
  options.ranks = {};
  options.memory.max_held = kCopies;
  options.memory.prefetch_depth = kCopies;
  options.memory.resident = Resident::none;
  options.io.num_epochs = 1;
  return options;
}

std::vector<ResidentDataset::Run> runs_of(std::span<const std::int64_t> ids) {
  std::vector<ResidentDataset::Run> runs;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (runs.empty() || runs.back().end_id != ids[i]) {
      runs.push_back({ids[i], ids[i], static_cast<std::int32_t>(i)});
    }
    ++runs.back().end_id;
  }
  return runs;
}

}  // namespace

std::int64_t ResidentDataset::footprint(const Loader& loader, const SidePlan& side) {
  const DatasetInfo& info = loader.dataset().info();
  if (info.sparse) {
    const auto beside =
        base::checked_multiply(loader.row_groups().num_samples(), side.input_bytes());
    const std::int64_t all = SparseStage::footprint(info, info.sparse->num_entries);
    return beside ? base::checked_add(all, *beside).value_or(kBeyondAnyDevice) : kBeyondAnyDevice;
  }
  const std::int64_t row_bytes = info.sample_bytes() + side.input_bytes();
  const auto rows = base::checked_multiply(loader.row_groups().num_samples(), row_bytes);
  const auto slack = static_cast<std::int64_t>(kKernelSlack);
  return rows ? base::checked_add(*rows, slack).value_or(kBeyondAnyDevice) : kBeyondAnyDevice;
}

ResidentDataset::ResidentDataset(const std::shared_ptr<Gpu>& gpu, const Loader& loader,
                                 const SidePlan& side, cuda::PinMemory pin_memory,
                                 const MemoryNeeds& needs)
    : device_bytes(footprint(loader, side)) {
  const std::int64_t rows = loader.row_groups().num_samples();
  const DatasetInfo& info = loader.dataset().info();
  const std::int64_t sample_bytes = info.sample_bytes();
  const auto image_bytes = static_cast<std::size_t>(rows * sample_bytes);
  if (info.sparse) {
    // Of a selection of rows it is not known how many entries they have.
    sparse.emplace(gpu, info, SparseStage::Rows::of_dataset, info.sparse->num_entries, pin_memory,
                   needs);
  } else {
    images = allocate(gpu, image_bytes + kKernelSlack, needs);
  }
  const auto allocate_rows = [&](std::int64_t row_bytes) {
    return row_bytes == 0 ? DeviceBuffer()
                          : allocate(gpu, static_cast<std::size_t>(rows * row_bytes), needs);
  };
  labels = allocate_rows(side.labels.input_bytes());
  for (const read::RingField& field : side.fields) {
    fields.push_back(allocate_rows(static_cast<std::int64_t>(field.row_bytes)));
  }

  struct Copying {
    Batch batch;
    GpuWaitedTimer done;  // Its time is not asked for.
  };
  Loader reader(
      loader.dataset(),
      sequential(loader.options(), std::max<std::int64_t>(sample_bytes + side.input_bytes(), 1)));
  const std::unique_ptr<PinnedRing> ring = PinnedRing::of(gpu, reader, pin_memory);
  pinned = ring != nullptr;
  const GpuStream stream(gpu);
  // The kernel reads whole words, and behind the last image nobody else writes.
  if (images) gpu->clear(images.get() + image_bytes, kKernelSlack, stream.get());
  std::deque<Copying> copying;
  std::vector<std::int64_t> ids;
  const auto copy = [&](const Tensor& values, const DeviceBuffer& target, std::int64_t row_bytes) {
    const std::size_t bytes = values.size_bytes();
    if (bytes == 0) return;
    gpu->copy_to_device(target.get() + std::ssize(ids) * row_bytes, values.data(), bytes,
                        stream.get());
    bytes_uploaded += static_cast<std::int64_t>(bytes);
  };
  try {
    for (const Batch& batch : reader.epoch(0)) {
      {
        const base::TraceRange range(base::Stage::upload);
        // Held first: a batch must outlive its copy, whatever is thrown.
        const Copying& last = copying.emplace_back(Copying{batch, GpuWaitedTimer(gpu)});
        if (sparse) {
          bytes_uploaded += sparse->append(batch.sparse(), stream.get());
        } else {
          copy(batch.images(), images, sample_bytes);
        }
        copy(batch.labels(), labels, side.labels.input_bytes());
        for (std::size_t i = 0; i < fields.size(); ++i) {
          const read::RingField& field = side.fields[i];
          copy(batch[field.info.name], fields[i], static_cast<std::int64_t>(field.row_bytes));
        }
        ids.insert(ids.end(), batch.sample_ids().begin(), batch.sample_ids().end());
        gpu->record(last.done.get(), stream.get());
      }
      if (std::ssize(copying) < kCopies - 1) continue;  // One more is held by the loop.
      const base::TraceRange range(base::Stage::wait_for_copy);
      gpu->synchronize(copying.front().done.get());
      copying.pop_front();
    }
  } catch (...) {
    gpu->synchronize(stream.get());
    throw;
  }
  {
    const base::TraceRange range(base::Stage::wait_for_copy);
    gpu->synchronize(stream.get());
  }
  stats = reader.stats();
  skipped = reader.skipped();
  if (std::ssize(ids) != loader.dataset().size()) runs = runs_of(ids);
}

std::optional<std::int32_t> ResidentDataset::device_row(std::int64_t sample_id) const {
  if (!runs) return static_cast<std::int32_t>(sample_id);
  const auto behind =
      std::upper_bound(runs->begin(), runs->end(), sample_id,
                       [](std::int64_t id, const Run& run) { return id < run.first_id; });
  if (behind == runs->begin()) return std::nullopt;
  const Run& run = *std::prev(behind);
  if (sample_id >= run.end_id) return std::nullopt;
  return run.device_row + static_cast<std::int32_t>(sample_id - run.first_id);
}

ResidentFeed::ResidentFeed(Loader loader, std::int64_t batches, ResidentDataset dataset)
    : loader_(std::move(loader)), batches_(batches), dataset_(std::move(dataset)) {
  echo_buffer_.images = dataset_.images.get();
  if (dataset_.sparse) {
    const SparseStage& rows = *dataset_.sparse;
    echo_buffer_.sparse = {rows.columns(), rows.values(), rows.row_begins()};
  }
  echo_buffer_.labels = dataset_.labels.get();
  for (const DeviceBuffer& field : dataset_.fields) echo_buffer_.fields.push_back(field.get());
  echo_buffer_.reserve(batches_, batches_ * loader_.options().batch_size);
}

void ResidentFeed::start(std::int64_t epoch) {
  const auto restored = std::exchange(restored_, std::nullopt);
  if (epoch != epoch_) rows_.reset();
  epoch_ = epoch;
  next_step_ = restored && restored->epoch == epoch ? restored->step : 0;
}

void ResidentFeed::restore(std::string_view state) {
  restored_ = read::place_of(loader_, state).position;
}

std::optional<EchoBuffer*> ResidentFeed::next(base::Seconds, base::WaitHook& look) {
  const base::TraceRange range(base::Stage::plan);
  plan(look);
  echo_buffer_.clear(epoch_);
  echo_buffer_.first_batch = next_step_;
  const std::int64_t end = std::min(next_step_ + batches_, rows_->num_steps());
  if (next_step_ == end) return nullptr;
  for (; next_step_ < end; ++next_step_) append_batch(next_step_);
  return &echo_buffer_;
}

void ResidentFeed::plan(base::WaitHook& look) {
  if (rows_) return;
  if (rows_ahead_.valid() && ahead_epoch_ == epoch_) {
    while (rows_ahead_.wait_for(look.interval()) != std::future_status::ready) look();
    rows_.emplace(rows_ahead_.get());
  } else {
    rows_.emplace(read::epoch_order_of(loader_, epoch_));
  }
  plan_ahead(epoch_ + 1);
}

void ResidentFeed::plan_ahead(std::int64_t epoch) {
  const std::int64_t end = loader_.options().io.num_epochs.value_or(read::kMaxEpoch);
  if (epoch >= end || (rows_ahead_.valid() && ahead_epoch_ == epoch)) return;
  try {
    rows_ahead_ = std::async(std::launch::async, [order = read::epoch_order_of(loader_, epoch)] {
      base::name_this_thread("chunkio plan");
      const base::TraceRange range(base::Stage::plan);
      return plan::EpochRows(order);
    });
    ahead_epoch_ = epoch;
  } catch (const std::exception&) {
    // It is planned when it comes.
  }
}

void ResidentFeed::append_batch(std::int64_t step) {
  std::vector<std::int64_t>& ids = echo_buffer_.sample_ids;
  std::vector<std::int32_t>& rows = echo_buffer_.device_rows;
  const std::size_t begin = ids.size();
  rows_->append_batch(step, ids);
  rows.resize(ids.size());
  std::size_t kept = begin;
  if (!dataset_.runs) {
    for (; kept < ids.size(); ++kept) rows[kept] = static_cast<std::int32_t>(ids[kept]);
  } else {
    // What could not be read (OnError::skip) is not there.
    for (std::size_t i = begin; i < ids.size(); ++i) {
      const std::optional<std::int32_t> row = dataset_.device_row(ids[i]);
      if (!row) continue;
      rows[kept] = *row;
      ids[kept++] = ids[i];
    }
    ids.resize(kept);
    rows.resize(kept);
  }
  echo_buffer_.batch_rows.push_back(static_cast<std::int64_t>(kept - begin));
}

}  // namespace chunkio::device
