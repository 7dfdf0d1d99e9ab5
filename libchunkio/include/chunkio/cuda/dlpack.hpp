/// Hands device batches to other frameworks through DLPack: see chunkio/dlpack.hpp.
///
///     auto images = chunkio::cuda::to_dlpack(*batch, batch->images());
///     consumer(images.release());  // on the stream that next() was given
///
/// Opt-in. A managed tensor holds a lease of its batch until its deleter is called, on any thread.
/// It names no stream: read it on the stream that was given to DeviceLoader::next(), or make
/// another stream wait for that one and tell DeviceBatch::use_on().
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include <chunkio/cuda/device_loader.hpp>
#include <chunkio/dlpack.hpp>
#include <chunkio/tensor.hpp>

namespace chunkio::cuda {

namespace internal {

template <class Managed>
std::unique_ptr<Managed, dlpack::CallDeleter> export_tensor(DeviceBatch&& batch,
                                                            const DeviceTensor& tensor) {
  batch.require_contains(tensor);
  return chunkio::internal::export_tensor<Managed>(
      std::move(batch), TensorView(tensor.data, tensor.dtype, tensor.shape),
      {dlpack::DLDeviceType::cuda, static_cast<std::int32_t>(tensor.device)});
}

}  // namespace internal

/// Exports the images(), labels() or a field() of `batch` as a read-only managed tensor.
/// \throws Error invalid_argument (`tensor` is of another batch, or there are no labels).
[[nodiscard]] inline dlpack::ManagedTensor to_dlpack(DeviceBatch batch,
                                                     const DeviceTensor& tensor) {
  return internal::export_tensor<dlpack::DLManagedTensorVersioned>(std::move(batch), tensor);
}

/// The same for consumers older than DLPack 1.0, which are not told that the memory is read-only.
/// \throws Error as to_dlpack().
[[nodiscard]] inline dlpack::LegacyManagedTensor to_dlpack_legacy(DeviceBatch batch,
                                                                  const DeviceTensor& tensor) {
  return internal::export_tensor<dlpack::DLManagedTensor>(std::move(batch), tensor);
}

}  // namespace chunkio::cuda
