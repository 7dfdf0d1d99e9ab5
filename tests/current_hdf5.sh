#!/usr/bin/env bash
# Builds the library, h5pack and the tests with a newer libhdf5 than that of the system, and runs the tests. Arguments
# go to ctest. HDF5_SOURCE names a folder or a tarball; else libchunkio/cmake/fetch_source.sh finds one. The source stays
# in build/hdf5-source for the next run.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
build=$PWD/build/current-hdf5

# shellcheck source=../samples/install_packages.sh
source samples/install_packages.sh
install_packages "${BUILD_PACKAGES[@]}" "${TEST_PACKAGES[@]}"
work=$PWD/build/hdf5-source
mkdir -p "$work"
# shellcheck source=../libchunkio/cmake/fetch_source.sh
source libchunkio/cmake/fetch_source.sh
fetch_once hdf5
options=()
if command -v ccache >/dev/null; then
  options=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
fi
cmake --preset dev -B "$build" -DCHUNKIO_HDF5=bundled -DCHUNKIO_HDF5_SOURCE="$work/hdf5" -DCHUNKIO_WITH_CUDA=OFF \
  -DCHUNKIO_BUILD_BENCH=OFF -DCHUNKIO_BUILD_SAMPLES=OFF -DCMAKE_DISABLE_FIND_PACKAGE_Torch=ON "${options[@]}"
cmake --build "$build"
ctest --test-dir "$build" --output-on-failure --parallel 2 --no-tests=error --label-exclude 'long|cuda' "$@"
