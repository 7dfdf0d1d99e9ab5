#!/usr/bin/env bash
# Installs what is missing (Debian, Ubuntu), builds the `dev` preset and runs the tests. Arguments go to
# ctest: `bash tests/run.sh -R Loader`.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# shellcheck source=samples/install_packages.sh
source samples/install_packages.sh
install_packages "${BUILD_PACKAGES[@]}" "${TEST_PACKAGES[@]}"
try_install_packages "${OPTIONAL_TEST_PACKAGES[@]}"

launcher=()
if command -v ccache >/dev/null; then
  launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
fi
cmake --preset dev "${launcher[@]}"
cmake --build --preset dev
exec ctest --preset dev "$@"
