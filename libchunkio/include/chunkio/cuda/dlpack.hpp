/// Hands device batches to other frameworks through DLPack: see chunkio/dlpack.hpp.
///
///     auto images = chunkio::cuda::to_dlpack(*batch, batch->images());
///     consumer(images.release());  // on the stream that next() was given
///
/// Opt-in. A managed tensor holds a lease of its batch until its deleter is called, on any thread.
/// It names no stream: whoever reads it does so on the stream that was given to
/// DeviceLoader::next(), or makes another stream wait for that one and says so with
/// DeviceBatch::use_on().
#pragma once

#include <cstdint>
#include <utility>

#include <chunkio/cuda/device_loader.hpp>
#include <chunkio/dlpack.hpp>
#include <chunkio/error.hpp>

namespace chunkio::cuda {

/// Exports the images() or labels() of `batch` as a read-only managed tensor.
/// \throws Error invalid_argument (`tensor` is of another batch, or there are no labels).
[[nodiscard]] inline dlpack::ManagedTensor to_dlpack(DeviceBatch batch,
                                                     const DeviceTensor& tensor) {
  if (tensor.data != batch.images().data && tensor.data != batch.labels().data) {
    throw Error(ErrorCode::invalid_argument,
                "the tensor is not of this batch, whose lease would not keep its memory valid");
  }
  const dlpack::DLDevice device{dlpack::DLDeviceType::cuda,
                                static_cast<std::int32_t>(tensor.device)};
  return chunkio::to_dlpack(std::move(batch), TensorView(tensor.data, tensor.dtype, tensor.shape),
                            device);
}

}  // namespace chunkio::cuda
