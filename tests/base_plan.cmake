# Tests of base (random numbers, arithmetic, shapes) and plan (the order of an epoch, chunk layout).
find_package(nlohmann_json REQUIRED)

chunkio_add_unit_tests(
  base_plan_test
  SOURCES
  unit/cache_simulator_test.cpp
  unit/checked_math_test.cpp
  unit/chunk_layout_test.cpp
  unit/disk_limit_test.cpp
  unit/epoch_order_test.cpp
  unit/epoch_rows_test.cpp
  unit/keyed_permutation_test.cpp
  unit/philox_test.cpp
  unit/plan_cost_test.cpp
  unit/ranks_test.cpp
  unit/row_groups_test.cpp
  unit/shape_test.cpp
  unit/shard_names_test.cpp
  unit/throughput_model_test.cpp
  unit/tuning_test.cpp
  unit/window_plan_test.cpp
  property/epoch_order_property_test.cpp
  LIBRARIES
  GTest::gmock
  nlohmann_json::nlohmann_json)

# The vectors the tests above compare with are what the reference makes.
add_test(NAME epoch_order_reference
         COMMAND ${CHUNKIO_H5PY_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/support/epoch_order_reference.py
                 --check ${CMAKE_CURRENT_SOURCE_DIR}/golden/epoch_order)
set_tests_properties(epoch_order_reference PROPERTIES LABELS short TIMEOUT 300)
