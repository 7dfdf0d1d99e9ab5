/// Device batches as PyTorch tensors, without a copy: see chunkio/torch.hpp.
///
///     torch::Tensor images = chunkio::cuda::to_torch(*batch, batch->images());  // on the GPU
///
/// Opt-in, and needs a LibTorch that was built with CUDA. A tensor holds a lease of its batch until
/// the last tensor over it is gone. LibTorch knows nothing of streams other than its own: give
/// DeviceLoader::next() the one that is current there (c10::cuda::getCurrentCUDAStream().stream()),
/// or name the one that uses the batch with DeviceBatch::use_on().
#pragma once

#include <utility>

#include <torch/types.h>

#include <chunkio/cuda/device_loader.hpp>
#include <chunkio/tensor.hpp>
#include <chunkio/torch.hpp>

namespace chunkio::cuda {

/// A contiguous tensor over the images(), labels() or a field() of `batch`. Not to be written to.
/// \throws Error invalid_argument (`tensor` is of another batch, or there are no labels), and as
///         chunkio::to_torch().
[[nodiscard]] inline torch::Tensor to_torch(DeviceBatch batch, const DeviceTensor& tensor) {
  batch.require_contains(tensor);
  return chunkio::to_torch(
      std::move(batch), TensorView(tensor.data, tensor.dtype, tensor.shape),
      torch::Device(torch::kCUDA, static_cast<c10::DeviceIndex>(tensor.device)));
}

}  // namespace chunkio::cuda
