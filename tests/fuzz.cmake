# Fuzzing (tests/fuzz). With clang and CHUNKIO_FUZZ libFuzzer drives the programs, for as long as one likes; without, some
# changes of each seed are part of the tests.

add_custom_target(fuzz)

set(fuzz_seeds ${CMAKE_CURRENT_BINARY_DIR}/fuzz-seeds)
add_test(NAME Fuzz.Seeds COMMAND ${CHUNKIO_H5PY_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/fuzz/make_seeds.py ${fuzz_seeds})
set_tests_properties(Fuzz.Seeds PROPERTIES LABELS short TIMEOUT 60 FIXTURES_SETUP fuzz_seeds
                                           ENVIRONMENT PYTHONDONTWRITEBYTECODE=1)

# RUNS of the test; 0: there is none.
function(chunkio_add_fuzzing name runs)
  add_executable(${name}_fuzz fuzz/${name}_target.cpp fuzz/mutation.cpp)
  chunkio_configure_tests(${name}_fuzz)
  target_link_libraries(${name}_fuzz PRIVATE ${ARGN})
  add_dependencies(fuzz ${name}_fuzz)
  if(CHUNKIO_FUZZ)
    target_sources(${name}_fuzz PRIVATE fuzz/libfuzzer.cpp)
    target_link_options(${name}_fuzz PRIVATE -fsanitize=fuzzer)
    return()
  endif()
  target_sources(${name}_fuzz PRIVATE fuzz/driver.cpp)
  if(runs EQUAL 0)
    return()
  endif()
  add_test(NAME Fuzz.${name} COMMAND ${name}_fuzz ${runs} ${fuzz_seeds}/${name} ${CMAKE_CURRENT_SOURCE_DIR}/fuzz/findings/${name})
  set_tests_properties(Fuzz.${name} PROPERTIES LABELS short TIMEOUT 300 FIXTURES_REQUIRED fuzz_seeds)
endfunction()

chunkio_add_fuzzing(filters 20000)
chunkio_add_fuzzing(tree 5000)
chunkio_add_fuzzing(images 5000)
chunkio_add_fuzzing(records 5000)
if(TARGET h5pack_core)
  chunkio_add_fuzzing(text 3000 h5pack_core)
endif()
# libhdf5 before 1.14 crashes on many damaged files (decision 045), and its crashes are not ours to find.
if(NOT CHUNKIO_HDF5_VERSION)
  message(FATAL_ERROR "The version of libhdf5 is not known.")
elseif(CHUNKIO_HDF5_VERSION VERSION_LESS 1.14)
  chunkio_add_fuzzing(open 0)
else()
  chunkio_add_fuzzing(open 2000)
endif()
