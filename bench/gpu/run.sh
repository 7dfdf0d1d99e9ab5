#!/usr/bin/env bash
# Builds, tests and measures the GPU path on a host with a GPU, in less than ten minutes:
#
#   bench/gpu/run.sh [--deps FOLDER] [--out FOLDER]
#
#   --deps FOLDER   packages that fetch-deps.sh collected; default .gpu-deps if it is there, else what the
#                   system has. They are unpacked into build/gpu, the system stays as it is
#   --out FOLDER    where RESULTS-gpu.md, kernel.json, torch.json, trainers.json and logs go; default: bench for the
#                   first, build/gpu/out for the others
#
# Needs CUDA, a C++ compiler, CMake, ninja or make, and Python; PyTorch and torchvision for the comparison with
# them, and PyTorch for the trainers, which link with it. Variables: CUDA_ARCHITECTURES (as for CMake; default: that of the device), TIME_LIMIT (seconds for all steps;
# default 540), JOBS (of the build).
#
# A step that fails is reported in RESULTS-gpu.md, and the others go on; the exit code is then 1.
set -euo pipefail

# Seconds that all steps may take together.
TIME=${TIME_LIMIT:-540}
# The kernel in one of its forms, which has every access and barrier of the others.
SHORT_FILTER='CudaGpuTest.DeviceLoader*'
# Asks for memory that no device has, which memcheck would report.
MEMCHECK_FILTER='-CudaGpuTest.WhatIsNotThereIsAnError'

usage() {
  sed -n '2,/^set/ s/^# \?//p' "${BASH_SOURCE[0]}"
  exit "$1"
}

deps=
out=
while [[ $# -gt 0 ]]; do
  case $1 in
    --deps | --out)
      [[ $# -gt 1 ]] || usage 2 >&2
      if [[ $1 == --deps ]]; then deps=$(realpath -m -- "$2"); else out=$(realpath -m -- "$2"); fi
      shift 2
      ;;
    -h | --help) usage 0 ;;
    *) usage 2 >&2 ;;
  esac
done

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
root=$PWD
work=$root/build/gpu
build=$work/build
results=${out:-$root/bench}/RESULTS-gpu.md
out=${out:-$work/out}
logs=$out/logs
prefix=$work/deps
if [[ -z $deps && -d .gpu-deps ]]; then deps=$root/.gpu-deps; fi
if [[ -n $deps && ! -d $deps ]]; then
  echo "run.sh: there is no folder $deps; bench/gpu/fetch-deps.sh makes one" >&2
  exit 2
fi
rm -rf "$logs"
mkdir -p "$logs" "$(dirname "$results")"
rm -f "$out"/{kernel.json,torch.json,figures.md,trainers.json,trainers.md,trainers.built}
# Where CUDA goes by default, and is often not on the path.
PATH=$PATH:/usr/local/cuda/bin

deadline=$((SECONDS + TIME))
failed=0
table=   # Rows of Markdown.
tails=   # Ends of the logs of steps that failed.

# step NAME LIMIT COMMAND...: runs it for LIMIT seconds at most. Tests that were skipped for want of a GPU count as
# failed: all this is about one. Returns whether it passed.
step() {
  local name=$1 limit=$2 begin=$SECONDS status=0 result=passed counts
  local log=$logs/${1// /-}.log
  shift 2
  if ((deadline - SECONDS < limit)); then limit=$((deadline - SECONDS)); fi
  echo "run.sh: $name"
  if ((limit > 0)); then
    timeout --kill-after=10 "$limit" "$@" >"$log" 2>&1 || status=$?
  else
    echo "no time was left" >"$log"
    status=124
  fi
  counts=$(sed -n 's/^\[ *\(PASSED\|SKIPPED\|FAILED\) *\] \([0-9]\+\) tests\?[.,].*/\2 \L\1/p' "$log" | paste -sd ,)
  case $status in
    0) if [[ $* == *cuda_test* && $counts == *skipped* ]]; then status=1 result=SKIPPED; fi ;;
    124 | 137) result="FAILED: not done after $limit s" ;;
    *) result="FAILED: exit code $status" ;;
  esac
  echo "run.sh: $name: $result${counts:+ (${counts//,/, })}"
  table+="| $name | $result${counts:+ (${counts//,/, })} | $((SECONDS - begin)) |"$'\n'
  if ((status != 0)); then
    failed=1
    # Without names of folders of this machine: RESULTS-gpu.md may be committed.
    tail -n 15 "$log" | sed "s|$root/||g; s|${HOME:-$root}/|~/|g; s/^/    /" >"$out/tail"
    cat "$out/tail" >&2
    tails+=$'\n'"The end of what \`$name\` wrote:"$'\n\n'"$(<"$out/tail")"$'\n'
    return 1
  fi
}

sanitize() {
  step "compute-sanitizer $1" "$2" compute-sanitizer --tool "$1" --error-exitcode 9 \
    "$build/tests/cuda_test" --gtest_filter="$3" || true
}

