# Tests of what becomes of pictures after they were read.
find_package(nlohmann_json REQUIRED)
chunkio_add_unit_tests(
  device_test
  SOURCES unit/augmentation_test.cpp
          unit/device_loader_test.cpp
          unit/echo_deal_test.cpp
          unit/line_converter_test.cpp
          unit/normalizer_test.cpp
          unit/thread_team_test.cpp
  LIBRARIES nlohmann_json::nlohmann_json)

# On a real device, with the label cuda; without one its tests skip and say why.
if(CHUNKIO_HAS_CUDA)
  find_package(CUDAToolkit REQUIRED)
  chunkio_add_unit_tests(cuda_test LABEL cuda SOURCES unit/cuda_gpu_test.cpp
                         LIBRARIES CUDA::cudart_static)
endif()
