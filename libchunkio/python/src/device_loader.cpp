/// chunkio::cuda::DeviceLoader.
#include "bindings.hpp"
