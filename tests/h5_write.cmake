# Tests of libchunkio/src/h5 and of libchunkio/src/write.
chunkio_add_unit_tests(
  h5_test WITH_LONG
  SOURCES unit/h5/chunk_index_test.cpp
          unit/h5/chunk_tree_test.cpp
          unit/h5/dataset_foreign_test.cpp
          unit/h5/dataset_test.cpp
          unit/h5/deferred_writes_test.cpp
          unit/h5/handle_test.cpp
          unit/h5/sparse_matrix_test.cpp
          unit/sources/hdf5_source_test.cpp
          unit/harness/metered_driver_test.cpp
          fault/damaged_file_test.cpp
          # Of bench, which need not be built.
          ${PROJECT_SOURCE_DIR}/bench/harness/metered_driver.cpp)
chunkio_add_unit_tests(
  dataset_writer_test
  SOURCES unit/write/dataset_writer_filter_test.cpp
          unit/write/dataset_writer_output_test.cpp
          unit/write/dataset_writer_resume_test.cpp
          unit/write/dataset_writer_test.cpp
          unit/write/group_commit_test.cpp
          unit/write/sparse_writer_test.cpp
          unit/write/journal_test.cpp)

# A writer that is killed and hindered at every call.
add_executable(writer_child fault/writer_child.cpp)
target_link_libraries(writer_child PRIVATE chunkio::chunkio chunkio_warnings)
chunkio_add_python_tests(fault.write_faults fault/write_faults_test medium
                         ENVIRONMENT WRITER_CHILD=$<TARGET_FILE:writer_child>)
chunkio_add_python_tests(fault.write_faults_all fault/write_faults_test.EveryCallTest long TIMEOUT 1800
                         ENVIRONMENT WRITER_CHILD=$<TARGET_FILE:writer_child>)
