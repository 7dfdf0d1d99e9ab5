# Tests of chunkbench.

chunkio_add_unit_tests(
  chunkbench_test
  SOURCES unit/chunkbench/cells_test.cpp
          unit/chunkbench/confined_test.cpp
          unit/chunkbench/number_format_test.cpp
          unit/chunkbench/pruning_test.cpp
          unit/chunkbench/results_test.cpp
          unit/chunkbench/verdict_test.cpp
  LIBRARIES chunkbench_core GTest::gmock)

# The program as a person meets it.
foreach(name chunkbench_confine chunkbench_report chunkbench_sweep)
  add_test(NAME cli.${name} COMMAND ${CHUNKIO_H5PY_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/cli/${name}_test.py)
  set_tests_properties(
    cli.${name}
    PROPERTIES LABELS medium TIMEOUT 600 FAIL_REGULAR_EXPRESSION "HDF5-DIAG"
               ENVIRONMENT
               "CHUNKBENCH=$<TARGET_FILE:chunkbench>;H5PACK=$<TARGET_FILE:h5pack>;CHUNKIO_SANITIZE=${CHUNKIO_SANITIZE};PYTHONDONTWRITEBYTECODE=1;PYTHONPATH=${CMAKE_CURRENT_SOURCE_DIR}/scripts;${opencv_environment}")
endforeach()
