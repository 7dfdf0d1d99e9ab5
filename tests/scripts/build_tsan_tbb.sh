#!/usr/bin/env bash
# Builds a oneTBB instrumented with ThreadSanitizer from the distribution's own source package.
#
#   bash tests/scripts/build_tsan_tbb.sh [PREFIX]      (default build/tsan-tbb)
#   TBB_DIR=$PWD/build/tsan-tbb/lib/cmake/TBB cmake --workflow --preset tsan
#
# With the distribution's uninstrumented oneTBB, ThreadSanitizer cannot see the synchronisation inside the
# library: it reports races that are none, and suppressing those hides real ones in our tasks.
set -euo pipefail
cd "$(dirname "$0")/../.."
prefix=$(mkdir -p "${1:-build/tsan-tbb}" && cd "${1:-build/tsan-tbb}" && pwd)
if [ -e "$prefix/lib/cmake/TBB/TBBConfig.cmake" ]; then
  echo "build_tsan_tbb: $prefix is there already"
  exit 0
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The configured package sources, asked for source packages; the system's own lists stay as they are.
mkdir -p "$work/sources.d" "$work/lists/partial"
for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
  if [ -e "$file" ]; then sed -n 's/^deb /deb-src /p' "$file" >>"$work/sources.d/all.list"; fi
done
for file in /etc/apt/sources.list.d/*.sources; do
  if [ -e "$file" ]; then
    sed 's/^Types:.*/Types: deb-src/' "$file" >"$work/sources.d/$(basename "$file")"
  fi
done
apt=(-o Dir::Etc::sourcelist=/dev/null -o Dir::Etc::sourceparts="$work/sources.d"
     -o Dir::State::Lists="$work/lists" -o APT::Sandbox::User=root)
apt-get "${apt[@]}" update
(cd "$work" && apt-get "${apt[@]}" source --download-only onetbb)
mkdir "$work/onetbb"
tar -xf "$work"/onetbb_*.orig.tar.* --strip-components=1 -C "$work/onetbb"

cmake -S "$work/onetbb" -B "$work/build" -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo \
  -DTBB_SANITIZE=thread -DTBB_TEST=OFF -DTBB_STRICT=OFF -DTBBMALLOC_BUILD=OFF \
  -DCMAKE_INSTALL_LIBDIR=lib -DCMAKE_INSTALL_PREFIX="$prefix"
cmake --build "$work/build" --target install
