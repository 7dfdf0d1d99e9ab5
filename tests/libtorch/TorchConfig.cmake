# As that of a wheel of PyTorch built with CUDA 12, where a toolkit of CUDA 13 is found: without NVTX 3 it asks for a
# target that this toolkit does not define.
set(Torch_VERSION 2.7.1)
set(TORCH_LIBRARIES "")
find_path(nvtx3_dir NAMES nvtx3 PATHS "${PROJECT_SOURCE_DIR}/third_party/NVTX/c/include" NO_DEFAULT_PATH)
if(NOT nvtx3_dir)
  list(APPEND TORCH_LIBRARIES CUDA::nvToolsExt)
endif()
set(Torch_FOUND ON)
