/// The dataset that `h5pack tune` is asked about: a source, an HDF5 file, or NxHxWxC.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <chunkio/dataset.hpp>
#include <chunkio/tuning.hpp>

#include "h5pack/pack/pack_request.hpp"

namespace h5pack {

/// The images that are to be trained with.
struct TunedSource {
  std::string path = {};
  /// "hdf5", the command that packs it ("folder", ...), or "planned": only sizes are known.
  std::string kind = {};
  /// Options of that command that were given, each with a blank in front; of a file: of repack.
  std::string options = {};
  chunkio::OpenOptions open = {};  ///< Of a file.
  bool output_is_folder = false;
  std::string split = {};  ///< Of a source with several: the largest, which is looked at.
  std::int64_t num_samples = 0;
  std::int64_t height = 0, width = 0, channels = 0;
  std::int64_t row_bytes = 0;                               ///< Of labels and fields of a sample.
  std::int64_t encoded_bytes = 0;                           ///< Of a file of encoded images.
  std::optional<chunkio::StoredGroups> stored = {};         ///< Of a file.
  bool several_files = false;                               ///< Shards.
  std::optional<chunkio::Hdf5Reads> random_h5py = {};       ///< Of a chunked file: random order and
                                                            ///< the default cache of HDF5 1.x.
  std::optional<chunkio::Hdf5Reads> chunk_order_h5py = {};  ///< Chunk order, recommended cache.

  [[nodiscard]] std::int64_t sample_bytes() const noexcept { return height * width * channels; }
  /// Whether each epoch has another part of an image, which a file of pixels does not have.
  [[nodiscard]] bool random_crops() const noexcept {
    return encoded_bytes > 0 && open.decode->crop == chunkio::CropMode::random_resized;
  }
};

/// A source to be packed, or an HDF5 file.
struct OpenedSource {
  TunedSource source = {};
  std::optional<chunkio::Dataset> dataset = {};  ///< Of a file.
};

/// Looks at `request.source.input`: at a file of HDF5 (or several, `train-*-of-00008.h5`), a
/// manifest
/// (.csv), a folder of CIFAR or CelebA, any other folder of images, or "NxHxWxC", images that
/// do not exist yet. Decodes one image at most.
/// \param request  the source, and the options that decide on the size of images.
/// \param kind  of the source; empty: told from what is there.
/// \throws chunkio::Error invalid_argument for options that such a source has no use for; else as
/// the
///         sources, plan_pack() and Dataset::open() do.
[[nodiscard]] OpenedSource open_tuned_source(PackRequest request, const std::string& kind,
                                             const chunkio::OpenOptions& open);

}  // namespace h5pack
