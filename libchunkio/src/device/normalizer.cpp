#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <chunkio/error.hpp>
#include <chunkio/normalizer.hpp>

#include "base/access.hpp"
#include "base/checked_math.hpp"
#include "base/cpus.hpp"
#include "base/streaming_copy.hpp"
#include "device/augmentation.hpp"
#include "device/image_transform.hpp"
#include "device/normalize_plan.hpp"
#include "device/resized_transform.hpp"
#include "device/thread_team.hpp"
#include "read/ring.hpp"

namespace chunkio {
namespace {

/// Output bytes of a piece of work, or a row more: little enough for a second-level cache, and so
/// much that planes of the most channels are lines that RowConverter streams.
constexpr std::int64_t kPieceBytes = device::kMaxChannels * device::kMinStreamedBytes;

/// Output bytes up to which a batch stays in the cache until it is read. A larger one need not go
/// there.
std::int64_t largest_cached_bytes() {
  constexpr std::int64_t kUsualCache = std::int64_t{32} << 20;
  const std::int64_t cache = base::last_level_cache_bytes();
  return cache > 0 ? cache : kUsualCache;
}

}  // namespace

struct Normalizer::Impl {
  Impl(const DatasetInfo& info, NormalizeOptions options_in, std::int64_t num_threads,
       std::int64_t largest_cached)
      : options(std::move(options_in)),
        sample_shape(info.sample_shape()),
        plan(device::make_normalize_plan(info, options)),
        writer(plan),
        largest_cached_bytes(largest_cached),
        threads(device::checked_threads(num_threads)),
        team(threads) {
    if (!plan.resized_crop) return;
    resizer.emplace(plan);
    memory.resize(static_cast<std::size_t>(threads));
  }

  void check(const Tensor& images, std::span<const std::int64_t> sample_ids,
             std::span<const std::byte> output, std::int64_t echo_pass) const {
    const auto fail = [](const std::string& what) {
      throw Error(ErrorCode::invalid_argument, "normalizing: " + what);
    };
    const Shape wanted = sample_shape.with_first_axis(std::ssize(sample_ids));
    if (images.dtype() != DType::uint8 || images.shape() != wanted) {
      fail("images must be uint8 " + wanted.to_string() + ", one for each sample id, got " +
           std::string(to_string(images.dtype())) + " " + images.shape().to_string());
    }
    const std::int64_t bytes = std::ssize(sample_ids) * plan.output_bytes();
    if (std::ssize(output) != bytes) {
      fail("the output has " + std::to_string(output.size()) + " bytes instead of " +
           std::to_string(bytes));
    }
    if (reinterpret_cast<std::uintptr_t>(output.data()) % size_of(options.dtype) != 0) {
      fail("the output is not aligned to its element type");
    }
    if (echo_pass < 0 || echo_pass > std::numeric_limits<std::uint32_t>::max()) {
      fail("echo_pass must be between 0 and 2^32 - 1, got " + std::to_string(echo_pass));
    }
  }

  void normalize(const Tensor& images, std::span<const std::int64_t> sample_ids, std::int64_t epoch,
                 std::uint64_t seed, std::span<std::byte> output, std::int64_t echo_pass) {
    check(images, sample_ids, output, echo_pass);
    const auto* const pixels = reinterpret_cast<const std::uint8_t*>(images.data());
    const base::PhiloxKey key =
        base::augmentation_key(options.seed.value_or(seed), static_cast<std::uint64_t>(epoch));
    const std::int64_t height = plan.crop.height;
    const std::int64_t num_samples = std::ssize(sample_ids);
    // A piece of work is some rows of a sample, or some samples. A box is resized as a whole.
    const std::int64_t rows =
        resizer ? height
                : std::min(base::ceil_divide(kPieceBytes * height, plan.output_bytes()), height);
    const std::int64_t pieces = base::ceil_divide(height, rows);  // of a sample
    const std::int64_t samples = std::max<std::int64_t>(1, kPieceBytes / plan.output_bytes());
    const auto stores = std::ssize(output) > largest_cached_bytes ? device::Stores::streaming
                                                                  : device::Stores::cached;
    const auto work = [&](std::int64_t i, std::int64_t thread) {
      const std::int64_t first = i / pieces * samples;
      const std::int64_t first_row = i % pieces * rows;
      const std::int64_t num_rows = std::min(rows, height - first_row);
      for (std::int64_t sample = first; sample < std::min(first + samples, num_samples); ++sample) {
        const device::Augmentation wanted =
            device::augmentation_of(plan, key, sample_ids[static_cast<std::size_t>(sample)],
                                    static_cast<std::uint32_t>(echo_pass));
        const std::uint8_t* const image = pixels + sample * plan.image_bytes();
        std::byte* const to = output.data() + sample * plan.output_bytes();
        if (resizer) {
          resizer->write(image, wanted, memory[static_cast<std::size_t>(thread)], to, stores);
        } else {
          writer.write_rows(image, wanted.crop, first_row, num_rows, to, stores);
        }
      }
      if (stores == device::Stores::streaming) base::store_fence();
    };
    team.run(base::ceil_divide(num_samples, samples) * pieces, work);
  }

  NormalizeOptions options;
  Shape sample_shape;
  device::NormalizePlan plan;
  device::ImageTransform writer;
  std::optional<device::ResizedTransform> resizer;       // Instead, where boxes are resized.
  std::vector<device::ResizedTransform::Memory> memory;  // Of each thread.
  std::int64_t largest_cached_bytes;
  std::int64_t threads;
  device::ThreadTeam team;
};

Normalizer::Normalizer(const DatasetInfo& info, NormalizeOptions options, std::int64_t num_threads)
    : Normalizer(info, std::move(options), num_threads, chunkio::largest_cached_bytes()) {}
Normalizer::Normalizer(const DatasetInfo& info, NormalizeOptions options, std::int64_t num_threads,
                       std::int64_t largest_cached_bytes)
    : impl_(std::make_unique<Impl>(info, std::move(options), num_threads, largest_cached_bytes)) {}

Normalizer::Normalizer(Normalizer&&) noexcept = default;
Normalizer& Normalizer::operator=(Normalizer&&) noexcept = default;
Normalizer::~Normalizer() = default;

Shape Normalizer::output_shape(std::int64_t num_samples) const {
  return impl_->plan.output_shape(num_samples);
}

std::size_t Normalizer::output_bytes(std::int64_t num_samples) const {
  return static_cast<std::size_t>(output_shape(num_samples).num_elements()) *
         size_of(impl_->options.dtype);
}

const NormalizeOptions& Normalizer::options() const noexcept { return impl_->options; }
std::int64_t Normalizer::num_threads() const noexcept { return impl_->threads; }

void Normalizer::operator()(const Batch& batch, std::span<std::byte> output,
                            std::int64_t echo_pass) const {
  const auto& slot = internal::Access::slot(batch);
  impl_->normalize(batch.images(), batch.sample_ids(), batch.epoch(), slot ? slot->layout->seed : 0,
                   output, echo_pass);
}

void Normalizer::operator()(const Tensor& images, std::span<const std::int64_t> sample_ids,
                            std::int64_t epoch, std::span<std::byte> output,
                            std::int64_t echo_pass) const {
  impl_->normalize(images, sample_ids, epoch, 0, output, echo_pass);
}

}  // namespace chunkio
