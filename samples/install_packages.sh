# shellcheck shell=bash
# What has to be installed to build chunkio on Debian and Ubuntu, and how.
#
#   bash samples/install_packages.sh   installs all that building needs
#
# quickstart.sh and tests/run.sh source it for its functions:
#
#   install_packages PACKAGE...        installs those that are missing; with none missing it needs no network
#   try_install_packages PACKAGE...    the same for packages that one can do without: says so and goes on
#   try_install_wheels FOLDER WHEEL... the same for Python packages of PyPI, in a virtual environment that is kept

# shellcheck disable=SC2034  # Used by those who source this file.
BUILD_PACKAGES=(
  g++ cmake ninja-build pkg-config
  libhdf5-dev libopencv-dev libtbb-dev libcli11-dev libxxhash-dev libdeflate-dev nlohmann-json3-dev
  libjpeg-dev libpng-dev libwebp-dev libcurl4-openssl-dev zlib1g-dev
  libzstd-dev liblz4-dev libblosc-dev
)
# What not every system has as a package; without, the tests that need it skip. A browser, for what the report of
# chunkbench looks like (115 MB), PyTorch, for the exchange of tensors (70 MB), virtual environments, the filters of
# other people's files, and a web server.
# shellcheck disable=SC2034
OPTIONAL_TEST_PACKAGES=(chromium python3-torch libtorch-dev python3-venv hdf5-filter-plugin
  hdf5-filter-plugin-blosc-serial nginx-light)
# shellcheck disable=SC2034
TEST_PACKAGES=(libgtest-dev libgmock-dev hdf5-tools openmpi-bin python3 python3-dev python3-h5py python3-numpy python3-pil strace)

install_packages() {
  local missing=() package
  for package in "$@"; do
    if ! dpkg-query --show --showformat='${db:Status-Status}\n' "$package" 2>/dev/null |
      grep --quiet --line-regexp installed; then
      missing+=("$package")
    fi
  done
  if [[ ${#missing[@]} -eq 0 ]]; then
    return
  fi
  if ! command -v apt-get >/dev/null; then
    echo "These packages are missing, and there is no apt-get to install them: ${missing[*]}" >&2
    echo "Install what your system calls them, then build with: cmake --workflow --preset release" >&2
    return 1
  fi
  local as_root=()
  if [[ $EUID -ne 0 ]]; then
    as_root=(sudo)
  fi
  echo "Installing with apt-get: ${missing[*]}"
  "${as_root[@]}" apt-get update -qq
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install --yes --no-install-recommends -qq "${missing[@]}"
}

try_install_packages() {
  local package
  for package in "$@"; do
    if ! dpkg-query --show "$package" >/dev/null 2>&1 && ! apt-cache show "$package" >/dev/null 2>&1; then
      echo "This system has no package $package; what needs it is skipped."
    elif ! install_packages "$package"; then
      echo "$package could not be installed; what needs it is skipped."
    fi
  done
}

try_install_wheels() {
  local folder=$1 python=/usr/bin/python3
  shift
  if [[ ! -x $python ]]; then
    python=python3
  fi
  # pip asks the index for nothing that is installed already.
  if [[ ! -x $folder/bin/pip ]] && ! "$python" -m venv --clear "$folder" >/dev/null 2>&1; then
    echo "$python makes no virtual environments; what needs $* is skipped."
  elif ! "$folder/bin/pip" install --quiet --disable-pip-version-check --no-cache-dir --retries 1 --timeout 30 "$@"; then
    echo "pip could not install $*; what needs it is skipped."
  fi
}

# Run, not sourced: installs what building needs.
if [[ ${BASH_SOURCE[0]} == "$0" ]]; then
  set -euo pipefail
  install_packages "${BUILD_PACKAGES[@]}" python3-dev python3-venv
fi
