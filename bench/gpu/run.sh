#!/usr/bin/env bash
# Builds, tests and measures the GPU path on a host with a GPU, in some ten minutes:
#
#   bench/gpu/run.sh [--deps FOLDER] [--out FOLDER] [--only PARTS]
#
#   --deps FOLDER   packages that fetch-deps.sh collected; default .gpu-deps if it is there, else what the
#                   system has. They are unpacked into build/gpu, the system stays as it is
#   --out FOLDER    where RESULTS-gpu.md, JSON and logs go; default: build/gpu/out
#   --only PARTS    some of tests, figures, sanitizers, training and trainers, with commas between them, for a host that
#                   is lent for less than all of them take; each run has a page of its own
#
# Needs CUDA, a C++ compiler, CMake, ninja or make, and Python; PyTorch for the comparison with it and for the
# trainers, which link with it, and torchvision for more comparisons. With nanobind, h5py, pynvml and pytest, what is
# in Python is tested and trains, too. Variables: CUDA_ARCHITECTURES (as for CMake; default: that of the device),
# TIME_LIMIT (seconds for all steps; default 540), JOBS (of the build).
#
# A step that fails is a row of RESULTS-gpu.md, and the others go on; the exit code is then 1. The file is written
# after every step, so whatever ends the run leaves what was done before.
set -euo pipefail

# All forms of the kernel on little data, and all that goes on round it.
SHORT_FILTER='CudaGpuTest.EveryForm*:CudaGpuTest.DeviceLoader*:DeviceLoaderSparseTest.DeliversTheRows*'
# What a tool that is ten times as slow has the time for.
MEMCHECK_FILTER='CudaGpuTest.*:DeviceLoaderSparseTest.*-CudaGpuTest.LoadersThatAreDropped*'
PARTS=tests,figures,sanitizers,training,trainers

usage() {
  sed -n '2,/^set/ s/^# \?//p' "${BASH_SOURCE[0]}"
  exit "$1"
}

deps=
out=
only=$PARTS
while [[ $# -gt 0 ]]; do
  case $1 in
    -h | --help) usage 0 ;;
    --deps | --out | --only) [[ $# -gt 1 && -n $2 ]] || usage 2 >&2 ;;&
    --deps) deps=$(realpath -m -- "$2") ;;
    --out) out=$(realpath -m -- "$2") ;;
    --only) only=$2 ;;
    *) usage 2 >&2 ;;
  esac
  shift 2
