#!/bin/sh
# Makes the virtual environment in which the peers run:  bench/peers/setup.sh VENV
#
# PYTHON names the interpreter (default python3, 3.11 is what was tried). FFCV is compiled: it needs
# a C++ compiler, pkg-config, and the headers of Python, OpenCV and libturbojpeg (Debian: g++
# pkg-config python3-dev libopencv-dev libturbojpeg0-dev). Where that fails the other peers still
# run, and VENV/ffcv-reason.txt says why FFCV does not.
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
torch=$(sed -n 's/^\(torch==.*\)/\1/p' "$here/requirements.txt")
if ! $pip --index-url https://download.pytorch.org/whl/cpu --retries 0 "$torch"; then
  echo "setup.sh: no PyTorch without CUDA there; the one of the package index will do" >&2
fi
$pip -r "$here/requirements.txt"

rm -f "$venv/ffcv-reason.txt"
log="$venv/ffcv-build.log"
if $pip -r "$here/requirements-ffcv.txt" >"$log" 2>&1 &&
  $pip --no-deps --no-build-isolation --no-binary ffcv "ffcv==$ffcv" >>"$log" 2>&1 &&
  "$venv/bin/python" -c 'import ffcv' >>"$log" 2>&1; then
  echo "setup.sh: FFCV $ffcv is ready"
else
  reason=$(grep -iE 'error|required' "$log" | tail -n 1)
  echo "FFCV $ffcv was not built: ${reason:-see $log}" | tee "$venv/ffcv-reason.txt" >&2
fi
