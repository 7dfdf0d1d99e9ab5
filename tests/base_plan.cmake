# Tests of base (random numbers, arithmetic, shapes) and plan (the order of an epoch, chunk layout).
find_package(nlohmann_json REQUIRED)

chunkio_add_unit_tests(
  base_plan_test WITH_LONG
  SOURCES
  unit/plan/cache_simulator_test.cpp
  unit/base/checked_math_test.cpp
  unit/plan/chunk_layout_test.cpp
  unit/plan/disk_limit_test.cpp
  unit/plan/epoch_order_test.cpp
  unit/plan/epoch_rows_test.cpp
  unit/base/keyed_permutation_test.cpp
  unit/base/philox_test.cpp
  unit/plan/window_plan_cost_test.cpp
  unit/base/ranks_test.cpp
  unit/plan/group_samples_test.cpp
  unit/plan/ring_slots_test.cpp
  unit/plan/row_groups_test.cpp
  unit/base/run_on_threads_test.cpp
  unit/base/dtype_test.cpp
  unit/base/shard_names_test.cpp
  unit/advice/chunking_advice_test.cpp
  unit/advice/throughput_model_test.cpp
  unit/advice/tuning_test.cpp
  unit/plan/window_plan_test.cpp
  property/epoch_order_property_test.cpp
  LIBRARIES
  GTest::gmock
  nlohmann_json::nlohmann_json)

# The vectors the tests above compare with are what the reference makes.
add_test(NAME epoch_order_reference
         COMMAND ${CHUNKIO_H5PY_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/scripts/epoch_order_reference.py
                 --check ${CMAKE_CURRENT_SOURCE_DIR}/golden/epoch_order)
set_tests_properties(epoch_order_reference PROPERTIES LABELS short TIMEOUT 300)
