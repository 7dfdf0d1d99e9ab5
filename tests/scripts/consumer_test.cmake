# Installs a build tree, moves what was installed, and builds and runs tests/consumer and samples/cpp against it.
#
#   cmake -DBUILD=<build tree> -DSCRATCH=<folder to use> -DCONSUMER=<tests/consumer> -DGUIDE=<samples/cpp>
#         -DFLAGS=<C++ flags>
#         [-DSOURCE=<root> -DSHARED=ON|OFF]  first makes BUILD: the library alone, shared or static
#         -P consumer_test.cmake
cmake_minimum_required(VERSION 3.25)

function(run)
  execute_process(COMMAND ${ARGV} COMMAND_ECHO STDOUT COMMAND_ERROR_IS_FATAL ANY)
endfunction()

if(SOURCE)
  run(${CMAKE_COMMAND} -S ${SOURCE} -B ${BUILD} -G ${GENERATOR} -DCMAKE_BUILD_TYPE=Release
      -DCMAKE_CXX_FLAGS=${FLAGS} -DCMAKE_CXX_COMPILER=${COMPILER}
      -DCMAKE_CXX_COMPILER_LAUNCHER=${LAUNCHER} -DBUILD_SHARED_LIBS=${SHARED}
      -DCHUNKIO_BUILD_TOOLS=OFF -DCHUNKIO_BUILD_TESTS=OFF -DCHUNKIO_BUILD_BENCH=OFF
      -DCHUNKIO_BUILD_SAMPLES=OFF)
  run(${CMAKE_COMMAND} --build ${BUILD})
endif()

# From scratch, so that nothing of an earlier version helps.
file(REMOVE_RECURSE ${SCRATCH})
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${SCRATCH}/installed)

# As on another machine: nothing may say where things lay on this one, and no CUDA toolkit is needed.
file(GLOB_RECURSE package_files ${SCRATCH}/installed/*.cmake ${SCRATCH}/installed/*.pc)
if(NOT package_files)
  message(FATAL_ERROR "no package was installed")
endif()
foreach(file IN LISTS package_files)
  file(STRINGS ${file} absolute REGEX "(^|[\"; :])/[A-Za-z0-9_.]+/")
  # Where everybody's toolkit lies, to look there, too.
  list(FILTER absolute EXCLUDE REGEX "PATHS /usr/local/cuda$|_IMPORT_PREFIX STREQUAL|_realOrig|_realCurr")
  if(absolute)
    message(FATAL_ERROR "${file} names a place on this machine: ${absolute}")
  endif()
endforeach()
file(RENAME ${SCRATCH}/installed ${SCRATCH}/prefix)

# h5pack finds its codecs there, too, and brings manual pages and completions. (Sanitizers need settings of their own.)
if(EXISTS ${SCRATCH}/prefix/bin/h5pack AND NOT FLAGS)
  execute_process(COMMAND ${SCRATCH}/prefix/bin/h5pack --version OUTPUT_VARIABLE versions COMMAND_ECHO STDOUT
                                                                 COMMAND_ERROR_IS_FATAL ANY)
  if(NOT versions MATCHES "PNG")
    message(FATAL_ERROR "the installed h5pack does not find its codecs: ${versions}")
  endif()
  foreach(name IN ITEMS man/man1/h5pack.1 man/man1/h5pack-folder.1 bash-completion/completions/h5pack
                        zsh/site-functions/_h5pack fish/vendor_completions.d/h5pack.fish)
    if(NOT EXISTS ${SCRATCH}/prefix/share/${name})
      message(FATAL_ERROR "share/${name} was not installed")
    endif()
  endforeach()
endif()

function(build_and_run source program)
  set(build ${SCRATCH}/${program})
  run(${CMAKE_COMMAND} -S ${source} -B ${build} -G ${GENERATOR} -DCMAKE_BUILD_TYPE=Release
      -DCMAKE_CXX_FLAGS=${FLAGS} -DCMAKE_CXX_COMPILER=${COMPILER}
      -DCMAKE_CXX_COMPILER_LAUNCHER=${LAUNCHER} -DCMAKE_PREFIX_PATH=${SCRATCH}/prefix
      -DCMAKE_DISABLE_FIND_PACKAGE_CUDAToolkit=ON)
  run(${CMAKE_COMMAND} --build ${build})
  execute_process(COMMAND ${build}/${program} WORKING_DIRECTORY ${build}
                  COMMAND_ECHO STDOUT COMMAND_ERROR_IS_FATAL ANY)
endfunction()
build_and_run(${CONSUMER} consumer)
build_and_run(${GUIDE} guide)

# The same without CMake.
find_program(pkg_config pkg-config)
if(pkg_config)
  file(GLOB_RECURSE description ${SCRATCH}/prefix/*/chunkio.pc)
  cmake_path(GET description PARENT_PATH folder)
  execute_process(COMMAND ${CMAKE_COMMAND} -E env PKG_CONFIG_PATH=${folder} ${pkg_config} --cflags --libs chunkio
                  OUTPUT_VARIABLE options OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  separate_arguments(options UNIX_COMMAND "${options} ${FLAGS}")
  run(${COMPILER} -std=c++20 ${CONSUMER}/main.cpp -o ${SCRATCH}/by_pkg_config ${options})
  cmake_path(GET folder PARENT_PATH libraries)
  execute_process(COMMAND ${CMAKE_COMMAND} -E env LD_LIBRARY_PATH=${libraries} ${SCRATCH}/by_pkg_config
                  WORKING_DIRECTORY ${SCRATCH} COMMAND_ECHO STDOUT COMMAND_ERROR_IS_FATAL ANY)
endif()
