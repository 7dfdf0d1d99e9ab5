#!/usr/bin/env bash
# Builds the Debian packages with a current libhdf5 inside, as wheels have it: that of the system may be one that crashes
# on damaged files. Where its source comes from stands in libchunkio/cmake/fetch_source.sh.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

# shellcheck source=../../samples/install_packages.sh
source samples/install_packages.sh
install_packages "${BUILD_PACKAGES[@]}"
work=$PWD/build/hdf5-source
mkdir -p "$work"
# shellcheck source=../../libchunkio/cmake/fetch_source.sh
source libchunkio/cmake/fetch_source.sh
fetch_once hdf5
cmake --preset deb -DCHUNKIO_HDF5=bundled -DCHUNKIO_HDF5_SOURCE="$work/hdf5"
cmake --build --preset deb
cpack --preset deb
