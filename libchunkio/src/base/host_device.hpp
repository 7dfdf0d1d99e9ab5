/// Marks functions that CPU code and CUDA kernels share.
#pragma once

#ifdef __CUDACC__
#define CHUNKIO_HOST_DEVICE __host__ __device__
#else
#define CHUNKIO_HOST_DEVICE
#endif
