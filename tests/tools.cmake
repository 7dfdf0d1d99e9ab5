# Tests of h5pack.

chunkio_add_cli_tests(short info preview reference)
chunkio_add_cli_tests(medium append arrays bad_input csr csr_append csr_faults csr_hdf5 doctor export golden help hostile interrupted matrix_export pack program ranks repack resume shard skip sparse stream tune verify)
if(CHUNKIO_HAS_CODECS)
  chunkio_add_cli_tests(medium encoded encoded_append encoded_faults encoded_repack)
endif()

if(CHUNKIO_HAS_CURL)
  chunkio_add_cli_tests(medium object_store remote remote_cache remote_index)
  chunkio_add_cli_tests(long remote_faults)
endif()

# Signals while libhdf5 does not return, by a library that is loaded before it.
if(CHUNKIO_HDF5 STREQUAL "bundled")
  chunkio_add_skipped_test(cli.stop "libhdf5 is part of h5pack")
else()
  add_library(endless_hdf5 MODULE programs/endless_hdf5.cpp)
  target_link_libraries(endless_hdf5 PRIVATE chunkio_warnings)
  chunkio_add_cli_tests(medium stop)
  set_property(TEST cli.stop APPEND PROPERTY ENVIRONMENT "ENDLESS_HDF5=$<TARGET_FILE:endless_hdf5>")
endif()

chunkio_add_python_tests(cli.interrupted_long cli/interrupted_test long TIMEOUT 3600
                         ENVIRONMENT ${program_files} CHUNKIO_TEST_ROUNDS=200)
chunkio_add_python_tests(cli.flipped_bits_long cli/verify_test.FlippedBitTest long
                         ENVIRONMENT ${program_files} CHUNKIO_TEST_ROUNDS=400)
chunkio_add_cli_tests(long csr_large kill)
set_tests_properties(cli.kill PROPERTIES TIMEOUT 5400)

chunkio_add_unit_tests(
  h5pack_cli_test
  SOURCES unit/cli/byte_size_test.cpp
          unit/cli/chunk_filter_test.cpp
          unit/h5pack/dataset/class_labels_test.cpp
          unit/cli/disk_options_test.cpp
          unit/cli/escape_test.cpp
          unit/cli/help_test.cpp
          unit/cli/option_flags_test.cpp
          unit/cli/progress_test.cpp
          unit/h5pack/pack/repack_rows_test.cpp
          unit/cli/image_shape_test.cpp
          unit/cli/row_list_test.cpp
          unit/cli/stop_signal_test.cpp
          unit/h5pack/dataset/selected_field_test.cpp
          unit/h5pack/dataset/shuffle_quality_test.cpp
          unit/h5pack/report/stream_text_test.cpp
  LIBRARIES h5pack_core)

# White-box tests of decoding, sources and packing.
chunkio_add_unit_tests(
  h5pack_pack_test
  SOURCES unit/h5pack/sources/celeba_source_test.cpp
          unit/h5pack/pack/chunk_assembler_test.cpp
          unit/h5pack/pack/chunk_record_test.cpp
          unit/h5pack/pack/row_order_test.cpp
          unit/h5pack/sources/cifar_source_test.cpp
          unit/h5pack/sources/csv_source_test.cpp
          unit/h5pack/image/decode_test.cpp
          unit/h5pack/sources/folder_source_test.cpp
          unit/h5pack/pack/packer_test.cpp
          unit/h5pack/image/jpeg_encoder_test.cpp
          unit/h5pack/image/jpeg_limiter_test.cpp
          unit/h5pack/image/orientation_test.cpp
          unit/h5pack/image/transform_test.cpp
          unit/base/pixel_statistics_test.cpp
  LIBRARIES h5pack_core
  ENVIRONMENT ${opencv_environment})

# Where h5pack, too, finds the module with OpenCV's codecs.
set_target_properties(h5pack_cli_test h5pack_pack_test
                      PROPERTIES BUILD_RPATH "$<TARGET_FILE_DIR:h5pack_codecs>")
add_dependencies(h5pack_cli_test h5pack_codecs)
add_dependencies(h5pack_pack_test h5pack_codecs)
