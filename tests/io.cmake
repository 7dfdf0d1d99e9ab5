# Tests of chunk sources and of what they use of base.
chunkio_add_unit_tests(
  io_test
  SOURCES unit/chunk_source_test.cpp
          unit/direct_ahead_test.cpp
          unit/direct_source_test.cpp
          unit/disk_limiter_test.cpp
          unit/fault_guard_test.cpp
          unit/filters_test.cpp
          unit/host_memory_test.cpp
          unit/limited_source_test.cpp
          unit/page_cache_test.cpp
          unit/positional_io_test.cpp
          unit/range_reader_test.cpp
          unit/range_writer_test.cpp
          unit/read_ahead_test.cpp
          unit/resident_source_test.cpp
          unit/row_part_test.cpp
          unit/row_sweep_test.cpp
          unit/scratch_pool_test.cpp
          unit/source_select_test.cpp
          unit/streaming_copy_test.cpp
          unit/trial_source_test.cpp
          unit/trial_test.cpp
          unit/verifying_source_test.cpp)
