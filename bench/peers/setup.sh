#!/bin/sh
# Makes the virtual environment in which the peers run:  bench/peers/setup.sh VENV
#
# PYTHON names the interpreter (default python3, 3.11 is what was tried). FFCV is compiled: it needs
# a C++ compiler, pkg-config, and the headers of Python, OpenCV and libturbojpeg (Debian: g++
# pkg-config python3-dev libopencv-dev libturbojpeg0-dev). chunkio is built from this repository.
# Where that fails, or another loader cannot be installed, the other peers still run, and
# VENV/NAME-reason.txt says in one line why NAME does not.
set -eu

if [ $# -ne 1 ]; then
  echo "usage: $0 VENV" >&2
  exit 2
fi
venv=$1
here=$(cd "$(dirname "$0")" && pwd)
ffcv=1.0.2

"${PYTHON:-python3}" -m venv "$venv"
pip="$venv/bin/pip --disable-pip-version-check install"

# The build of PyTorch without CUDA, where its index can be reached: a tenth of the download.
torch=$(grep '^torch' "$here/requirements.txt")
# shellcheck disable=SC2086 # torch and torchvision
if ! $pip --index-url https://download.pytorch.org/whl/cpu --retries 0 $torch; then
  echo "setup.sh: no PyTorch without CUDA there; the one of the package index will do" >&2
fi
$pip -r "$here/requirements.txt"

# Installs what follows the module's name, and imports the module; says why where that fails.
install() {
  name=$1
  shift
  log="$venv/$name-build.log"
  rm -f "$venv/$name-reason.txt"
  if $pip "$@" >"$log" 2>&1 && "$venv/bin/python" -c "import $name" >>"$log" 2>&1; then
    echo "setup.sh: $name is ready"
  else
    reason=$(grep -iE 'error|required' "$log" | tail -n 1)
    echo "$name cannot be installed: ${reason:-see $log}" | tee "$venv/$name-reason.txt" >&2
  fi
}

# What is there already keeps its version, so that nothing changes beneath the others.
while read -r name packages; do
  case $name in "#"* | "") continue ;; esac
  # shellcheck disable=SC2086 # several packages
  install "$name" -c "$here/requirements.txt" $packages
done <"$here/requirements-loaders.txt"

$pip -r "$here/requirements-ffcv.txt" || true # then importing FFCV says what is missing
install ffcv --no-deps --no-build-isolation --no-binary ffcv "ffcv==$ffcv"
install chunkio "$here/../.."
