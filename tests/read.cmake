# Tests of libchunkio/src/read, of the advice and of verification.
find_package(nlohmann_json REQUIRED)
chunkio_add_unit_tests(
  read_test ALONE "StageRatesTest.*"
  SOURCES unit/advice/bottleneck_test.cpp
          unit/chunkio/byte_source_test.cpp
          unit/chunkio/dlpack_test.cpp
          unit/advice/json_test.cpp
          unit/read/labels_test.cpp
          unit/read/loader_arrays_test.cpp
          unit/read/loader_contents_test.cpp
          unit/read/loader_disk_limit_test.cpp
          unit/read/loader_resume_test.cpp
          unit/read/loader_small_chunks_test.cpp
          unit/read/loader_sparse_test.cpp
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
# Images that are stored encoded.
if(CHUNKIO_HAS_CODECS)
  chunkio_add_unit_tests(
    encoded_test
    SOURCES unit/read/loader_encoded_test.cpp unit/write/encoded_writer_test.cpp
    LIBRARIES chunkio_libdeflate)
endif()
add_test(NAME ManyChunks.FourMillion COMMAND read_test --gtest_filter=Counts/ManyChunks.*)
set_tests_properties(ManyChunks.FourMillion PROPERTIES LABELS long TIMEOUT 1800 ENVIRONMENT CHUNKIO_TEST_CHUNKS=4194304)

# It replaces malloc, and so do the sanitizers.
if(NOT CHUNKIO_SANITIZE)
  chunkio_add_unit_tests(memory_budget_test SOURCES fault/memory_budget_test.cpp)
endif()

# It replaces pread.
chunkio_add_unit_tests(read_faults_test SOURCES fault/read_faults_test.cpp)

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
