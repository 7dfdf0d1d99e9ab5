# Tests of ring, windows in flight and Loader.
find_package(nlohmann_json REQUIRED)
chunkio_add_unit_tests(
  pipeline_test ALONE "StageRatesTest.*"
  SOURCES unit/advice/bottleneck_test.cpp
          unit/chunkio/byte_source_test.cpp
          unit/chunkio/dlpack_test.cpp
          unit/advice/json_test.cpp
          unit/read/labels_test.cpp
          unit/read/loader_contents_test.cpp
          unit/read/loader_disk_limit_test.cpp
          unit/read/loader_resume_test.cpp
          unit/read/loader_state_test.cpp
          unit/read/loader_test.cpp
          unit/h5/shard_set_test.cpp
          unit/advice/stage_rates_test.cpp
          unit/base/option_names_test.cpp
          unit/write/chunk_verification_test.cpp
          unit/write/shard_link_test.cpp
          unit/write/verify_test.cpp
          unit/read/window_reader_fault_test.cpp
          unit/read/window_reader_resume_test.cpp
          unit/read/window_reader_test.cpp
  LIBRARIES nlohmann_json::nlohmann_json)
add_test(NAME ManyChunks.FourMillion COMMAND pipeline_test --gtest_filter=Counts/ManyChunks.*)
set_tests_properties(ManyChunks.FourMillion PROPERTIES LABELS long TIMEOUT 1800 ENVIRONMENT CHUNKIO_TEST_CHUNKS=4194304)

# It replaces malloc, and so do the sanitizers.
if(NOT CHUNKIO_SANITIZE)
  chunkio_add_unit_tests(memory_budget_test SOURCES fault/memory_budget_test.cpp)
endif()

# It replaces pread.
chunkio_add_unit_tests(read_faults_test SOURCES fault/read_faults_test.cpp)

# Batches in Python, by way of a shared library that exports them. Python itself has no sanitizers, so it could
# not load the library.
if(NOT CHUNKIO_SANITIZE)
  add_library(dlpack_exporter MODULE programs/dlpack_exporter.cpp)
  target_link_libraries(dlpack_exporter PRIVATE chunkio::chunkio chunkio_warnings)
  set(CHUNKIO_DLPACK_PYTHON "${CHUNKIO_H5PY_PYTHON}" CACHE FILEPATH "A Python 3 with h5py and a newer NumPy or PyTorch")
  foreach(case numpy_legacy numpy_versioned torch)
    set(python ${CHUNKIO_DLPACK_PYTHON})
    execute_process(COMMAND ${python} -c "import importlib.util, sys; sys.exit(not importlib.util.find_spec('torch'))"
                    RESULT_VARIABLE no_torch)
    if(case STREQUAL "numpy_legacy" OR (case STREQUAL "torch" AND no_torch))
      set(python ${CHUNKIO_H5PY_PYTHON})
    endif()
    add_test(NAME Dlpack.${case}
             COMMAND ${python} ${CMAKE_CURRENT_SOURCE_DIR}/scripts/dlpack_test.py
                     $<TARGET_FILE:dlpack_exporter> ${case})
    set_tests_properties(
      Dlpack.${case} PROPERTIES LABELS short TIMEOUT 120 SKIP_RETURN_CODE 77
                                FAIL_REGULAR_EXPRESSION "HDF5-DIAG" ENVIRONMENT PYTHONDONTWRITEBYTECODE=1)
  endforeach()
endif()

# chunkio/torch.hpp, linked like a consumer's program.
include(${PROJECT_SOURCE_DIR}/libchunkio/cmake/libtorch.cmake)
if(NOT CHUNKIO_LIBTORCH_FOUND)
  message(STATUS "${CHUNKIO_LIBTORCH_STATE}: chunkio/torch.hpp is not tested")
  chunkio_add_skipped_test(torch_test "${CHUNKIO_LIBTORCH_STATE}")
else()
  add_executable(torch_test unit/chunkio/torch_test.cpp)
  target_include_directories(torch_test PRIVATE ${CMAKE_CURRENT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/bench)
  target_link_libraries(torch_test PRIVATE chunkio::torch chunkio_warnings chunkio_libtorch
                                           GTest::gtest_main)
  gtest_discover_tests(
    torch_test DISCOVERY_MODE PRE_TEST
    PROPERTIES LABELS short FAIL_REGULAR_EXPRESSION "HDF5-DIAG" TIMEOUT 120)
endif()
