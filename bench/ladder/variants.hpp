/// The variants of the ladder: ways of loading the same images, from the naive one to the best.
///
/// Each delivers batches to one consumer. All charge what they read to the same slower disk, if
/// there is one: files, what libhdf5 asks for, what the library's own sources read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <chunkio/disk_limit.hpp>

#include "ladder/ladder_images.hpp"

namespace bench {

struct LadderSettings {
  std::int64_t batch_size = 128;
  std::int64_t threads = 2;
  std::int64_t prefetch_depth = 4;  ///< Batches.
  std::int64_t window_bytes = 0;
  std::uint64_t seed = 0;
  std::optional<chunkio::DiskLimit> limit = {};
};

/// Valid until the next one is asked for.
struct LadderBatch {
  std::span<const std::int64_t> rows;
  /// [B,H,W,3], or empty: then `values` has them normalised, [B,3,H,W].
  std::span<const std::byte> pixels = {};
  std::span<const float> values = {};
};

/// An epoch of one variant.
class Epoch {
 public:
  virtual ~Epoch() = default;
  /// Nothing at the end. \throws std::exception.
  virtual std::optional<LadderBatch> next() = 0;
  /// Bytes asked of the disk for what was delivered so far; absent if nothing can be read, or if it
  /// is known only at the end of the epoch.
  [[nodiscard]] virtual std::optional<std::int64_t> bytes_read() const = 0;
};

struct Variant {
  std::string name;
  /// Opens what there is to open. Images are read, also ahead, from the first next() on, so that
  /// the clock of the epoch misses nothing.
  std::function<std::unique_ptr<Epoch>(const LadderImages&, const LadderSettings&)> start;
};

[[nodiscard]] const std::vector<Variant>& variants();

/// uint8 [H,W,3] to float32 [3,H,W], (x / 255 - mean) / std with the usual constants of ImageNet.
void normalize_image(const ImageSize& size, const std::byte* pixels, float* values);

}  // namespace bench
