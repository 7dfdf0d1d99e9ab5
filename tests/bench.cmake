# Tests of what the programs in bench share.

chunkio_add_unit_tests(bench_test SOURCES unit/control_group_test.cpp LIBRARIES bench_common)
