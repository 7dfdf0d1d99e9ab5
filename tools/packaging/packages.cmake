# Debian packages: the shared library, what compiling against it needs, and h5pack. `cmake --workflow --preset deb`
# writes them to build/deb/packages.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME chunkio)
set(CPACK_PACKAGE_VENDOR "The chunkio authors")
set(CPACK_PACKAGE_CONTACT "The chunkio authors <chunkio@example.org>")
set(CPACK_PACKAGE_DIRECTORY ${PROJECT_BINARY_DIR}/packages)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL library dev tools)
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_CURRENT_LIST_DIR}/debian_files.cmake)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE
                                                WORLD_READ WORLD_EXECUTE)

set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
# CPack warns that h5pack's codecs have no soname: they are a module that h5pack loads.
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS_POLICY ">=")
# h5pack's own libchunkio is not installed here; which package has it is said below.
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${PROJECT_BINARY_DIR}/libchunkio)
set(CPACK_DEBIAN_ENABLE_COMPONENT_DEPENDS ON)

set(CPACK_DEBIAN_LIBRARY_PACKAGE_NAME libchunkio0)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SECTION libs)
set(CPACK_COMPONENT_LIBRARY_DESCRIPTION
    "loader of image datasets in HDF5 files, shared library
 Delivers the uint8 images of chunked HDF5 files as shuffled batches for
 training, at the speed of memory and disk. The order of an epoch is
 reproducible, and training resumes inside of it.")

set(CPACK_DEBIAN_DEV_PACKAGE_NAME libchunkio-dev)
set(CPACK_DEBIAN_DEV_PACKAGE_SECTION libdevel)
set(CPACK_COMPONENT_DEV_DEPENDS library)
set(CPACK_DEBIAN_DEV_PACKAGE_SHLIBDEPS OFF)
set(CPACK_COMPONENT_DEV_DESCRIPTION
    "loader of image datasets in HDF5 files, development files
 Headers, a CMake package and a pkg-config file for programs in C++20 that use
 libchunkio.")

set(CPACK_DEBIAN_TOOLS_PACKAGE_NAME h5pack)
set(CPACK_DEBIAN_TOOLS_PACKAGE_SECTION utils)
set(CPACK_COMPONENT_TOOLS_DEPENDS library)
set(CPACK_COMPONENT_TOOLS_DESCRIPTION
    "pack images into chunked HDF5 files for training
 Packs folders of images, CIFAR, CelebA and lists of files into chunked uint8
 HDF5 files, and inspects, verifies, rewrites and streams such files. It also
 measures whether training waits for its data, and suggests what helps.")

include(CPack)
