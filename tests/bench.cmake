# Tests of what the programs in bench share.

chunkio_add_unit_tests(
  bench_test
  SOURCES unit/cold_file_test.cpp unit/control_group_test.cpp unit/one_by_one_test.cpp
  LIBRARIES bench_common chunkio_hdf5)

# The figures of the documentation are those of the tables in bench/RESULTS.md.
add_test(NAME Bench.FiguresShowTheTables
         COMMAND Python3::Interpreter ${PROJECT_SOURCE_DIR}/bench/figures/draw_test.py)
set_tests_properties(Bench.FiguresShowTheTables PROPERTIES LABELS short TIMEOUT 60
                                                           ENVIRONMENT PYTHONDONTWRITEBYTECODE=1)

if(TARGET story)
  chunkio_add_unit_tests(story_test SOURCES unit/rungs_test.cpp LIBRARIES story_core)

  add_test(NAME cli.story COMMAND ${CHUNKIO_H5PY_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/cli/story_test.py)
  set_tests_properties(
    cli.story
    PROPERTIES LABELS medium TIMEOUT 600 FAIL_REGULAR_EXPRESSION "HDF5-DIAG"
               ENVIRONMENT
               "STORY=$<TARGET_FILE:story>;CHUNKBENCH=$<TARGET_FILE:chunkbench>;PYTHONDONTWRITEBYTECODE=1;${opencv_environment}")
endif()
