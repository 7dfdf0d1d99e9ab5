# Tests of what the programs in bench share.

chunkio_add_unit_tests(
  bench_test
  SOURCES unit/harness/cold_file_test.cpp unit/harness/control_group_test.cpp unit/harness/h5dread_baseline_test.cpp
  LIBRARIES bench_harness chunkio_hdf5)

# The figures of the documentation are those of the tables in bench/RESULTS.md.
chunkio_add_python_tests(Bench.FiguresShowTheTables ${PROJECT_SOURCE_DIR}/bench/charts/draw_test short TIMEOUT 60)

if(TARGET ladder)
  chunkio_add_unit_tests(ladder_test SOURCES unit/ladder/variants_test.cpp LIBRARIES ladder_core)
  chunkio_add_cli_tests(medium ladder)
endif()
