# Tests of ring, windows in flight and Loader.
find_package(nlohmann_json REQUIRED)
chunkio_add_unit_tests(
  pipeline_test
  SOURCES unit/bottleneck_test.cpp
          unit/loader_contents_test.cpp
          unit/loader_resume_test.cpp
          unit/loader_state_test.cpp
          unit/loader_test.cpp
          unit/shards_test.cpp
          unit/verify_test.cpp
          unit/window_reader_fault_test.cpp
          unit/window_reader_resume_test.cpp
          unit/window_reader_test.cpp
  LIBRARIES nlohmann_json::nlohmann_json)

# It replaces malloc, and so do the sanitizers.
if(NOT CHUNKIO_SANITIZE)
  chunkio_add_unit_tests(memory_budget_test SOURCES fault/memory_budget_test.cpp)
endif()

# It replaces pread.
chunkio_add_unit_tests(read_faults_test SOURCES fault/read_faults_test.cpp)
