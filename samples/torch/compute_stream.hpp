// The GPU as LibTorch sees it, in one place: a LibTorch without CUDA has neither streams nor the
// headers of them.
#pragma once

#include <string>

#include <torch/types.h>

struct CUstream_st;

namespace trainer {

/// Makes a stream of its own the current one of this thread: the default stream would wait for all
/// others, and they for it.
void use_own_stream(torch::Device device);

/// The current stream of this thread; null on a CPU.
CUstream_st* current_cuda_stream(torch::Device device);

/// All that was put into the current stream is done when it returns.
void wait_for_stream(torch::Device device);

/// "0000:3B:00.0", by which nvidia-smi knows it; empty if the driver does not say.
std::string pci_bus_id(torch::Device device);

}  // namespace trainer
