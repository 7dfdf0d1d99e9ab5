#!/usr/bin/env bash
# Installs the Debian packages on a clean system, made by debootstrap, and tries each: h5pack packs, streams and verifies
# images; a program is built with the CMake package and with pkg-config, and run. Needs root, debootstrap and a network.
#
#   cmake --workflow --preset deb && bash tools/packaging/check_deb.sh build/deb/packages
# shellcheck disable=SC2016  # What is in single quotes is expanded elsewhere.
set -euo pipefail
packages=$(realpath "${1:?usage: check_deb.sh FOLDER_OF_PACKAGES}")
root=$(realpath "$(dirname "${BASH_SOURCE[0]}")/../..")
# shellcheck source=/dev/null
release=$(. /etc/os-release && echo "$VERSION_CODENAME")
# The same mirror that this system uses.
mirror=$(apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(COMPONENT)' | awk -v release="$release" '$2 == release && $3 == "main" { print $1; exit }')

clean=$(mktemp -d)
trap 'rm -rf --one-file-system "$clean"' EXIT
debootstrap --variant=minbase "$release" "$clean" "$mirror" >/dev/null
find /etc/apt -name '*.conf' -path '*apt.conf.d*' -exec cp -t "$clean/etc/apt/apt.conf.d" {} +
mkdir "$clean/packages" "$clean/consumer"
cp "$packages"/*.deb "$clean/packages"
cp "$root"/tests/consumer/* "$clean/consumer"

inside() { chroot "$clean" env DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 bash -euo pipefail -c "$1"; }
inside 'apt-get update -qq && apt-get install --yes --no-install-recommends -qq /packages/h5pack_*.deb /packages/libchunkio0_*.deb >/dev/null'
inside 'h5pack --version'
# Images without any other program: PNM is a header and pixels.
inside 'mkdir -p /photos/cat /photos/dog; for i in 1 2 3 4; do for c in cat dog; do { printf "P6\n32 32\n255\n"; head -c 3072 /dev/urandom; } >/photos/$c/$i.ppm; done; done
cd /tmp && h5pack folder /photos -o train.h5 --quiet && h5pack info train.h5 && h5pack stream train.h5 --batch 4 --quiet && h5pack verify train.h5
test -s /usr/share/man/man1/h5pack-folder.1.gz && test -s /usr/share/bash-completion/completions/h5pack'
inside 'apt-get install --yes --no-install-recommends -qq /packages/libchunkio-dev_*.deb g++ cmake make pkg-config >/dev/null
cd /tmp && cmake -S /consumer -B by-cmake >/dev/null && cmake --build by-cmake && ./by-cmake/consumer
g++ -std=c++20 /consumer/main.cpp -o by-pkg-config $(pkg-config --cflags --libs chunkio) && ./by-pkg-config'
inside 'apt-get purge --yes -qq h5pack libchunkio0 libchunkio-dev >/dev/null && ! find /usr -name "*chunkio*" -o -name "*h5pack*" | grep .'
echo "The packages install, work and go without a trace on $release."
