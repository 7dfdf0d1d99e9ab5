#!/usr/bin/env bash
# Builds, tests and measures the GPU path on a host with a GPU, in less than ten minutes:
#
#   bench/gpu/run.sh [--deps FOLDER] [--out FOLDER] [--only PARTS]
#   bench/gpu/run.sh --merge FOLDER [--merge FOLDER ...] [--out FOLDER]
#
#   --deps FOLDER   packages that fetch-deps.sh collected; default .gpu-deps if it is there, else what the
#                   system has. They are unpacked into build/gpu, the system stays as it is
#   --out FOLDER    where RESULTS-gpu.md, figures.json, torch.json, trainers.json, logs and parts go; default: bench for
#                   the first, build/gpu/out for the others
#   --only PARTS    some of tests, figures, trainers and sanitizers, with commas between them, each with what it needs
#                   of the build. RESULTS-gpu.md keeps what earlier runs left of the other parts in the same folder
#   --merge FOLDER  runs nothing: makes one RESULTS-gpu.md of what earlier runs left in their --out folders; of a part
#                   that several have, the one of the last folder
#
# Needs CUDA, a C++ compiler, CMake, ninja or make, and Python; PyTorch for the comparison with it and for the
# trainers, which link with it, and torchvision for one more comparison. Variables: CUDA_ARCHITECTURES (as for
# CMake; default: that of the device), TIME_LIMIT (seconds for all steps; default 540), JOBS (of the build).
#
# A step that fails is reported in RESULTS-gpu.md, and the others go on; the exit code is then 1. The file is written
# after every step, so whatever ends the run leaves what was done before.
set -euo pipefail

# Seconds that all steps may take together.
TIME=${TIME_LIMIT:-540}
# All forms of the kernel on little data, and all that goes on round it.
SHORT_FILTER='CudaGpuTest.EveryForm*:CudaGpuTest.DeviceLoader*'
# Judges by the clock, and compilers run beside it.
PRETENDED_FILTER='-DeviceLoaderTest.StatisticsName*'

# In the order in which they run.
PARTS=(tests figures trainers sanitizers)

usage() {
  sed -n '2,/^set/ s/^# \?//p' "${BASH_SOURCE[0]}"
  exit "$1"
}

deps=
out=
only=
merge=()
while [[ $# -gt 0 ]]; do
  case $1 in
    --deps | --out | --only | --merge)
      [[ $# -gt 1 && -n $2 ]] || usage 2 >&2
      case $1 in
        --deps) deps=$(realpath -m -- "$2") ;;
        --out) out=$(realpath -m -- "$2") ;;
        --only) only=$2 ;;
        --merge) merge+=("$(realpath -m -- "$2")") ;;
      esac
      shift 2
      ;;
    -h | --help) usage 0 ;;
    *) usage 2 >&2 ;;
  esac
done
IFS=, read -ra chosen <<<"${only:-$(IFS=,; echo "${PARTS[*]}")}"
for part in "${chosen[@]}"; do
  if [[ " ${PARTS[*]} " != *" $part "* ]]; then
    echo "run.sh: --only has no part '$part'; there are ${PARTS[*]}" >&2
    exit 2
  fi
