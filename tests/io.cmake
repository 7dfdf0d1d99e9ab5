# Tests of chunk sources and of what they use of base.
chunkio_add_unit_tests(
  io_test
  SOURCES unit/sources/source_conformance_test.cpp
          unit/io/blocks_ahead_test.cpp
          unit/sources/direct_source_test.cpp
          unit/h5/decompressor_test.cpp
          unit/io/claimed_ranges_test.cpp
          unit/io/disk_cache_test.cpp
          unit/io/disk_limiter_test.cpp
          unit/io/fault_guard_test.cpp
          unit/h5/filters_test.cpp
          unit/h5/probe_test.cpp
          unit/base/host_memory_test.cpp
          unit/io/simulated_disk_test.cpp
          unit/sources/mapped_source_test.cpp
          unit/io/merged_ranges_test.cpp
          unit/io/object_address_test.cpp
          unit/io/page_cache_test.cpp
          unit/base/positional_io_test.cpp
          unit/io/range_reader_test.cpp
          unit/io/range_writer_test.cpp
          unit/io/read_ahead_test.cpp
          unit/io/remote_index_test.cpp
          unit/sources/resident_source_test.cpp
          unit/sources/row_part_test.cpp
          unit/sources/row_sweep_test.cpp
          unit/base/scratch_pool_test.cpp
          unit/sources/source_select_test.cpp
          unit/base/streaming_copy_test.cpp
          unit/sources/trial_source_test.cpp
          unit/sources/trial_test.cpp
          unit/io/usual_time_test.cpp
          unit/sources/verifying_source_test.cpp
  LIBRARIES chunkio_libdeflate chunkio_filters)
set_source_files_properties(unit/h5/decompressor_test.cpp PROPERTIES COMPILE_DEFINITIONS
                                                                     "${CHUNKIO_FILTER_DEFINITIONS}")
set_source_files_properties(unit/h5/probe_test.cpp PROPERTIES COMPILE_DEFINITIONS
                                                              "CHUNKIO_PROBE=\"$<TARGET_FILE:chunkio_probe>\"")
add_dependencies(io_test chunkio_probe)
