#!/usr/bin/env bash
# The seed experiments as one command: builds what is needed, climbs the ladder, and draws it.
#
#   bench/story.sh [--simulate-disk hdd] [--folder DIR] [--output FILE.json] ...     all options: bench/story.sh --help
#
# On the disk that --simulate-disk or --limit-... say (default: that of a SATA SSD), whatever this machine has. Prints the table; writes
# story.json, or what --output says, and the page of it beside it, or where --page says. Neither may be there unless with --force.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=${BUILD:-$here/build/release}

output=story.json
page=
defaults=(--simulate-disk sata-ssd)
arguments=("$@")
for ((i = 0; i < $#; ++i)); do
  case ${arguments[i]} in
    --output) output=${arguments[i + 1]:-} ;;
    --output=*) output=${arguments[i]#--output=} ;;
    --page) page=${arguments[i + 1]:-} ;;
    --page=*) page=${arguments[i]#--page=} ;;
    --simulate-disk* | --limit-*) defaults=() ;;
    --help) set -- --help ;;
  esac
done
[[ " $* " == *" --output"* ]] || defaults+=(--output "$output")
if [[ " $* " != *" --page"* ]]; then
  page=${output%.json}.html
  defaults+=(--page "$page")
fi

if [[ ! -f $build/CMakeCache.txt ]]; then
  cmake -S "$here" --preset release -B "$build" -DCHUNKIO_BUILD_SAMPLES=OFF >&2
fi
cmake --build "$build" --target story >&2
if [[ ${1:-} == --help ]]; then
  exec "$build/bench/story/story" --help
fi
"$build/bench/story/story" "${defaults[@]}" "$@"
echo "$output, $page"
