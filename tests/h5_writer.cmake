# Tests of libchunkio/src/h5 and of the dataset writer.
chunkio_add_unit_tests(
  h5_test WITH_LONG
  SOURCES unit/chunk_index_test.cpp
          unit/dataset_test.cpp
          unit/h5_handle_test.cpp
          unit/hdf5_source_test.cpp
          fault/damaged_file_test.cpp)
chunkio_add_unit_tests(dataset_writer_test SOURCES unit/dataset_writer_test.cpp)