options=()
if [[ -n $deps ]]; then
  rm -rf "$prefix"
  mkdir -p "$prefix"
  # shellcheck disable=SC2016  # The inner shell expands them.
  step "unpack packages" 60 bash -euo pipefail -c \
    'for package in "$1"/*.deb; do dpkg-deb --extract "$package" "$2"; done' - "$deps" "$prefix" || true
  # The packages keep libraries in folders named after the processor. These go into the programs' search path, as
  # RPATH, not RUNPATH: only the former also counts for libraries that libraries need. An environment variable
  # would give CMake and Python the wrong libraries, too.
  folders=$(find "$prefix"/lib "$prefix"/usr/lib -maxdepth 1 -name '*-linux-gnu*' 2>/dev/null | paste -sd :)
  options+=("-DCMAKE_PREFIX_PATH=$prefix/usr" "-DCMAKE_EXE_LINKER_FLAGS=-Wl,--disable-new-dtags,-rpath,$folders")
  # CMake shall search HDF5 itself: a compiler wrapper would be that of the system, or name folders below /usr.
  options+=(-DHDF5_C_COMPILER_EXECUTABLE=/bin/false -DHDF5_NO_FIND_PACKAGE_CONFIG_FILE=ON)
fi
if command -v ninja >/dev/null; then options+=(-G Ninja); fi

# Tests that look at files with h5py are configured and not built, so any Python will do.
if ((failed == 0)) &&
  step configure 120 cmake -S "$root" -B "$build" -DCMAKE_BUILD_TYPE=Release -DCHUNKIO_WITH_CUDA=ON \
    -DCHUNKIO_BUILD_TOOLS=OFF -DCHUNKIO_BUILD_SAMPLES=OFF -DCHUNKIO_BUILD_TESTS=ON -DCHUNKIO_BUILD_BENCH=ON \
    -DCMAKE_CUDA_ARCHITECTURES="${CUDA_ARCHITECTURES:-native}" \
    -DCHUNKIO_H5PY_PYTHON="$(command -v python3)" "${options[@]}" &&
  step build $((TIME - 210)) cmake --build "$build" --parallel "${JOBS:-$(nproc)}" \
    --target cuda_test device_test kernel; then
  # The trainers are built beside the tests, and nothing that is timed runs meanwhile. Not before, because CMake asks
  # LibTorch about CUDA, and what goes wrong there shall cost nothing else.
  trainers=
  # shellcheck disable=SC2016  # The inner shell expands them.
  if step "configure trainers" 60 bash -euo pipefail -c \
    'torch=$(python3 -c "import torch; print(torch.utils.cmake_prefix_path)")
     cmake -S "$1" -B "$2" -DCHUNKIO_BUILD_SAMPLES=ON -DTorch_DIR="$torch/Torch"' - "$root" "$build"; then
    { timeout --kill-after=10 200 cmake --build "$build" --parallel "${JOBS:-$(nproc)}" \
      --target chunkio-train-cifar chunkio-train-celeba training_files >"$out/trainers.log" 2>&1 &&
      touch "$out/trainers.built"; } &
    trainers=$!
  fi
  step "tests with a pretended GPU" 90 "$build/tests/device_test" || true
  step "tests on the GPU" 60 "$build/tests/cuda_test" || true
  sanitize memcheck 120 "$MEMCHECK_FILTER"
  # shellcheck disable=SC2016  # The inner shell expands them.
  if [[ -n $trainers ]] && ! step "build trainers" 200 bash -c \
    'tail --pid="$1" --follow /dev/null; cat "$2/trainers.log"; [[ -e $2/trainers.built ]]' - "$trainers" "$out"; then
    trainers=
  fi
  torch=()
  if step "PyTorch" 90 python3 bench/gpu/compare_torch.py --json "$out/torch.json"; then
    torch=(--torch "$out/torch.json")
  fi
  step "figures" 180 "$build/bench/gpu/kernel" "${torch[@]}" --json "$out/kernel.json" \
    --markdown "$out/figures.md" || true
  if [[ -n $trainers ]]; then
    seconds=$((deadline - SECONDS - 15))
    if ((seconds > 120)); then seconds=120; fi
    step "trainers" 140 python3 bench/gpu/compare_loaders.py --build "$build" --dir "$out/trainers" \
      --seconds "$seconds" --markdown "$out/trainers.md" --json "$out/trainers.json" || true
  fi
  # Last, because of all they are missed least if time runs out.
  sanitize racecheck 60 "$SHORT_FILTER"
  sanitize synccheck 45 "$SHORT_FILTER"
  sanitize initcheck 45 "$SHORT_FILTER"
fi

version_of() { { "$@" 2>/dev/null || echo "no ${1##*/}"; } | head -n 1; }
{
  cat <<TEXT
# GPU path: run

Written by \`bench/gpu/run.sh\`, which also says how.

- $(date -u +%Y-%m-%d); $(version_of nvidia-smi --query-gpu=name,memory.total --format=csv,noheader); driver \
$(version_of nvidia-smi --query-gpu=driver_version --format=csv,noheader)
- nvcc $( (nvcc --version 2>/dev/null || echo "none") | sed -n 's/.*release \(.*\), .*/\1/p; /^none/p'), \
$(version_of c++ --version), $(version_of cmake --version), $(version_of python3 --version)
- Linux $(uname -r), $(nproc) CPUs$(git rev-parse --short HEAD 2>/dev/null | sed 's/^/; commit /')

| step | | seconds |
|---|---|---|
$table$tails
TEXT
  if [[ -e $out/figures.md ]]; then
    cat "$out/figures.md"
  else
    echo "No figures were taken."
  fi
  if [[ -e $out/trainers.md ]]; then
    echo
    cat "$out/trainers.md"
  fi
} >"$out/results.part"
mv "$out/results.part" "$results"
rm -f "$out"/{tail,trainers.log,trainers.built}
echo "run.sh: wrote $results"
exit "$failed"
