/// The suite of the GPU path. Only where CUDA was found.
#pragma once

#include "harness/suite.hpp"

namespace bench {

/// The kernel against copies in device memory and PyTorch, uploads against bare copies to the
/// device, and DeviceLoader against its slower part.
[[nodiscard]] Suite gpu_suite();

}  // namespace bench
