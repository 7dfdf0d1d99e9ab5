#!/usr/bin/env bash
# Collects the Debian packages that the library, its CUDA tests and the GPU bench need, for a GPU host that
# cannot fetch any:
#
#   bench/gpu/fetch-deps.sh FOLDER        (.gpu-deps is where bench/gpu/run.sh looks)
#
# For a machine with Debian or Ubuntu and a network, of the processor type of the GPU host and no newer than
# that. Needs no root and installs nothing. What is in the folder already is not fetched again.
set -euo pipefail

# apt-get adds what these need.
WANTED=(libhdf5-dev libxxhash-dev libdeflate-dev nlohmann-json3-dev libgtest-dev libgmock-dev libcli11-dev)
# Beside the essential packages, the C and C++ libraries must be the GPU host's own; so they end the search.
COMPILER=(libc6-dev libstdc++6)
LIMIT=$((60 << 20))

fail() {
  echo "fetch-deps.sh: $*" >&2
  exit 1
}

if [[ $# -eq 1 && ($1 == --help || $1 == -h) ]]; then
  sed -n '2,/^set/ s/^# \?//p' "${BASH_SOURCE[0]}"
  exit 0
fi
if [[ $# -ne 1 || -z $1 || $1 == -* ]]; then
  echo "usage: $0 FOLDER" >&2
  exit 2
fi
for program in apt-get apt-cache dpkg; do
  command -v "$program" >/dev/null || fail "no $program here; this needs a machine with Debian or Ubuntu"
done
mkdir -p "$1" || fail "cannot make the folder $1"
folder=$(cd "$1" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# apt-get as on a machine on which is installed what $scratch/status says.
apt_get() {
  if ! apt-get --quiet=2 --yes --no-install-recommends \
    -o Dir::State::status="$scratch/status" -o Dir::State::extended_states="$scratch/extended" \
    -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache= -o Debug::NoLocking=true \
    -o APT::Sandbox::User="$(id --user --name)" "$@" 2>"$scratch/errors"; then
    fail "apt-get: $(tail -n 1 "$scratch/errors") (old package lists? apt-get update)"
  fi
}

# What every machine has: the essential packages with all they need; and the compiler's libraries, as packages of
# a version that no other follows.
: >"$scratch/status"
apt-cache dumpavail >"$scratch/available" || fail "apt-cache cannot list packages"
mapfile -t essential < <(awk -v RS= -F '\n' \
  '/\nEssential: yes/ { sub("Package: ", "", $1); print $1 }' "$scratch/available" | sort --unique)
[[ ${#essential[@]} -gt 0 ]] || fail "there are no package lists; run apt-get update first"
apt_get --simulate install "${essential[@]}" >"$scratch/bare"
mapfile -t bare < <(awk '$1 == "Inst" { print $2 }' "$scratch/bare")
{
  apt-cache show --no-all-versions "${bare[@]}"
  apt-cache show --no-all-versions "${COMPILER[@]}" |
    sed --quiet '/^\(Package\|Architecture\|Multi-Arch\|Maintainer\|Provides\):\|^$/p; s/^Version:.*/Version: 999/p'
} | sed '/^Package:/a Status: install ok installed' >"$scratch/bare-status"
mv "$scratch/bare-status" "$scratch/status"

# Lines of: 'ADDRESS' FILE SIZE CHECKSUM
mkdir -p "$scratch/none/partial"
apt_get --print-uris -o Dir::Cache::archives="$scratch/none" install "${WANTED[@]}" >"$scratch/plan"
mapfile -t files < <(awk '{ print $2 }' "$scratch/plan")
bytes=$(awk '{ sum += $3 } END { print sum + 0 }' "$scratch/plan")
[[ $bytes -gt 0 ]] || fail "apt-get found nothing to fetch"
[[ $bytes -le $LIMIT ]] || fail "$bytes bytes of packages are more than the $LIMIT that may be carried"

# Other versions of an earlier run would be unpacked, too.
for file in "$folder"/*.deb; do
  if [[ -e $file && " ${files[*]} " != *" ${file##*/} "* ]]; then
    rm "$file"
  fi
done
mkdir -p "$folder/partial"
apt_get --download-only -o Dir::Cache::archives="$folder" install "${WANTED[@]}" >/dev/null
rm -rf "$folder/partial" "$folder/lock"
for file in "${files[@]}"; do
  [[ -s $folder/$file ]] || fail "$file was not fetched"
done

printf '%s\n' "${files[@]}" | sort
echo "fetch-deps.sh: ${#files[@]} packages, $((bytes >> 10)) KiB, in $folder"
