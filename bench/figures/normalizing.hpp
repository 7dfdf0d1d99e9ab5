/// What the figures about normalising share.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include <chunkio/dataset.hpp>
#include <chunkio/tensor.hpp>

#include "harness/drawn_images.hpp"
#include "harness/figure.hpp"
#include "harness/peer_process.hpp"

namespace bench {

// Of ImageNet.
inline constexpr std::array<double, 3> kMean{0.485, 0.456, 0.406};
inline constexpr std::array<double, 3> kStd{0.229, 0.224, 0.225};

struct NormalizingOptions {
  std::int64_t bytes = std::int64_t{256} << 20;
  std::int64_t batch_size = 256;
  std::int64_t rounds = 5;
  std::vector<std::int64_t> threads = {1, 2};
  std::string torch;  ///< A Python that has it.
};

/// One combination, and what it is measured on.
struct Setting {
  ImageSize size;
  chunkio::DType dtype;
  chunkio::Layout layout;
  std::int64_t threads;

  [[nodiscard]] std::string name() const {
    return std::string(size.name) + ", " + std::string(to_string(dtype)) + " " +
           std::string(to_string(layout)) + ", " + std::to_string(threads) +
           (threads == 1 ? " thread" : " threads");
  }
};

/// All of `output` against a loop over the pixels of `images`, to the precision of the type.
/// \throws std::runtime_error.
void check_normalized(const Setting& setting, const std::uint8_t* images, std::int64_t count,
                      const std::byte* output);

/// A script of bench/peers that has PyTorch do the same. Null without --torch.
/// \param sizes  of the images, and how many there are. \param more  of its options.
[[nodiscard]] std::unique_ptr<PeerProcess> start_torch(const NormalizingOptions& options,
                                                       const std::string& script,
                                                       std::initializer_list<std::int64_t> sizes,
                                                       std::int64_t threads,
                                                       const std::vector<std::string>& more = {});

/// Random resized crops of images of 375x500 to 224x224.
void measure_resized_crops(const NormalizingOptions& options, Report& report);

}  // namespace bench
