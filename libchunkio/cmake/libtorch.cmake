# Finds a LibTorch that programs here can be linked with, as target chunkio_libtorch: sets CHUNKIO_LIBTORCH_FOUND, and
# CHUNKIO_LIBTORCH_STATE, which says why not. To be included in the directory that uses it, for LibTorch's own variables
# and targets are of that directory. Not part of the installation: who uses chunkio::torch finds LibTorch by themselves.

# For a machine without a GPU, where LibTorch would ask which one there is. No CUDA code is compiled with what it sets.
if(NOT DEFINED ENV{TORCH_CUDA_ARCH_LIST} AND NOT DEFINED TORCH_CUDA_ARCH_LIST)
  set(TORCH_CUDA_ARCH_LIST 9.0)
endif()
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
    # The libraries of a wheel find what they need by themselves when a program starts. The linker does not look there,
    # and may find another version on the system.
    target_link_options(chunkio_libtorch INTERFACE -Wl,--allow-shlib-undefined)
  endif()
endif()
