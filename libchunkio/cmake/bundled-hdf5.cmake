# Builds a static libhdf5 of a source that the user names, once per build folder, and says where it is as FindHDF5 does.
# Nothing is downloaded.
#
# It is kept as libchunkio-hdf5: who links a static libchunkio must not take another libhdf5 for it, whose file driver
# interface may be another one.
set(CHUNKIO_HDF5_SOURCE "" CACHE PATH "Of CHUNKIO_HDF5=bundled: the source of HDF5, a folder or an archive")
# That of hdf5-1.14.6.tar.gz, as its authors release it.
set(CHUNKIO_HDF5_SHA256 e4defbac30f50d64e1556374aa49e574417c9e72c6b1de7a4ff88c4b1bea6e9b
    CACHE STRING "SHA-256 digest that an archive must have")

if(NOT EXISTS "${CHUNKIO_HDF5_SOURCE}")
  message(FATAL_ERROR "CHUNKIO_HDF5=bundled builds libhdf5 of CHUNKIO_HDF5_SOURCE, and '${CHUNKIO_HDF5_SOURCE}' is not "
                      "there. Name a folder, or an archive such as hdf5-1.14.6.tar.gz of "
                      "https://github.com/HDFGroup/hdf5/releases.")
endif()
set(digest "a folder")
if(NOT IS_DIRECTORY "${CHUNKIO_HDF5_SOURCE}")
  file(SHA256 "${CHUNKIO_HDF5_SOURCE}" digest)
  if(NOT digest STREQUAL CHUNKIO_HDF5_SHA256)
    message(FATAL_ERROR "${CHUNKIO_HDF5_SOURCE} has the SHA-256 digest\n  ${digest}\nand not CHUNKIO_HDF5_SHA256\n  "
                        "${CHUNKIO_HDF5_SHA256}\nIf you trust it, set that to its digest.")
  endif()
endif()
find_package(ZLIB REQUIRED)

set(folder ${PROJECT_BINARY_DIR}/hdf5)
set(CHUNKIO_HDF5_LIBRARY ${folder}/lib/libchunkio-hdf5.a)
file(SHA256 ${CMAKE_CURRENT_LIST_DIR}/minimal-hdf5.cmake options)
set(made_of "${CHUNKIO_HDF5_SOURCE} ${digest} ${options} ${CMAKE_C_COMPILER} ${CMAKE_C_FLAGS}")
set(made_of_before "")
if(EXISTS ${folder}/made-of)
  file(READ ${folder}/made-of made_of_before)
endif()
if(NOT made_of STREQUAL made_of_before)
  message(STATUS "Building HDF5 of ${CHUNKIO_HDF5_SOURCE}, which takes some minutes")
  file(REMOVE_RECURSE ${folder})
  set(source ${CHUNKIO_HDF5_SOURCE})
  if(NOT IS_DIRECTORY "${CHUNKIO_HDF5_SOURCE}")
    file(ARCHIVE_EXTRACT INPUT "${CHUNKIO_HDF5_SOURCE}" DESTINATION ${folder}/source)
    file(GLOB source LIST_DIRECTORIES ON ${folder}/source/*)
  endif()
  cmake_host_system_information(RESULT processors QUERY NUMBER_OF_LOGICAL_CORES)
  foreach(
    step IN
    ITEMS "-S;${source};-B;${folder}/build;-G;${CMAKE_GENERATOR};-C;${CMAKE_CURRENT_LIST_DIR}/minimal-hdf5.cmake;-DCMAKE_BUILD_TYPE=Release;-DCMAKE_C_COMPILER=${CMAKE_C_COMPILER};-DCMAKE_C_FLAGS=-w ${CMAKE_C_FLAGS};-DCMAKE_INSTALL_PREFIX=${folder};-DCMAKE_INSTALL_LIBDIR=${folder}/lib;-DCMAKE_POLICY_VERSION_MINIMUM=3.5"
          "--build;${folder}/build;--parallel;${processors}"
          "--install;${folder}/build")
    execute_process(COMMAND ${CMAKE_COMMAND} ${step} RESULT_VARIABLE failed OUTPUT_VARIABLE said ERROR_VARIABLE said)
    if(failed)
      message(FATAL_ERROR "HDF5 of ${CHUNKIO_HDF5_SOURCE} cannot be built:\n${said}")
    endif()
  endforeach()
  file(RENAME ${folder}/lib/libhdf5.a ${CHUNKIO_HDF5_LIBRARY})
  file(REMOVE_RECURSE ${folder}/build ${folder}/source)
  file(WRITE ${folder}/made-of "${made_of}")
endif()

file(STRINGS ${folder}/include/H5public.h version REGEX "define H5_VERS_(MAJOR|MINOR|RELEASE)")
list(TRANSFORM version REPLACE "^.*H5_VERS_[A-Z]+[^0-9]+([0-9]+).*$" "\\1")
list(JOIN version "." HDF5_VERSION)
set(HDF5_C_INCLUDE_DIRS ${folder}/include)
set(HDF5_C_LIBRARIES ${CHUNKIO_HDF5_LIBRARY} ${ZLIB_LIBRARIES} m)
