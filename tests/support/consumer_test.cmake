# Installs a build tree and builds and runs tests/consumer against what was installed.
#
#   cmake -DBUILD=<build tree> -DSCRATCH=<folder to use> -DCONSUMER=<tests/consumer> -DFLAGS=<C++ flags>
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
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${SCRATCH}/prefix)
run(${CMAKE_COMMAND} -S ${CONSUMER} -B ${SCRATCH}/build -G ${GENERATOR} -DCMAKE_BUILD_TYPE=Release
    -DCMAKE_CXX_FLAGS=${FLAGS} -DCMAKE_CXX_COMPILER=${COMPILER}
    -DCMAKE_CXX_COMPILER_LAUNCHER=${LAUNCHER} -DCMAKE_PREFIX_PATH=${SCRATCH}/prefix)
run(${CMAKE_COMMAND} --build ${SCRATCH}/build)
execute_process(COMMAND ${SCRATCH}/build/consumer WORKING_DIRECTORY ${SCRATCH}
                COMMAND_ECHO STDOUT COMMAND_ERROR_IS_FATAL ANY)
