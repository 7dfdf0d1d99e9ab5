# Tests of what is cut out of images.
find_package(nlohmann_json REQUIRED)
chunkio_add_unit_tests(image_test SOURCES unit/image/resized_crop_test.cpp LIBRARIES nlohmann_json::nlohmann_json)