done
for part in ${only//,/ }; do
  if [[ ,$PARTS, != *,$part,* ]]; then
    echo "run.sh: --only has no part '$part'; there are $PARTS" >&2
    exit 2
  fi
done

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
root=$PWD
if [[ -z $deps && -d .gpu-deps ]]; then deps=$root/.gpu-deps; fi
if [[ -n $deps && ! -d $deps ]]; then
  echo "run.sh: there is no folder $deps; bench/gpu/fetch-deps.sh makes one" >&2
  exit 2
fi
build=$root/build/gpu/build
prefix=$root/build/gpu/deps
python_path=$build/libchunkio/python${PYTHONPATH:+:$PYTHONPATH}
out=${out:-$root/build/gpu/out}
results=$out/RESULTS-gpu.md
# Where CUDA goes by default, and is often not on the path.
PATH=$PATH:/usr/local/cuda/bin
rm -rf "$out/logs" "$out"/{figures,training,trainers}.md "$out"/{figures,torch,training,trainers,timeline}.json
mkdir -p "$out/logs"
deadline=$((SECONDS + ${TIME_LIMIT:-540}))
failed=0
rows=

# has PART: whether it is to be run.
has() { [[ ,$only, == *,$1,* ]]; }

version_of() { { "$@" 2>/dev/null || echo "no ${1##*/}"; } | head -n 1; }
where="$(date -u +%Y-%m-%d); $(version_of nvidia-smi --query-gpu=name,memory.total --format=csv,noheader), driver \
$(version_of nvidia-smi --query-gpu=driver_version --format=csv,noheader); \
nvcc $( (nvcc --version 2>/dev/null || echo "none") | sed -n 's/.*release \(.*\), .*/\1/p; /^none/p'), \
$(version_of c++ --version), $(version_of cmake --version), $(version_of python3 --version); \
Linux $(uname -r), $(nproc) CPUs$( (git rev-parse --short HEAD 2>/dev/null || true) | sed 's/^/; commit /')"

write_results() {
  {
    # shellcheck disable=SC2016  # Backticks of Markdown.
    printf '# GPU path: run\n\nWritten by `bench/gpu/run.sh`, which also says how.\n\n%s\n' "$where"
    printf '\n| step | | seconds |\n|---|---|---|\n%s\n' "$rows"
    cat "$out"/{figures,training,trainers}.md 2>/dev/null || true
  } >"$out/results.part"
  mv "$out/results.part" "$results"
}

# step NAME LIMIT COMMAND...: runs it for LIMIT seconds at most, and says in RESULTS-gpu.md what came of it. Tests that
# were skipped for want of a GPU count as failed: all this is about one. Returns whether it passed.
step() {
  local name=$1 limit=$2 begin=$SECONDS status=0 result=passed counts
  local log=$out/logs/${1// /-}.log
  shift 2
  if ((deadline - SECONDS < limit)); then limit=$((deadline - SECONDS)); fi
  echo "run.sh: $name"
  if ((limit > 0)); then
    timeout --kill-after=10 "$limit" "$@" >"$log" 2>&1 || status=$?
  else
    echo "no time was left" >"$log"
    status=124 limit=0
  fi
  counts=$(sed -n 's/^\[ *\(PASSED\|SKIPPED\|FAILED\) *\] \([0-9]\+\) tests\?[.,].*/\2 \L\1/p' "$log" | paste -sd ,)
  case $status in
    0) if [[ $* == *cuda_test* && $counts == *skipped* ]]; then status=1 result=SKIPPED; fi ;;
    124 | 137) result="FAILED: not done after $limit s" ;;
    *) result="FAILED: exit code $status" ;;
  esac
  result+="${counts:+ (${counts//,/, })}"
  echo "run.sh: $name: $result"
  rows+="| $name | $result | $((SECONDS - begin)) |"$'\n'
  if ((status != 0)); then
    failed=1
    tail -n 15 "$log" >&2
  fi
  write_results
  return $((status != 0))
}

leave_out() {
  rows+="| $1 | left out: nanobind, h5py, pynvml and pytest are not all there | 0 |"$'\n'
  write_results
}

# sanitize TOOL LIMIT FILTER [OPTION...]
sanitize() {
  step "compute-sanitizer $1" "$2" compute-sanitizer --tool "$1" --error-exitcode 9 "${@:4}" \
    "$build/tests/cuda_test" --gtest_filter="$3" || true
}

# build NAME LIMIT TARGET...
build() { step "$1" "$2" cmake --build "$build" --parallel "${JOBS:-$(nproc)}" --target "${@:3}"; }

options=()
if [[ -n $deps ]]; then
  rm -rf "$prefix"
  mkdir -p "$prefix"
  # shellcheck disable=SC2016  # The inner shell expands them.
  step "unpack packages" 60 bash -euo pipefail -c \
    'for package in "$1"/*.deb; do dpkg-deb --extract "$package" "$2"; done' - "$deps" "$prefix" || exit 1
  # The packages keep libraries in folders named after the processor. These go into the programs' search path, as
  # RPATH, not RUNPATH: only the former also counts for libraries that libraries need. An environment variable
  # would give CMake and Python the wrong libraries, too.
  folders=$(find "$prefix"/lib "$prefix"/usr/lib -maxdepth 1 -name '*-linux-gnu*' 2>/dev/null | paste -sd :)
  options+=("-DCMAKE_PREFIX_PATH=$prefix/usr" "-DCMAKE_EXE_LINKER_FLAGS=-Wl,--disable-new-dtags,-rpath,$folders")
  # CMake shall search HDF5 itself: a compiler wrapper would be that of the system, or name folders below /usr.
  options+=(-DHDF5_C_COMPILER_EXECUTABLE=/bin/false -DHDF5_NO_FIND_PACKAGE_CONFIG_FILE=ON)
