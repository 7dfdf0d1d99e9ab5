#include "compute_stream.hpp"

#if CHUNKIO_TRAINERS_WITH_CUDA

#include <c10/cuda/CUDAStream.h>

#include <array>

namespace trainer {

void use_own_stream(torch::Device device) {
  if (!device.is_cuda()) return;
  c10::cuda::setCurrentCUDAStream(
      c10::cuda::getStreamFromPool(/*isHighPriority=*/false, device.index()));
}

CUstream_st* current_cuda_stream(torch::Device device) {
  return c10::cuda::getCurrentCUDAStream(device.index()).stream();
}

void wait_for_stream(torch::Device device) {
  if (device.is_cuda()) c10::cuda::getCurrentCUDAStream(device.index()).synchronize();
}

std::string pci_bus_id(torch::Device device) {
  if (!device.is_cuda()) return {};
  std::array<char, 32> id{};
  if (cudaDeviceGetPCIBusId(id.data(), static_cast<int>(id.size()), device.index()) ==
      cudaSuccess) {
    return id.data();
  }
  static_cast<void>(cudaGetLastError());  // Or LibTorch would report it.
  return {};
}

}  // namespace trainer

#else

namespace trainer {

void use_own_stream(torch::Device) {}
CUstream_st* current_cuda_stream(torch::Device) { return nullptr; }
void wait_for_stream(torch::Device) {}
std::string pci_bus_id(torch::Device) { return {}; }

}  // namespace trainer

#endif
