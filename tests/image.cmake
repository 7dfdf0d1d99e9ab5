# Tests of what is cut out of images, and of resizing them in the bits of Pillow.
find_package(nlohmann_json REQUIRED)
chunkio_add_unit_tests(
  image_test
  SOURCES unit/image/resize_test.cpp unit/image/resized_crop_test.cpp
  LIBRARIES nlohmann_json::nlohmann_json chunkio_libdeflate)

# The digests that these compare with are Pillow's.
add_test(NAME resize_reference
         COMMAND ${CHUNKIO_H5PY_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/scripts/resize_reference.py
                 --check ${CMAKE_CURRENT_SOURCE_DIR}/golden/resize/digests.json)
set_tests_properties(resize_reference PROPERTIES LABELS short TIMEOUT 300)

add_executable(resize_cases programs/resize_cases.cpp)
target_include_directories(resize_cases PRIVATE ${PROJECT_SOURCE_DIR}/libchunkio/src ${PROJECT_SOURCE_DIR}/tests)
target_link_libraries(resize_cases PRIVATE chunkio_core chunkio_warnings nlohmann_json::nlohmann_json Threads::Threads)
chunkio_add_python_tests(Image.ResizesEqualPillow scripts/resize_test short
                         ENVIRONMENT RESIZE_CASES=$<TARGET_FILE:resize_cases>)

if(CHUNKIO_HAS_CODECS)
  add_executable(decode_cases programs/decode_cases.cpp)
  target_include_directories(decode_cases PRIVATE ${PROJECT_SOURCE_DIR}/libchunkio/src ${PROJECT_SOURCE_DIR}/tests)
  target_link_libraries(decode_cases PRIVATE chunkio_core chunkio_warnings nlohmann_json::nlohmann_json Threads::Threads)
  chunkio_add_python_tests(Image.DecodesAsPillow scripts/decode_test short
                           ENVIRONMENT DECODE_CASES=$<TARGET_FILE:decode_cases>)
endif()
