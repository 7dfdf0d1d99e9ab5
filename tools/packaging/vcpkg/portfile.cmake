# An overlay port of this source tree: vcpkg install chunkio --overlay-ports=tools/packaging/vcpkg
set(SOURCE_PATH "${CURRENT_PORT_DIR}/../../..")

vcpkg_check_features(OUT_FEATURE_OPTIONS features FEATURES tools CHUNKIO_BUILD_TOOLS)
vcpkg_cmake_configure(
  SOURCE_PATH "${SOURCE_PATH}"
  OPTIONS ${features} -DCHUNKIO_BUILD_TESTS=OFF -DCHUNKIO_BUILD_BENCH=OFF -DCHUNKIO_BUILD_SAMPLES=OFF
          -DCHUNKIO_WITH_CUDA=OFF)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(CONFIG_PATH lib/cmake/chunkio)
vcpkg_fixup_pkgconfig()
if("tools" IN_LIST FEATURES)
  vcpkg_copy_tools(TOOL_NAMES h5pack AUTO_CLEAN)
  # h5pack looks for the module of its codecs beside itself: vcpkg puts $ORIGIN at the head of each run path.
  file(RENAME "${CURRENT_PACKAGES_DIR}/lib/h5pack/h5pack_codecs.so"
       "${CURRENT_PACKAGES_DIR}/tools/${PORT}/h5pack_codecs.so")
  file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/lib/h5pack" "${CURRENT_PACKAGES_DIR}/debug/lib/h5pack")
endif()
file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/debug/include" "${CURRENT_PACKAGES_DIR}/debug/share")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
