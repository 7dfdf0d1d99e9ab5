/// How kernels are launched.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

namespace chunkio::device {

/// As <<<>>>, whose status can only be had together with errors that the caller's thread left
/// before.
template <class... Parameters>
[[nodiscard]] cudaError_t launch(void (*kernel)(Parameters...), unsigned blocks, int threads,
                                 std::size_t bytes, cudaStream_t stream, Parameters... parameters) {
  void* addresses[] = {&parameters...};
  return cudaLaunchKernel(reinterpret_cast<const void*>(kernel), dim3(blocks),
                          dim3(static_cast<unsigned>(threads)), addresses, bytes, stream);
}

}  // namespace chunkio::device
