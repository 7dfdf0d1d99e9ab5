#include <chunkio/error.hpp>

#include "device/gpu.hpp"

namespace chunkio::device {

std::shared_ptr<Gpu> open_gpu(int) {
  throw Error(ErrorCode::unsupported,
              "this chunkio was built without CUDA: build it where the CUDA toolkit is, with "
              "CHUNKIO_WITH_CUDA=ON, or use Loader and Normalizer on the CPU");
}

}  // namespace chunkio::device
