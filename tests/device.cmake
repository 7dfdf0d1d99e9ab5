# Tests of what becomes of images after they were read.
find_package(nlohmann_json REQUIRED)
# What is right on any GPU: device_test has a simulated one, cuda_test a device.
add_library(
  gpu_tests OBJECT
  unit/device/dense_row_test.cpp
  unit/device/device_loader_memory_test.cpp
  unit/device/device_loader_resume_test.cpp
  unit/device/device_loader_sparse_test.cpp
  unit/device/device_loader_test.cpp
  unit/device/device_loader_wait_test.cpp
  unit/read/loader_conformance_test.cpp)
chunkio_configure_tests(gpu_tests)
target_link_libraries(gpu_tests PRIVATE nlohmann_json::nlohmann_json)
chunkio_add_unit_tests(
  device_test ALONE "DeviceLoaderTest.StatisticsName*"
  SOURCES unit/device/augmentation_test.cpp
          unit/advice/device_bottleneck_test.cpp
          unit/device/densifier_test.cpp
          unit/device/device_loader_statistics_test.cpp
          unit/device/echo_deal_test.cpp
          unit/device/kernel_plan_test.cpp
          unit/device/row_converter_test.cpp
          unit/device/normalize_tile_test.cpp
          unit/device/normalizer_resized_test.cpp
          unit/device/normalizer_test.cpp
          unit/device/thread_team_test.cpp
          support/simulated_gpu.cpp
          $<TARGET_OBJECTS:gpu_tests>
  LIBRARIES nlohmann_json::nlohmann_json)

# It replaces operator new, and mmap() of the library.
chunkio_add_unit_tests(allocation_faults_test SOURCES fault/allocation_faults_test.cpp support/simulated_gpu.cpp)
target_link_options(allocation_faults_test PRIVATE LINKER:--wrap=mmap)

# On a real device, with the label cuda; without one its tests skip and say why.
if(CHUNKIO_HAS_CUDA)
  find_package(CUDAToolkit REQUIRED)
  chunkio_add_unit_tests(cuda_test LABEL cuda PREFIX cuda. ALONE "CudaGpuTest.LoadersThatAreDropped*"
                         SOURCES unit/device/cuda_gpu_test.cpp support/cuda_gpu_of_tests.cpp $<TARGET_OBJECTS:gpu_tests>
                         LIBRARIES CUDA::cudart_static ${CMAKE_DL_LIBS})

  # Needs no device: it replaces the functions of the CUDA runtime that the library calls, and what nvcc makes of <<<>>>.
  chunkio_add_unit_tests(cuda_faults_test SOURCES fault/cuda_faults_test.cpp fault/fake_cuda_runtime.cpp
                         LIBRARIES CUDA::cudart_static)
  foreach(
    function
    cudaDriverGetVersion cudaEventCreateWithFlags cudaEventDestroy cudaEventElapsedTime cudaEventQuery cudaEventRecord
    cudaEventSynchronize cudaFree cudaFreeHost cudaGetDeviceCount cudaGetDriverEntryPoint
    cudaGetDriverEntryPointByVersion cudaGetLastError cudaHostAlloc cudaHostRegister cudaHostUnregister
    cudaLaunchKernel cudaMalloc cudaMemGetInfo cudaMemcpyAsync cudaMemsetAsync cudaSetDevice cudaStreamCreateWithFlags
    cudaStreamDestroy cudaStreamSynchronize cudaStreamWaitEvent __cudaGetKernel __cudaLaunchKernel
    __cudaPopCallConfiguration __cudaPushCallConfiguration)
    target_link_options(cuda_faults_test PRIVATE LINKER:--wrap=${function})
  endforeach()
endif()

# Linked with a profiler of its own, which writes down what the ranges say.
if(CHUNKIO_HAS_NVTX)
  chunkio_add_unit_tests(trace_test SOURCES unit/base/trace_test.cpp support/simulated_gpu.cpp)
  target_include_directories(trace_test SYSTEM PRIVATE ${CHUNKIO_NVTX_INCLUDE_DIR})
  target_link_libraries(trace_test PRIVATE ${CMAKE_DL_LIBS})
endif()
