# Tests of libchunkio/src/h5 and of the dataset writer.
chunkio_add_unit_tests(
  h5_test WITH_LONG
  SOURCES unit/h5/chunk_index_test.cpp
          unit/h5/dataset_foreign_test.cpp
          unit/h5/dataset_test.cpp
          unit/h5/deferred_writes_test.cpp
          unit/h5/handle_test.cpp
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
          unit/write/journal_test.cpp)

# A writer that is killed and hindered at every call.
add_executable(writer_child fault/writer_child.cpp)
target_link_libraries(writer_child PRIVATE chunkio::chunkio chunkio_warnings)
set(write_faults ${CHUNKIO_H5PY_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/fault/write_faults_test.py)
add_test(NAME fault.write_faults COMMAND ${write_faults})
add_test(NAME fault.write_faults_all COMMAND ${write_faults} EveryCallTest)
set_tests_properties(
  fault.write_faults fault.write_faults_all
  PROPERTIES FAIL_REGULAR_EXPRESSION "HDF5-DIAG"
             ENVIRONMENT "WRITER_CHILD=$<TARGET_FILE:writer_child>;CHUNKIO_SANITIZE=${CHUNKIO_SANITIZE};PYTHONDONTWRITEBYTECODE=1;PYTHONPATH=${CMAKE_CURRENT_SOURCE_DIR}/scripts")
set_tests_properties(fault.write_faults PROPERTIES LABELS medium TIMEOUT 600)
set_tests_properties(fault.write_faults_all PROPERTIES LABELS long TIMEOUT 1800)
