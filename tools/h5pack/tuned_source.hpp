/// What a dataset to be tuned for is, whatever form it has.
#pragma once

#include <optional>
#include <string>

#include <chunkio/dataset.hpp>

#include "pack_command.hpp"
#include "tune_report.hpp"

namespace h5pack {

/// A source to be packed, or an HDF5 file.
struct OpenedSource {
  TunedSource source = {};
  std::optional<chunkio::Dataset> dataset = {};  ///< Of a file.
};

/// Looks at `command.input`: at a file of HDF5 (or several, `train-*-of-00008.h5`), a manifest
/// (.csv), a folder of CIFAR or CelebA, any other folder of images, or "NxHxWxC", images that
/// do not exist yet. Decodes one image at most.
/// \param command  `input`, and the options that decide on the size of images.
/// \param kind  of the source; empty: told from what is there.
/// \throws chunkio::Error invalid_argument for options that such a source has no use for; else as
/// the
///         sources, plan_pack() and Dataset::open() do.
[[nodiscard]] OpenedSource open_tuned_source(PackCommand command, const std::string& kind,
                                             const chunkio::OpenOptions& open);

}  // namespace h5pack
