# Tests of chunk sources and of what they use of base.
chunkio_add_unit_tests(
  io_test
  SOURCES unit/io/source_conformance_test.cpp
          unit/io/direct_ahead_test.cpp
          unit/io/direct_source_test.cpp
          unit/io/disk_limiter_test.cpp
          unit/io/fault_guard_test.cpp
          unit/h5/filters_test.cpp
          unit/base/host_memory_test.cpp
          unit/io/throttled_source_test.cpp
          unit/io/page_cache_test.cpp
          unit/base/positional_io_test.cpp
          unit/io/range_reader_test.cpp
          unit/io/range_writer_test.cpp
          unit/io/read_ahead_test.cpp
          unit/io/resident_source_test.cpp
          unit/io/row_part_test.cpp
          unit/io/row_sweep_test.cpp
          unit/base/scratch_pool_test.cpp
          unit/io/source_select_test.cpp
          unit/base/streaming_copy_test.cpp
          unit/io/trial_source_test.cpp
          unit/io/trial_test.cpp
          unit/io/verifying_source_test.cpp)
