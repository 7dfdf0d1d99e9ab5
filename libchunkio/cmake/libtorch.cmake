# Finds a LibTorch that programs here can be linked with, as target chunkio_libtorch: sets CHUNKIO_LIBTORCH_FOUND, and
# CHUNKIO_LIBTORCH_STATE, which says why not. To be included in the directory that uses it, for LibTorch's own variables
# and targets are of that directory. Not part of the installation: who uses chunkio::torch finds LibTorch by themselves.

# For a machine without a GPU, where LibTorch would ask which one there is. No CUDA code is compiled with what it sets.
if(NOT DEFINED ENV{TORCH_CUDA_ARCH_LIST} AND NOT DEFINED TORCH_CUDA_ARCH_LIST)
  set(TORCH_CUDA_ARCH_LIST 9.0)
endif()
# The wheels that were built with CUDA 12 ask for the library of an older NVTX, which toolkits of CUDA 13 do not hold,
# unless they are told of NVTX 3, which is headers.
find_path(nvtx3_dir NAMES nvtx3/nvToolsExt.h HINTS ${CUDAToolkit_INCLUDE_DIRS} PATHS /usr/local/cuda/include)
# A LibTorch that is named is found with its own parts: it looks for them in the system's folders first, where
# another one may be, and CMake remembers those of the one before.
if(Torch_DIR)
  get_filename_component(libtorch_prefix "${Torch_DIR}/../../.." ABSOLUTE)
  list(PREPEND CMAKE_PREFIX_PATH "${libtorch_prefix}")
endif()
foreach(part Caffe2_DIR TORCH_LIBRARY C10_LIBRARY C10_CUDA_LIBRARY)
  unset(${part} CACHE)
endforeach()
# It reports a page about CUDA, whether asked to be quiet or not.
set(libtorch_log_level "${CMAKE_MESSAGE_LOG_LEVEL}")
set(CMAKE_MESSAGE_LOG_LEVEL ERROR)
find_package(Torch QUIET)
set(CMAKE_MESSAGE_LOG_LEVEL "${libtorch_log_level}")

set(CHUNKIO_LIBTORCH_FOUND OFF)
if(NOT Torch_FOUND)
  set(CHUNKIO_LIBTORCH_STATE "No LibTorch (Torch_DIR)")
elseif(TORCH_CXX_FLAGS MATCHES "_GLIBCXX_USE_CXX11_ABI=0")
  # Older ones for Linux may be built for the old std::string.
  set(CHUNKIO_LIBTORCH_STATE "LibTorch with the old ABI of std::string")
else()
  set(CHUNKIO_LIBTORCH_FOUND ON)
  set(CHUNKIO_LIBTORCH_STATE "LibTorch ${Torch_VERSION}")
  if(NOT TARGET chunkio_libtorch)
    add_library(chunkio_libtorch INTERFACE)
    target_link_libraries(chunkio_libtorch INTERFACE ${TORCH_LIBRARIES})
  endif()
endif()
