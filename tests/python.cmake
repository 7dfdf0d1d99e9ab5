# Tests of the Python package, each file of them a test of ctest. They need an interpreter with pytest, NumPy and h5py,
# for which the extension is built: tests/run.sh makes one.
if(NOT TARGET chunkio_python)
  chunkio_add_skipped_test(Python "CHUNKIO_BUILD_PYTHON is off; bash tests/run.sh turns it on")
  return()
endif()
execute_process(COMMAND ${Python_EXECUTABLE} -c "import h5py, numpy, pytest" RESULT_VARIABLE status
                OUTPUT_QUIET ERROR_QUIET)
if(NOT status EQUAL 0)
  chunkio_add_skipped_test(Python "${Python_EXECUTABLE} lacks pytest, NumPy or h5py")
  return()
endif()

set(python_environment PYTHONPATH=${PROJECT_BINARY_DIR}/libchunkio/python PYTHONDONTWRITEBYTECODE=1
                       ${opencv_environment})
if(CHUNKIO_SANITIZE)
  # The interpreter is not instrumented, so the runtime has to be there before it starts. What Python itself keeps until
  # its end is no leak of ours.
  if(CHUNKIO_SANITIZE MATCHES "thread")
    set(runtime libtsan.so)
  else()
    set(runtime libasan.so)
  endif()
  execute_process(COMMAND ${CMAKE_CXX_COMPILER} -print-file-name=${runtime} OUTPUT_VARIABLE runtime
                  OUTPUT_STRIP_TRAILING_WHITESPACE)
  execute_process(COMMAND ${CMAKE_CXX_COMPILER} -print-file-name=libstdc++.so OUTPUT_VARIABLE standard_library
                  OUTPUT_STRIP_TRAILING_WHITESPACE)
  list(APPEND python_environment "LD_PRELOAD=${runtime} ${standard_library}" ASAN_OPTIONS=detect_leaks=0
       CHUNKIO_SANITIZE=${CHUNKIO_SANITIZE})
endif()
# Files of which every test was skipped: others may have failed beside one that was.
set(python_all_skipped "\n[0-9]+ skipped(, [0-9]+ deselected)? in [0-9.]+s")
set(python_pytest ${Python_EXECUTABLE} -m pytest -q -p no:cacheprovider
                  $<$<TARGET_EXISTS:h5pack>:--h5pack=$<TARGET_FILE:h5pack>>)
set(python_tests dataset loader arrays sparse sparse_random tensor normalizer writer torch random_programs torch_cuda types wheel samples)
if(CHUNKIO_HAS_CODECS)
  list(APPEND python_tests encoded equal_to_others guide)
endif()
if(CHUNKIO_HAS_CURL)
  list(APPEND python_tests remote object_store)
endif()
foreach(name IN LISTS python_tests)
  add_test(
    NAME Python.${name}
    COMMAND ${python_pytest} -m "not long" ${CMAKE_CURRENT_SOURCE_DIR}/python/test_${name}.py
    COMMAND_EXPAND_LISTS)
  set_tests_properties(
    Python.${name}
    PROPERTIES LABELS short TIMEOUT 900 ENVIRONMENT "${python_environment}"
               SKIP_REGULAR_EXPRESSION "${python_all_skipped}" FAIL_REGULAR_EXPRESSION "HDF5-DIAG")
endforeach()
set_tests_properties(Python.torch_cuda PROPERTIES LABELS cuda RUN_SERIAL ON)  # it looks at free memory

# Samples for Lightning, Accelerate, Transformers, JAX and Ray, as far as these are installed.
add_test(
  NAME Python.samples_long
  COMMAND ${python_pytest} -m long ${CMAKE_CURRENT_SOURCE_DIR}/python/test_samples.py
  COMMAND_EXPAND_LISTS)
set_tests_properties(
  Python.samples_long
  PROPERTIES LABELS long TIMEOUT 1800 ENVIRONMENT "${python_environment}"
             SKIP_REGULAR_EXPRESSION "${python_all_skipped}" FAIL_REGULAR_EXPRESSION "HDF5-DIAG")

# It works; what it measures here means nothing.
if(TARGET h5pack)
  add_test(NAME Python.bench_loop
           COMMAND ${Python_EXECUTABLE} ${PROJECT_SOURCE_DIR}/bench/python_loop.py
                   ${CMAKE_CURRENT_SOURCE_DIR}/golden/format/v2.h5 --h5pack $<TARGET_FILE:h5pack> --rounds 1)
  set_tests_properties(Python.bench_loop PROPERTIES LABELS short TIMEOUT 300 ENVIRONMENT "${python_environment}")
endif()
