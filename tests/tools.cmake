# Tests of h5pack.

# The program as a person meets it: each file runs h5pack and looks at what it leaves and says.
function(h5pack_add_cli_tests label)
  foreach(name IN LISTS ARGN)
    add_test(NAME cli.${name} COMMAND ${CHUNKIO_H5PY_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/cli/${name}_test.py)
    set_tests_properties(
      cli.${name}
      PROPERTIES LABELS ${label} TIMEOUT 600 FAIL_REGULAR_EXPRESSION "HDF5-DIAG"
                 ENVIRONMENT
                 "H5PACK=$<TARGET_FILE:h5pack>;CHUNKIO_SANITIZE=${CHUNKIO_SANITIZE};PYTHONDONTWRITEBYTECODE=1;PYTHONPATH=${CMAKE_CURRENT_SOURCE_DIR}/scripts;${opencv_environment}")
  endforeach()
endfunction()
h5pack_add_cli_tests(short info preview reference)
h5pack_add_cli_tests(medium append bad_input doctor export golden help hostile interrupted pack program ranks repack resume shard skip stream tune verify)

# Signals while libhdf5 does not return, by a library that is loaded before it.
add_library(endless_hdf5 MODULE programs/endless_hdf5.cpp)
target_link_libraries(endless_hdf5 PRIVATE chunkio_warnings)
h5pack_add_cli_tests(medium stop)
set_property(TEST cli.stop APPEND PROPERTY ENVIRONMENT "ENDLESS_HDF5=$<TARGET_FILE:endless_hdf5>")

add_test(NAME cli.interrupted_long
         COMMAND ${CHUNKIO_H5PY_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/cli/interrupted_test.py)
set_tests_properties(
  cli.interrupted_long
  PROPERTIES LABELS long TIMEOUT 3600 FAIL_REGULAR_EXPRESSION "HDF5-DIAG"
             ENVIRONMENT
             "H5PACK=$<TARGET_FILE:h5pack>;CHUNKIO_TEST_ROUNDS=200;PYTHONDONTWRITEBYTECODE=1;PYTHONPATH=${CMAKE_CURRENT_SOURCE_DIR}/scripts;${opencv_environment}")
add_test(NAME cli.flipped_bits_long
         COMMAND ${CHUNKIO_H5PY_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/cli/verify_test.py FlippedBitTest)
get_test_property(cli.verify ENVIRONMENT verify_environment)
set_tests_properties(
  cli.flipped_bits_long PROPERTIES LABELS long TIMEOUT 600 ENVIRONMENT
                                   "${verify_environment};CHUNKIO_TEST_ROUNDS=400")
h5pack_add_cli_tests(long kill)
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
