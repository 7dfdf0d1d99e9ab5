#!/usr/bin/env bash
# The seed experiments as one command: builds what is needed, climbs the ladder, and draws it.
#
#   bench/story.sh [--profile hdd] [--folder DIR] [--output FILE.json] ...     all options: bench/story.sh --help
#
# On the disk that --profile or --limit-... say (default: that of a SATA SSD), whatever this machine has. Prints the table; writes
# story.json, or what --output says, and the page chunkbench draws of it beside it.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=${BUILD:-$here/build/release}

output=story.json
defaults=(--profile sata-ssd)
arguments=("$@")
for ((i = 0; i < $#; ++i)); do
  case ${arguments[i]} in
    --output) output=${arguments[i + 1]:-} ;;
    --output=*) output=${arguments[i]#--output=} ;;
    --profile* | --limit-*) defaults=() ;;
    --help) set -- --help ;;
  esac
done
[[ " $* " == *" --output"* ]] || defaults+=(--output "$output")

if [[ ! -f $build/CMakeCache.txt ]]; then
  cmake -S "$here" --preset release -B "$build" -DCHUNKIO_BUILD_TESTS=OFF -DCHUNKIO_BUILD_SAMPLES=OFF >&2
fi
cmake --build "$build" --target story chunkbench >&2
if [[ ${1:-} == --help ]]; then
  exec "$build/bench/story/story" --help
fi
"$build/bench/story/story" "${defaults[@]}" "$@"
"$build/bench/chunkbench/chunkbench" report "$output" -o "${output%.json}.html"
echo "$output, ${output%.json}.html"
