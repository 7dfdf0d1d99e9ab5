# The repository as a whole: layers, public headers, installation, the quick start, programs in bench.

add_test(NAME Repository.LayersPointOneWay
         COMMAND Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/scripts/layer_check.py
                 ${PROJECT_SOURCE_DIR})
add_test(NAME Repository.TreeIsTidy
         COMMAND Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/scripts/tree_check.py
                 ${PROJECT_SOURCE_DIR})
set_tests_properties(
  Repository.LayersPointOneWay Repository.TreeIsTidy
  PROPERTIES LABELS short TIMEOUT 60 ENVIRONMENT PYTHONDONTWRITEBYTECODE=1)

chunkio_add_python_tests(Repository.LayerCheckFindsWrongIncludes scripts/layer_check_test short TIMEOUT 60)

add_test(NAME Repository.EveryPublicHeaderCompilesAlone
         COMMAND ${CMAKE_COMMAND} --build ${PROJECT_BINARY_DIR} --target
                 chunkio_verify_interface_header_sets)
set_tests_properties(Repository.EveryPublicHeaderCompilesAlone
                     PROPERTIES LABELS short TIMEOUT 300 RESOURCE_LOCK build_tree)

chunkio_add_python_tests(Repository.HeadersWithoutAnExampleAreFound scripts/header_examples_test short TIMEOUT 60)
# The examples at the head of the public headers of LIBRARY, compiled. They make variables for their reader, so they are
# compiled without further warnings.
function(chunkio_add_header_examples test library)
  get_target_property(headers ${library} HEADER_SET)
  list(FILTER headers EXCLUDE REGEX "/export.hpp$")
  set(script ${CMAKE_CURRENT_SOURCE_DIR}/scripts/header_examples.py)
  set(target ${library}_header_examples)
  add_custom_command(
    OUTPUT ${target}.cpp
    COMMAND Python3::Interpreter ${script} ${target}.cpp ${PROJECT_SOURCE_DIR}/libchunkio/include ${headers}
    DEPENDS ${script} ${headers}
    VERBATIM)
  add_library(${target} OBJECT EXCLUDE_FROM_ALL ${CMAKE_CURRENT_BINARY_DIR}/${target}.cpp)
  target_include_directories(${target} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
  target_link_libraries(${target} PRIVATE ${library} ${ARGN})
  set_target_properties(${target} PROPERTIES COMPILE_WARNING_AS_ERROR ${CHUNKIO_WERROR})
  add_test(NAME ${test} COMMAND ${CMAKE_COMMAND} --build ${PROJECT_BINARY_DIR} --target ${target})
  set_tests_properties(${test} PROPERTIES LABELS short TIMEOUT 300 RESOURCE_LOCK build_tree)
endfunction()
chunkio_add_header_examples(Repository.ExamplesOfPublicHeadersCompile chunkio)
if(CHUNKIO_LIBTORCH_FOUND)
  chunkio_add_header_examples(Repository.ExamplesOfTorchHeadersCompile chunkio_torch chunkio_libtorch)
else()
  chunkio_add_skipped_test(Repository.ExamplesOfTorchHeadersCompile "${CHUNKIO_LIBTORCH_STATE}")
endif()

chunkio_add_python_tests(Repository.WhatIsNotThereIsSkippedWithAReason scripts/run_test short TIMEOUT 300
                         ENVIRONMENT CTEST=${CMAKE_CTEST_COMMAND})

# The preset with which README installs the library needs no package of the tests. (Without Python there is no h5py.)
add_test(NAME Repository.ReleasePresetNeedsNoTestPackage
         COMMAND ${CMAKE_COMMAND} -S ${PROJECT_SOURCE_DIR} --preset release --fresh
                 -B ${CMAKE_CURRENT_BINARY_DIR}/release -DCMAKE_CXX_COMPILER=${CMAKE_CXX_COMPILER}
                 -DCHUNKIO_WITH_CUDA=OFF -DCMAKE_DISABLE_FIND_PACKAGE_GTest=ON
                 -DCMAKE_DISABLE_FIND_PACKAGE_Python3=ON)
set_tests_properties(Repository.ReleasePresetNeedsNoTestPackage PROPERTIES LABELS short TIMEOUT 120)

# Linked like a consumer's program, to the library and not to its objects.
add_executable(public_api_test unit/chunkio/chunkio_test.cpp)
target_link_libraries(public_api_test PRIVATE chunkio::chunkio chunkio_warnings GTest::gtest_main)
gtest_discover_tests(
  public_api_test DISCOVERY_MODE PRE_TEST
  PROPERTIES LABELS short FAIL_REGULAR_EXPRESSION "HDF5-DIAG" TIMEOUT 60)

# Consumers of an installation: of this build, and of a library of the other kind (shared or static).
set(consumer_command
    ${CMAKE_COMMAND} -DCONSUMER=${CMAKE_CURRENT_SOURCE_DIR}/consumer -DGUIDE=${PROJECT_SOURCE_DIR}/samples/cpp
    -DGENERATOR=${CMAKE_GENERATOR} -DCOMPILER=${CMAKE_CXX_COMPILER} -DLAUNCHER=${CMAKE_CXX_COMPILER_LAUNCHER})
set(consumer_script ${CMAKE_CURRENT_SOURCE_DIR}/scripts/consumer_test.cmake)
set(consumer_flags "")
if(CHUNKIO_SANITIZE)
  set(consumer_flags -fsanitize=${CHUNKIO_SANITIZE})
endif()
add_test(NAME Repository.ConsumerOfThisBuild
         COMMAND ${consumer_command} -DBUILD=${PROJECT_BINARY_DIR} -DFLAGS=${consumer_flags}
                 -DSCRATCH=${CMAKE_CURRENT_BINARY_DIR}/consumer -P ${consumer_script})
if(BUILD_SHARED_LIBS)
  set(other_kind static)
  set(other_shared OFF)
else()
  set(other_kind shared)
  set(other_shared ON)
endif()
add_test(NAME Repository.ConsumerOfAnotherBuild
         COMMAND ${consumer_command} -DSOURCE=${PROJECT_SOURCE_DIR} -DSHARED=${other_shared}
                 -DBUILD=${CMAKE_CURRENT_BINARY_DIR}/${other_kind} -DFLAGS=
                 -DSCRATCH=${CMAKE_CURRENT_BINARY_DIR}/consumer_${other_kind} -P ${consumer_script})
set_tests_properties(Repository.ConsumerOfThisBuild PROPERTIES LABELS medium TIMEOUT 600 FIXTURES_SETUP installation
                                                               RESOURCE_LOCK build_tree)
set_tests_properties(Repository.ConsumerOfAnotherBuild PROPERTIES LABELS medium TIMEOUT 900)

# The programs of the C++ guide: with a third-party file and as one process of two, and with LibTorch, as its reader
# builds it.
if(TARGET chunkio-guide)
  set(guide_folder ${CMAKE_CURRENT_BINARY_DIR}/guide)
  file(MAKE_DIRECTORY ${guide_folder})
  add_test(NAME Samples.ThirdPartyFile
           COMMAND ${CHUNKIO_H5PY_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/scripts/make_foreign_file.py scans
                   ${guide_folder}/scans.h5)
  add_test(NAME Samples.SparseFile
           COMMAND ${CHUNKIO_H5PY_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/scripts/make_sparse_file.py anndata
                   ${guide_folder}/cells.h5ad)
  set(guide_files scans.h5 cells.h5ad)
  set_tests_properties(Samples.SparseFile PROPERTIES LABELS short FIXTURES_SETUP third_party_file)
  if(CHUNKIO_HAS_CODECS)
    add_test(NAME Samples.EncodedFile
             COMMAND ${CHUNKIO_H5PY_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/scripts/make_encoded_file.py
                     ${guide_folder}/photos.h5)
    set_tests_properties(Samples.EncodedFile PROPERTIES LABELS short FIXTURES_SETUP third_party_file)
    list(APPEND guide_files photos.h5)
  endif()
  add_test(NAME Samples.Guide COMMAND chunkio-guide ${guide_files} WORKING_DIRECTORY ${guide_folder})
  set_tests_properties(Samples.ThirdPartyFile PROPERTIES LABELS short FIXTURES_SETUP third_party_file)
  set_tests_properties(
    Samples.Guide PROPERTIES LABELS short TIMEOUT 60 FIXTURES_REQUIRED third_party_file
                             ENVIRONMENT "RANK=1;WORLD_SIZE=2" FAIL_REGULAR_EXPRESSION "HDF5-DIAG")
endif()
if(CHUNKIO_SANITIZE)
  chunkio_add_skipped_test(Samples.GuideWithLibTorch "LibTorch is not built with sanitizers")
elseif(NOT CHUNKIO_LIBTORCH_FOUND)
  chunkio_add_skipped_test(Samples.GuideWithLibTorch "${CHUNKIO_LIBTORCH_STATE}")
else()
  set(installation ${CMAKE_CURRENT_BINARY_DIR}/consumer)
  add_test(
    NAME Samples.GuideWithLibTorch
    COMMAND
      ${CMAKE_CTEST_COMMAND} --build-and-test ${PROJECT_SOURCE_DIR}/samples/cpp/libtorch ${installation}/libtorch
      --build-generator ${CMAKE_GENERATOR} --build-options -DCMAKE_BUILD_TYPE=Release
      -DCMAKE_CXX_COMPILER=${CMAKE_CXX_COMPILER} -DCMAKE_CXX_COMPILER_LAUNCHER=${CMAKE_CXX_COMPILER_LAUNCHER}
      "-DCMAKE_PREFIX_PATH=${installation}/prefix;${Torch_DIR}/../../.." -Dnvtx3_dir=${nvtx3_dir} --test-command train
      ${installation}/guide/train.h5)
  set_tests_properties(Samples.GuideWithLibTorch PROPERTIES LABELS medium TIMEOUT 900 FIXTURES_REQUIRED installation)
endif()

if(CHUNKIO_NVTX_INCLUDE_DIR)
  add_test(NAME Repository.LibTorchOfAnOlderToolkit
           COMMAND ${CMAKE_COMMAND} -S ${CMAKE_CURRENT_SOURCE_DIR}/libtorch --fresh
                   -B ${CMAKE_CURRENT_BINARY_DIR}/libtorch -DCMAKE_CXX_COMPILER=${CMAKE_CXX_COMPILER}
                   -DCHUNKIO_SOURCE_DIR=${PROJECT_SOURCE_DIR}
                   -DCUDAToolkit_INCLUDE_DIRS=${CHUNKIO_NVTX_INCLUDE_DIR})
  set_tests_properties(Repository.LibTorchOfAnOlderToolkit PROPERTIES LABELS short TIMEOUT 120)
else()
  chunkio_add_skipped_test(Repository.LibTorchOfAnOlderToolkit "no NVTX 3, which comes with a CUDA toolkit")
endif()

if(TARGET h5pack AND TARGET chunkio-train-softmax)
  add_test(NAME Samples.SoftmaxLearnsTrueLabelsAndNotShuffledOnes
           COMMAND Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/scripts/train_test.py
                   $<TARGET_FILE:chunkio-make-pictures> $<TARGET_FILE:h5pack>
                   $<TARGET_FILE:chunkio-train-softmax>)
  set_tests_properties(
    Samples.SoftmaxLearnsTrueLabelsAndNotShuffledOnes
    PROPERTIES LABELS medium TIMEOUT 300 FAIL_REGULAR_EXPRESSION "HDF5-DIAG"
               ENVIRONMENT "${opencv_environment}")

  # Builds everything again, so it is long.
  add_test(NAME Samples.QuickStart
           COMMAND Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/scripts/quickstart_test.py
                   ${PROJECT_SOURCE_DIR}/samples/quickstart.sh ${CMAKE_CURRENT_BINARY_DIR}/quickstart)
  set_tests_properties(Samples.QuickStart PROPERTIES LABELS long TIMEOUT 1800
                                                     FAIL_REGULAR_EXPRESSION "HDF5-DIAG")
endif()

chunkio_add_python_tests(Bench.LoadersAreCompared scripts/compare_loaders_test short TIMEOUT 120)
chunkio_add_python_tests(Bench.ScriptsForAGpuHost scripts/gpu_scripts_test medium TIMEOUT 300)

if(TARGET figures)
  # Small: this is about its checks of every byte and about the program still running, not about figures.
  add_test(NAME Bench.ReadingAgreesWithItsBaselines
           COMMAND figures reading --bytes 8MiB --rounds 1 --only warm,deflate,loads,resume --json
                   ${CMAKE_CURRENT_BINARY_DIR}/reading.json)
  set_tests_properties(Bench.ReadingAgreesWithItsBaselines PROPERTIES LABELS short TIMEOUT 120
                                                                      FAIL_REGULAR_EXPRESSION "HDF5-DIAG")
  add_test(NAME Bench.NormalizingAgreesWithItsLoop
           COMMAND figures normalizing --bytes 1MiB --rounds 1 --threads 1,3 --json
                   ${CMAKE_CURRENT_BINARY_DIR}/normalizing.json)
  set_tests_properties(Bench.NormalizingAgreesWithItsLoop PROPERTIES LABELS short TIMEOUT 120)
endif()

if(TARGET figures AND TARGET h5pack)
  # Small, too. The peers and fio are left out.
  add_test(NAME Bench.PackingAgreesWithItsBaselines
           COMMAND figures packing --pictures 60 --small-pictures 400 --cifar-records 40 --repack-bytes 8MiB
                   --few-files 50 --many-files 100 --rounds 1 --only decode,small,cifar,repack,memory --json
                   ${CMAKE_CURRENT_BINARY_DIR}/packing.json)
  set_tests_properties(
    Bench.PackingAgreesWithItsBaselines
    PROPERTIES LABELS short TIMEOUT 120 FAIL_REGULAR_EXPRESSION "HDF5-DIAG"
               ENVIRONMENT "${opencv_environment}")
endif()
