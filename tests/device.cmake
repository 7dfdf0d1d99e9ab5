# Tests of what becomes of pictures after they were read.
find_package(nlohmann_json REQUIRED)
chunkio_add_unit_tests(
  device_test
  SOURCES unit/augmentation_test.cpp unit/line_converter_test.cpp unit/normalizer_test.cpp
          unit/thread_team_test.cpp
  LIBRARIES nlohmann_json::nlohmann_json)
