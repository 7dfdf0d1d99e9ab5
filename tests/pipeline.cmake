# Tests of chunk sources, ring, windows in flight and Loader, and of what they use of base.
chunkio_add_unit_tests(
  pipeline_test
  SOURCES unit/chunk_source_test.cpp
          unit/fault_guard_test.cpp
          unit/host_memory_test.cpp
          unit/loader_test.cpp
          unit/positional_io_test.cpp
          unit/streaming_copy_test.cpp
          unit/window_reader_test.cpp)