fi
if command -v ninja >/dev/null; then options+=(-G Ninja); fi

# A program that is not asked for is not built.
targets=()
if has tests || has sanitizers; then targets+=(cuda_test); fi
# Whether Python's part can be tested and train.
in_python=false
if python3 -c "import nanobind, h5py, pynvml, pytest" 2>/dev/null; then in_python=true; fi
if $in_python && (has tests || has training); then
  targets+=(chunkio_python chunkio_python_modules)
  options+=(-DCHUNKIO_BUILD_PYTHON=ON "-DPython_EXECUTABLE=$(command -v python3)")
fi
if has figures; then targets+=(figures); fi
if has trainers; then targets+=(training_files); fi

step configure 120 cmake -S "$root" -B "$build" -DCMAKE_BUILD_TYPE=Release -DCHUNKIO_WITH_CUDA=ON \
  -DCHUNKIO_BUILD_TOOLS=OFF -DCHUNKIO_BUILD_SAMPLES=OFF -DCHUNKIO_BUILD_TESTS=ON -DCHUNKIO_BUILD_BENCH=ON \
  -DCMAKE_CUDA_ARCHITECTURES="${CUDA_ARCHITECTURES:-native}" \
  -DCHUNKIO_H5PY_PYTHON="$(command -v python3)" "${options[@]}" || exit 1
if [[ ${#targets[@]} -gt 0 ]]; then build build 330 "${targets[@]}" || exit 1; fi

if has tests; then
  step "tests on the GPU" 180 "$build/tests/cuda_test" || true
  if $in_python; then
    step "tests in Python" 60 env PYTHONPATH="$python_path" python3 -m pytest -q tests/python/test_torch_cuda.py || true
  else
    leave_out "tests in Python"
  fi
fi
if has figures; then
  torch=()
  if step "PyTorch" 90 python3 bench/gpu/compare_torch.py --json "$out/torch.json"; then
    torch=(--torch "$out/torch.json")
  fi
  step "figures" 180 "$build/bench/figures" gpu "${torch[@]}" --json "$out/figures.json" --markdown "$out/figures.md" ||
    true
fi
if has sanitizers; then
  # What a call returns the tests see for themselves, and ask for what is not there.
  sanitize memcheck 120 "$MEMCHECK_FILTER" --report-api-errors no
  for tool in racecheck synccheck initcheck; do sanitize "$tool" 60 "$SHORT_FILTER"; done
fi
if has training && ! $in_python; then
  leave_out training
elif has training; then
  step "training" 240 env PYTHONPATH="$python_path" python3 bench/gpu/compare_training.py --dir "$out/training" \
    --rounds 3 --seconds 1.5 --markdown "$out/training.md" --json "$out/training.json" \
    --timeline "$out/timeline.json" || true
fi
if has trainers; then
  # With the LibTorch of Python's PyTorch. Apart from the rest, because CMake asks LibTorch about CUDA, and what goes
  # wrong there shall cost nothing else.
  # shellcheck disable=SC2016  # The inner shell expands them.
  if step "configure trainers" 60 bash -euo pipefail -c \
    'torch=$(python3 -c "import torch; print(torch.utils.cmake_prefix_path)")
     cmake -S "$1" -B "$2" -DCHUNKIO_BUILD_SAMPLES=ON -DTorch_DIR="$torch/Torch"' - "$root" "$build" &&
    build "build trainers" 200 chunkio-train-cifar chunkio-train-celeba; then
    seconds=$((deadline - SECONDS > 315 ? 300 : deadline - SECONDS - 15))
    step "trainers" 320 python3 bench/gpu/compare_loaders.py --build "$build" --dir "$out/trainers" \
      --seconds "$seconds" --markdown "$out/trainers.md" --json "$out/trainers.json" || true
  fi
fi

echo "run.sh: wrote $results"
exit "$failed"
