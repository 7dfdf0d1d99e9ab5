# Tests of what the programs in bench share.

chunkio_add_unit_tests(
  bench_test
  SOURCES unit/harness/cold_file_test.cpp unit/harness/control_group_test.cpp unit/harness/h5dread_baseline_test.cpp
  LIBRARIES bench_harness chunkio_hdf5)

# The figures of the documentation are those of the tables in bench/RESULTS.md.
add_test(NAME Bench.FiguresShowTheTables
         COMMAND Python3::Interpreter ${PROJECT_SOURCE_DIR}/bench/charts/draw_test.py)
set_tests_properties(Bench.FiguresShowTheTables PROPERTIES LABELS short TIMEOUT 60
                                                           ENVIRONMENT PYTHONDONTWRITEBYTECODE=1)

if(TARGET ladder)
  chunkio_add_unit_tests(ladder_test SOURCES unit/ladder/variants_test.cpp LIBRARIES ladder_core)

  add_test(NAME cli.ladder COMMAND ${CHUNKIO_H5PY_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/cli/ladder_test.py)
  set_tests_properties(
    cli.ladder
    PROPERTIES LABELS medium TIMEOUT 600 FAIL_REGULAR_EXPRESSION "HDF5-DIAG"
               ENVIRONMENT
               "LADDER=$<TARGET_FILE:ladder>;CHUNKBENCH=$<TARGET_FILE:chunkbench>;PYTHONDONTWRITEBYTECODE=1;${opencv_environment}")
endif()
