#!/usr/bin/env bash
# Installs what is missing (Debian, Ubuntu), builds the `dev` preset and runs the tests. Arguments go to
# ctest: `bash tests/run.sh -R Loader`. With `--torch` as the first, PyTorch is installed from PyPI, too, without
# which the trainers are not built (3 GB to download). Python packages are kept in build/test-python for the next run.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

wheels=("numpy>=2.1" h5py pillow scipy pytest mypy "nanobind>=2.4" scikit-build-core "moto[s3]" flask flask-cors)
if [[ ${1:-} == --torch ]]; then
  wheels_of_size=(torch)
  shift
fi

# shellcheck source=samples/install_packages.sh
source samples/install_packages.sh
install_packages "${BUILD_PACKAGES[@]}" "${TEST_PACKAGES[@]}"
try_install_packages "${OPTIONAL_TEST_PACKAGES[@]}"
python=$PWD/build/test-python
try_install_wheels "$python" "${wheels[@]}"
if [[ -n ${wheels_of_size:-} ]]; then
  try_install_wheels "$python" "${wheels_of_size[@]}"
fi

options=()
if command -v ccache >/dev/null; then
  options=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
fi
if "$python/bin/python" -c "import nanobind, pytest" 2>/dev/null; then
  options+=(-DCHUNKIO_BUILD_PYTHON=ON "-DPython_EXECUTABLE=$python/bin/python")
fi
if torch=$("$python/bin/python" -c "import torch; print(torch.utils.cmake_prefix_path)" 2>/dev/null); then
  options+=("-DTorch_DIR=$torch/Torch")
fi
cmake --preset dev "${options[@]}"
cmake --build --preset dev
report=$PWD/build/dev/tests.xml
rm -f "$report"
ctest --preset dev --output-junit "$report" "$@" | python3 tests/scripts/skip_reasons.py "$report"
