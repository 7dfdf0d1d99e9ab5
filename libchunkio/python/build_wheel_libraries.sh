#!/usr/bin/env bash
# Builds what a wheel brings along: static libraries of HDF5, zlib, libdeflate, libjpeg-turbo, libpng and libwebp, and
# the headers of xxHash and nlohmann_json. libjpeg-turbo needs nasm on x86-64, without which it would be several times
# slower.
#
#   bash libchunkio/python/build_wheel_libraries.sh PREFIX
#
# Where their sources come from, and how to name others, stands in libchunkio/cmake/fetch_source.sh; what HDF5 is built
# with in libchunkio/cmake/minimal-hdf5.cmake.
set -euo pipefail
cmake_folder=$(cd "$(dirname "${BASH_SOURCE[0]}")/../cmake" && pwd)
prefix=$(mkdir -p "${1:?name the folder to install to}" && cd "$1" && pwd)
if [[ -e $prefix/.complete ]]; then
  echo "build_wheel_libraries: $prefix is complete already"
  exit 0
fi
work=$prefix/work
rm -rf "$work"
mkdir "$work"
trap 'rm -rf "$work"' EXIT
# Messages of HDF5 name source files, without the folder that they were built in.
export CFLAGS="-O3 -fPIC -ffile-prefix-map=$work/="

# shellcheck source=../cmake/fetch_source.sh
source "$cmake_folder/fetch_source.sh"

# Their licences ask for it.
keep_license() {
  local name=$1 file
  shift
  mkdir -p "$prefix/licenses"
  for file in "$@"; do
    if [[ -e $work/$name/$file ]]; then
      cp "$work/$name/$file" "$prefix/licenses/$name.txt"
      return
    fi
  done
  echo "build_wheel_libraries: the source of $name has no $*" >&2
  return 1
}

install_by_cmake() {
  local name=$1
  shift
  cmake -S "$work/$name" -B "$work/$name.build" -DCMAKE_BUILD_TYPE=Release -DCMAKE_POSITION_INDEPENDENT_CODE=ON \
    -DCMAKE_INSTALL_PREFIX="$prefix" -DCMAKE_INSTALL_LIBDIR="$prefix/lib" -DCMAKE_PREFIX_PATH="$prefix" \
    -DBUILD_SHARED_LIBS=OFF -DBUILD_TESTING=OFF -DCMAKE_POLICY_VERSION_MINIMUM=3.5 "$@"
  cmake --build "$work/$name.build" --parallel "${CMAKE_BUILD_PARALLEL_LEVEL:-$(nproc)}"
  cmake --install "$work/$name.build"
}

fetch zlib
keep_license zlib LICENSE
(
  cd "$work/zlib"
  ./configure --static --prefix="$prefix"
  make --jobs="${CMAKE_BUILD_PARALLEL_LEVEL:-$(nproc)}" libz.a
  make install
)

fetch libdeflate
keep_license libdeflate COPYING
install_by_cmake libdeflate -DLIBDEFLATE_BUILD_SHARED_LIB=OFF -DLIBDEFLATE_BUILD_GZIP=OFF

fetch jpeg
keep_license jpeg LICENSE.md
if [[ $(uname -m) == x86_64 ]] && ! command -v nasm >/dev/null; then
  echo "build_wheel_libraries: libjpeg-turbo needs nasm: install the package of that name" >&2
  exit 1
fi
install_by_cmake jpeg -DENABLE_SHARED=OFF -DWITH_TURBOJPEG=OFF -DREQUIRE_SIMD=ON

fetch png
keep_license png LICENSE
install_by_cmake png -DPNG_SHARED=OFF -DPNG_TESTS=OFF -DPNG_TOOLS=OFF -DPNG_EXECUTABLES=OFF -DPNG_FRAMEWORK=OFF

fetch webp
keep_license webp COPYING
install_by_cmake webp -DWEBP_BUILD_ANIM_UTILS=OFF -DWEBP_BUILD_CWEBP=OFF -DWEBP_BUILD_DWEBP=OFF \
  -DWEBP_BUILD_GIF2WEBP=OFF -DWEBP_BUILD_IMG2WEBP=OFF -DWEBP_BUILD_VWEBP=OFF -DWEBP_BUILD_WEBPINFO=OFF \
  -DWEBP_BUILD_WEBPMUX=OFF -DWEBP_BUILD_EXTRAS=OFF -DWEBP_BUILD_LIBWEBPMUX=OFF

fetch xxhash
keep_license xxhash LICENSE
cp "$work/xxhash/xxhash.h" "$prefix/include"

fetch json
keep_license json LICENSE.MIT
install_by_cmake json -DJSON_BuildTests=OFF

fetch hdf5
keep_license hdf5 LICENSE COPYING
# What it says about its configuration ends up in the library: without date, host and folders.
sed -i -E '/@CONFIG_DATE@|@CMAKE_HOST_SYSTEM@|@CMAKE_INSTALL_PREFIX@|_DIRECTORY@|FLAGS/d' \
  "$work/hdf5/src/H5build_settings.cmake.c.in"
install_by_cmake hdf5 -C "$cmake_folder/minimal-hdf5.cmake" -DHDF5_USE_ZLIB_STATIC=ON
touch "$prefix/.complete"
