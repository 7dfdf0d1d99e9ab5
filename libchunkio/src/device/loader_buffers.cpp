#include "device/loader_buffers.hpp"

#include <limits>
#include <optional>
#include <string>
#include <utility>

#include <chunkio/error.hpp>

#include "device/device_options.hpp"
#include "device/memory_needs.hpp"
#include "device/resident_feed.hpp"
#include "device/uploader.hpp"

namespace chunkio::device {
namespace {

using cuda::DeviceOptions;
using cuda::DeviceResident;

/// Whether the dataset is to be kept on the device, as far as `resident_share` goes.
/// \throws Error unsupported, out_of_resources: it must be kept, and cannot.
bool may_be_resident(const Loader& loader, const DeviceOptions& options,
                     const LoaderBuffers& buffers) {
  const bool required = options.resident == DeviceResident::require;
  const DatasetInfo& info = loader.dataset().info();
  if (options.resident == DeviceResident::off) return false;
  if (info.encoded && info.encoded->random_crops) {
    if (!required) return false;
    throw Error(ErrorCode::unsupported,
                info.path +
                    ": random crops are other ones each epoch, so they cannot be kept on the "
                    "device; set resident to automatic, or crop otherwise");
  }
  const std::int64_t rows = loader.row_groups().num_samples();
  const double limit = options.resident_share * static_cast<double>(buffers.free_device_bytes);
  if (rows <= std::numeric_limits<std::int32_t>::max() &&
      static_cast<double>(buffers.dataset_bytes) <= limit) {
    return true;
  }
  if (!required) return false;
  throw Error(ErrorCode::out_of_resources,
              info.path + " takes " + std::to_string(buffers.dataset_bytes) +
                  " bytes on the device, where " + std::to_string(buffers.free_device_bytes) +
                  " are free; raise resident_share, or set resident to automatic");
}

/// Nothing, if it cannot be had and need not be.
std::optional<ResidentDataset> upload(const std::shared_ptr<Gpu>& gpu, const Loader& loader,
                                      const DeviceOptions& options, const SidePlan& side,
                                      const MemoryNeeds& needs) {
  try {
    return std::optional<ResidentDataset>(std::in_place, gpu, loader, side, options.pin_memory,
                                          needs);
  } catch (const Error& error) {
    const bool dispensable = options.resident == DeviceResident::automatic &&
                             error.code() == ErrorCode::out_of_resources;
    if (!dispensable) throw;
    return std::nullopt;
  }
}

}  // namespace

LoaderBuffers make_buffers(const std::shared_ptr<Gpu>& gpu, Loader loader,
                           const DeviceOptions& options, const SidePlan& side,
                           const BatchMaker& maker) {
  LoaderBuffers buffers{.dataset_bytes = ResidentDataset::footprint(loader, side),
                        .free_device_bytes = gpu->memory().free_bytes};
  const std::int64_t batch_size = loader.options().batch_size;
  const std::int64_t echo_batches = echo_buffer_batches_of(loader, options);
  const auto needs = [&](std::int64_t input_bytes, bool of_dataset) {
    return MemoryNeeds{
        .output_bytes = OutputRing::footprint(options.max_held, batch_size, maker, side),
        .input_bytes = input_bytes,
        .free_bytes = buffers.free_device_bytes,
        .batch_size = batch_size,
        .max_held = options.max_held,
        .echo_buffer_batches = options.echo_buffer_batches,
        .has_fields = !side.fields.empty(),
        .resident = of_dataset,
        .required = options.resident == DeviceResident::require};
  };
  const MemoryNeeds fed = needs(Uploader::footprint(loader, echo_batches, side), false);
  const MemoryNeeds whole = needs(buffers.dataset_bytes, true);
  const bool keep = may_be_resident(loader, options, buffers) &&
                    (whole.fit() || options.resident == DeviceResident::require);
  (keep ? whole : fed).require_room();
  buffers.outputs = std::make_shared<OutputRing>(gpu, options.max_held, batch_size, maker, side,
                                                 options.pin_memory, keep ? whole : fed);
  if (keep) {
    if (auto uploaded = upload(gpu, loader, options, side, whole)) {
      buffers.resident = true;
      buffers.pinned = uploaded->pinned;
      buffers.feed =
          std::make_unique<ResidentFeed>(std::move(loader), echo_batches, std::move(*uploaded));
      return buffers;
    }
    fed.require_room();  // Not asked yet.
  }
  // Nothing is read into the ring of a loader whose dataset is resident.
  buffers.locked_ring = PinnedRing::of(gpu, loader, options.pin_memory);
  buffers.pinned = buffers.locked_ring != nullptr;
  buffers.feed = std::make_unique<Uploader>(gpu, std::move(loader), echo_batches, side,
                                            options.pin_memory, fed);
  return buffers;
}

}  // namespace chunkio::device