done
if [[ ${#merge[@]} -gt 0 && -n $only$deps ]]; then
  echo "run.sh: --merge runs nothing, so it goes with --out alone" >&2
  exit 2
fi

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
root=$PWD
work=$root/build/gpu
build=$work/build
results=${out:-$root/bench}/RESULTS-gpu.md
out=${out:-$work/out}
logs=$out/logs
# For each part: PART.steps and PART.running (rows of Markdown), PART.tails (ends of the logs of steps that failed), PART.where (on
# what and when), and PART.md (its figures).
parts=$out/parts
prefix=$work/deps
if [[ -z $deps && -d .gpu-deps && ${#merge[@]} -eq 0 ]]; then deps=$root/.gpu-deps; fi
if [[ -n $deps && ! -d $deps ]]; then
  echo "run.sh: there is no folder $deps; bench/gpu/fetch-deps.sh makes one" >&2
  exit 2
fi
for folder in "${merge[@]}"; do
  if [[ ! -d $folder/parts ]]; then
    echo "run.sh: there are no parts in $folder; it shall be what was --out of an earlier run" >&2
    exit 2
  fi
done
mkdir -p "$parts" "$(dirname "$results")"

# has PART: whether it is to be run.
has() { [[ " ${chosen[*]} " == *" $1 "* ]]; }

# Where CUDA goes by default, and is often not on the path.
PATH=$PATH:/usr/local/cuda/bin

# write_results: RESULTS-gpu.md, of all parts that there are.
write_results() {
  local name where
  local -A names=()
  local -a places=()
  {
    # shellcheck disable=SC2016  # Backticks of Markdown, here and below.
    printf '# GPU path: run\n\nWritten by `bench/gpu/run.sh`, which also says how.\n\n'
    for name in "${PARTS[@]}"; do
      [[ -e $parts/$name.where ]] || continue
      where=$(<"$parts/$name.where")
      if [[ -z ${names[$where]:-} ]]; then places+=("$where"); fi
      names[$where]+="${names[$where]:+, }$name"
    done
    for where in "${places[@]}"; do echo "- ${names[$where]}: $where"; done
    printf '\n| part | step | | seconds |\n|---|---|---|---|\n'
    for name in "${PARTS[@]}"; do
      if [[ -e $parts/$name.steps ]]; then cat "$parts/$name.steps"; fi
      if [[ -e $parts/$name.running ]]; then cat "$parts/$name.running"; fi
    done
    for name in "${PARTS[@]}"; do
      if [[ -e $parts/$name.tails ]]; then cat "$parts/$name.tails"; fi
    done
    echo
    if [[ -s $parts/figures.md ]]; then cat "$parts/figures.md"; else echo "No figures were taken."; fi
    echo
    if [[ -s $parts/trainers.md ]]; then cat "$parts/trainers.md"; else echo "No trainer was measured."; fi
  } >"$out/results.part"
  mv "$out/results.part" "$results"
}

if [[ ${#merge[@]} -gt 0 ]]; then
  part=
  merged=$out/parts.merged
  rm -rf "$merged"
  mkdir "$merged"
  for folder in "${merge[@]}"; do
    for name in "${PARTS[@]}"; do
      # All of a part or nothing: a newer one that failed has no figures.
      if [[ -e $folder/parts/$name.where ]]; then
        rm -f "$merged/$name".*
        cp "$folder/parts/$name".* "$merged"
      fi
    done
  done
  rm -rf "$parts"
  mv "$merged" "$parts"
  write_results
  echo "run.sh: wrote $results"
  exit 0
fi

version_of() { { "$@" 2>/dev/null || echo "no ${1##*/}"; } | head -n 1; }
where="$(date -u +%Y-%m-%d); $(version_of nvidia-smi --query-gpu=name,memory.total --format=csv,noheader), driver \
$(version_of nvidia-smi --query-gpu=driver_version --format=csv,noheader); \
nvcc $( (nvcc --version 2>/dev/null || echo "none") | sed -n 's/.*release \(.*\), .*/\1/p; /^none/p'), \
$(version_of c++ --version), $(version_of cmake --version), $(version_of python3 --version); \
Linux $(uname -r), $(nproc) CPUs$( (git rev-parse --short HEAD 2>/dev/null || true) | sed 's/^/; commit /')"

rm -rf "$logs"
mkdir -p "$logs"
rm -f "$out"/trainers.built
for name in "${chosen[@]}"; do rm -f "$parts/$name".*; done
if has figures; then rm -f "$out"/{figures.json,torch.json}; fi
if has trainers; then rm -f "$out"/trainers.json; fi
# What all need is reported with the first.
for part in "${PARTS[@]}"; do
  if has "$part"; then break; fi
done

deadline=$((SECONDS + TIME))
failed=0

# Without names of folders of this machine: RESULTS-gpu.md may be committed.
without_folders() {
  local text
  text=$(cat)
  text=${text//"$out/"/}
  text=${text//"${deps:-$root}/"/}
  text=${text//"$root/"/}
  text=${text//"$root"/.}
  text=${text//"${HOME:-$root}/"/\~/}
  printf '%s\n' "$text"
}

# step NAME LIMIT COMMAND...: runs it for LIMIT seconds at most, as a step of $part. Tests that were skipped for want
# of a GPU count as failed: all this is about one. Returns whether it passed.
step() {
  local name=$1 limit=$2 begin=$SECONDS status=0 result=passed counts
  local log=$logs/${1// /-}.log
  shift 2
  if ((deadline - SECONDS < limit)); then limit=$((deadline - SECONDS)); fi
  echo "run.sh: $name"
  echo "$where" >"$parts/$part.where"
  echo "| $part | $name | FAILED: the run ended before it did | |" >"$parts/$part.running"
  write_results
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
  result+="${counts:+ (${counts//,/, })}"
  echo "run.sh: $name: $result"
  rm "$parts/$part.running"
  echo "| $part | $name | $result | $((SECONDS - begin)) |" >>"$parts/$part.steps"
  if ((status != 0)); then
    failed=1
    tail -n 15 "$log" | without_folders | sed 's/^/    /' >"$out/tail"
    cat "$out/tail" >&2
    # shellcheck disable=SC2016
    printf '\nThe end of what `%s` wrote:\n\n%s\n' "$name" "$(<"$out/tail")" >>"$parts/$part.tails"
  fi
  write_results
  return $((status != 0))
}

# sanitize TOOL LIMIT FILTER [OPTION...]
sanitize() {
  step "compute-sanitizer $1" "$2" compute-sanitizer --tool "$1" --error-exitcode 9 "${@:4}" \
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

# A program that is not asked for is not built.
targets=()
if has tests || has sanitizers; then targets+=(cuda_test device_test); fi
if has figures; then targets+=(figures); fi
if has trainers; then targets+=(training_files); fi

# Tests that look at files with h5py are configured and not built, so any Python will do.
if ((failed == 0)) &&
  step configure 120 cmake -S "$root" -B "$build" -DCMAKE_BUILD_TYPE=Release -DCHUNKIO_WITH_CUDA=ON \
    -DCHUNKIO_BUILD_TOOLS=OFF -DCHUNKIO_BUILD_SAMPLES=OFF -DCHUNKIO_BUILD_TESTS=ON -DCHUNKIO_BUILD_BENCH=ON \
    -DCMAKE_CUDA_ARCHITECTURES="${CUDA_ARCHITECTURES:-native}" \
    -DCHUNKIO_H5PY_PYTHON="$(command -v python3)" "${options[@]}" &&
  step build $((TIME - 210)) cmake --build "$build" --parallel "${JOBS:-$(nproc)}" --target "${targets[@]}"; then
  # The trainers are built beside the tests, and nothing that is timed runs meanwhile. Not before, because CMake asks
  # LibTorch about CUDA, and what goes wrong there shall cost nothing else.
  trainers=
  if has trainers; then
    part=trainers
    # shellcheck disable=SC2016  # The inner shell expands them.
    if step "configure trainers" 60 bash -euo pipefail -c \
      'torch=$(python3 -c "import torch; print(torch.utils.cmake_prefix_path)")
       cmake -S "$1" -B "$2" -DCHUNKIO_BUILD_SAMPLES=ON -DTorch_DIR="$torch/Torch"' - "$root" "$build"; then
      { timeout --kill-after=10 200 cmake --build "$build" --parallel "${JOBS:-$(nproc)}" \
        --target chunkio-train-cifar chunkio-train-celeba >"$out/trainers.log" 2>&1 &&
        touch "$out/trainers.built"; } &
      trainers=$!
    fi
  fi
  if has tests; then
    part=tests
    step "tests with a fake GPU" 90 "$build/tests/device_test" --gtest_filter="$PRETENDED_FILTER" || true
    step "tests on the GPU" 60 "$build/tests/cuda_test" || true
    # What a call returns the tests see for themselves, and ask for what is not there.
    sanitize memcheck 120 '*' --report-api-errors no
  fi
  if [[ -n $trainers ]]; then
    part=trainers
    # shellcheck disable=SC2016  # The inner shell expands them.
    if ! step "build trainers" 200 bash -c \
      'tail --pid="$1" --follow /dev/null; cat "$2/trainers.log"; [[ -e $2/trainers.built ]]' - "$trainers" "$out"; then
      trainers=
    fi
  fi
  if has figures; then
    part=figures
    torch=()
    if step "PyTorch" 90 python3 bench/gpu/compare_torch.py --json "$out/torch.json"; then
      torch=(--torch "$out/torch.json")
    fi
    step "figures" 180 "$build/bench/figures" gpu "${torch[@]}" --json "$out/figures.json" \
      --markdown "$parts/figures.md" || true
  fi
  if [[ -n $trainers ]]; then
    part=trainers
    seconds=$((deadline - SECONDS - 15))
    # With nothing else to be done there is time for longer trainings.
    most=120
    if [[ ${#chosen[@]} -eq 1 ]]; then most=300; fi
    if ((seconds > most)); then seconds=$most; fi
    if ((seconds < 0)); then seconds=0; fi
    step "trainers" $((most + 20)) python3 bench/gpu/compare_loaders.py --build "$build" --dir "$out/trainers" \
      --seconds "$seconds" --markdown "$parts/trainers.md" --json "$out/trainers.json" || true
  fi
  if has sanitizers; then
    part=sanitizers
    # Last, because of all they are missed least if time runs out.
    sanitize racecheck 60 "$SHORT_FILTER"
    sanitize synccheck 45 "$SHORT_FILTER"
    sanitize initcheck 45 "$SHORT_FILTER"
  fi
fi

rm -f "$out"/{tail,trainers.log,trainers.built}
echo "run.sh: wrote $results"
exit "$failed"
