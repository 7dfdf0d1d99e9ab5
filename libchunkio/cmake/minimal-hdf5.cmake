# Options of HDF5's own build, for `cmake -C`: a static library with the deflate filter and no other, without a lock of
# its own, since libchunkio holds one around every call.
foreach(option IN ITEMS BUILD_STATIC_LIBS HDF5_ENABLE_Z_LIB_SUPPORT HDF5_NO_PACKAGES)
  set(${option} ON CACHE BOOL "")
endforeach()
foreach(
  option IN
  ITEMS BUILD_SHARED_LIBS
        BUILD_TESTING
        HDF5_ENABLE_SZIP_SUPPORT
        HDF5_ENABLE_THREADSAFE
        HDF5_ENABLE_NONSTANDARD_FEATURE_FLOAT16
        HDF5_BUILD_TOOLS
        HDF5_BUILD_EXAMPLES
        HDF5_BUILD_HL_LIB
        HDF5_BUILD_CPP_LIB
        HDF5_BUILD_FORTRAN
        HDF5_BUILD_JAVA)
  set(${option} OFF CACHE BOOL "")
endforeach()
set(CMAKE_POSITION_INDEPENDENT_CODE ON CACHE BOOL "")
