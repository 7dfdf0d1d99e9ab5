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

chunkio_add_cli_tests(medium chunkbench_confine chunkbench_report chunkbench_sweep)
