/// Views of batches as PyTorch tensors, without a copy.
///
///     for (const chunkio::Batch& batch : loader.epoch(0)) {
///       torch::Tensor images = chunkio::to_torch(batch, batch["images"]);  // uint8 [B,H,W,C]
///       torch::Tensor input = images.permute({0, 3, 1, 2}).to(torch::kFloat32);
///     }
///
/// Opt-in, and the only public header that needs a third party: LibTorch, which the program finds
/// and links by itself, beside chunkio::torch. Data flow: Batch or DeviceBatch -> torch::Tensor.
/// The storage of a tensor holds a lease of its batch until the last tensor over it is gone, on any
/// thread, also when the loader is gone. Until then the lease counts for max_held.
///
/// LibTorch has no read-only tensors. Do not write to those of a Batch, in-place operators
/// included: a batch is a shared lease, and writing changes what others read. clone() what is to
/// be changed. Those of a DeviceBatch may be written.
///
/// LibTorch knows nothing of streams other than its own: give DeviceLoader::next() the one that is
/// current there (c10::cuda::getCurrentCUDAStream().stream()), or name the one that uses the batch
/// with DeviceBatch::use_on().
///
/// All functions may be called concurrently. None of them blocks or does I/O.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include <torch/types.h>

#include <chunkio/error.hpp>
#include <chunkio/tensor.hpp>

namespace chunkio {

namespace internal {

/// A template, so that enumerators which older versions do not have are asked for, not named.
template <class ScalarType>
ScalarType scalar_type(DType dtype) {
  switch (dtype) {
    case DType::uint8:
      return ScalarType::Byte;
    case DType::int8:
      return ScalarType::Char;
    case DType::int16:
      return ScalarType::Short;
    case DType::int32:
      return ScalarType::Int;
    case DType::int64:
      return ScalarType::Long;
    case DType::float16:
      return ScalarType::Half;
    case DType::bfloat16:
      return ScalarType::BFloat16;
    case DType::float32:
      return ScalarType::Float;
    case DType::float64:
      return ScalarType::Double;
    case DType::uint16:
      if constexpr (requires { ScalarType::UInt16; }) return ScalarType::UInt16;
      break;
    case DType::uint32:
      if constexpr (requires { ScalarType::UInt32; }) return ScalarType::UInt32;
      break;
    case DType::uint64:
      if constexpr (requires { ScalarType::UInt64; }) return ScalarType::UInt64;
      break;
  }
  throw Error(ErrorCode::unsupported, "this version of LibTorch has no element type " +
                                          std::string(to_string(dtype)) +
                                          "; uint16, uint32 and uint64 came with 2.3");
}

}  // namespace internal

/// The element type as LibTorch calls it.
/// \throws Error unsupported (uint16, uint32 and uint64 before LibTorch 2.3).
inline torch::ScalarType torch_dtype(DType dtype) {
  return internal::scalar_type<torch::ScalarType>(dtype);
}

/// A contiguous tensor over the memory of `tensor`, with its shape, element type and device.
///
/// \param owner  keeps the memory valid and unchanged while it exists: the Batch or DeviceBatch
///               of the tensor, or anything of the caller's. It is moved into the storage and
///               destroyed with it, on the thread that drops the last reference.
/// \throws Error invalid_argument (the tensor is empty, as that of labels which a file does not
///         have, or does not lie in the batch), out_of_resources (the dimensions multiply to more
///         than 63 bits), unsupported (as torch_dtype()); c10::Error as torch::from_blob(). `owner`
///         is destroyed then.
template <class Owner>
[[nodiscard]] torch::Tensor to_torch(Owner owner, const Tensor& tensor) {
  internal::require_exportable(owner, tensor);
  const torch::Device device(tensor.device().type == DeviceType::cuda ? torch::kCUDA : torch::kCPU,
                             tensor.device().type == DeviceType::cuda
                                 ? static_cast<c10::DeviceIndex>(tensor.device().index)
                                 : c10::DeviceIndex{-1});
  const auto options = torch::TensorOptions().dtype(torch_dtype(tensor.dtype())).device(device);
  const std::span<const std::int64_t> dims = tensor.shape().dims();
  // Shared, because LibTorch copies deleters. This one has nothing to do: what it holds goes with
  // it.
  auto kept = std::make_shared<Owner>(std::move(owner));
  return torch::from_blob(
      const_cast<std::byte*>(tensor.data()), torch::IntArrayRef(dims.data(), dims.size()),
      [kept = std::move(kept)](void*) {}, options);
}

}  // namespace chunkio
