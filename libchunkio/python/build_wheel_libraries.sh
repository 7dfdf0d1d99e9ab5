#!/usr/bin/env bash
# Builds what a wheel brings along: static libraries of HDF5, zlib, libdeflate, libjpeg-turbo, libpng and libwebp, and
# the headers of xxHash and nlohmann_json. libjpeg-turbo needs nasm on x86-64, without which it would be several times
# slower.
#
#   bash libchunkio/python/build_wheel_libraries.sh PREFIX
#
# HDF5_SOURCE, ZLIB_SOURCE, LIBDEFLATE_SOURCE, JPEG_SOURCE, PNG_SOURCE, WEBP_SOURCE, XXHASH_SOURCE and JSON_SOURCE name a
# folder or a tarball to build from. Without them, Debian builds from the source packages of Debian 13, as its configured mirror serves them; any other
# system downloads the release archives, whose digests are checked.
#
# HDF5 has the deflate filter only, and no lock of its own: the library holds one around every call.
set -euo pipefail
debian_suite=trixie
prefix=$(mkdir -p "${1:?name the folder to install to}" && cd "$1" && pwd)
if [[ -e $prefix/.complete ]]; then
  echo "build_wheel_libraries: $prefix is complete already"
  exit 0
fi
work=$prefix/work
rm -rf "$work"
mkdir "$work"
trap 'rm -rf "$work"' EXIT
# Messages of HDF5 name source files, without the folder that they were built in.
export CFLAGS="-O3 -fPIC -ffile-prefix-map=$work/="

# The release archive of a library: its address and its SHA-256 digest.
archive_of() {
  case $1 in
    hdf5)
      echo https://github.com/HDFGroup/hdf5/releases/download/hdf5_1.14.6/hdf5-1.14.6.tar.gz \
        e4defbac30f50d64e1556374aa49e574417c9e72c6b1de7a4ff88c4b1bea6e9b
      ;;
    zlib)
      echo https://github.com/madler/zlib/releases/download/v1.3.1/zlib-1.3.1.tar.gz \
        9a93b2b7dfdac77ceba5a558a580e74667dd6fede4585b91eefb60f03b72df23
      ;;
    libdeflate)
      echo https://github.com/ebiggers/libdeflate/archive/refs/tags/v1.23.tar.gz \
        1ab18349b9fb0ce8a0ca4116bded725be7dcbfa709e19f6f983d99df1fb8b25f
      ;;
    jpeg)
      echo https://github.com/libjpeg-turbo/libjpeg-turbo/archive/refs/tags/2.1.5.tar.gz \
        254f3642b04e309fee775123133c6464181addc150499561020312ec61c1bf7c
      ;;
    png)
      echo https://download.sourceforge.net/libpng/libpng-1.6.48.tar.xz \
        46fd06ff37db1db64c0dc288d78a3f5efd23ad9ac41561193f983e20937ece03
      ;;
    webp)
      echo https://storage.googleapis.com/downloads.webmproject.org/releases/webp/libwebp-1.5.0.tar.gz \
        7d6fab70cf844bf6769077bd5d7a74893f8ffd4dfb42861745750c63c2a5c92c
      ;;
    xxhash)
      echo https://github.com/Cyan4973/xxHash/archive/refs/tags/v0.8.3.tar.gz \
        aae608dfe8213dfd05d909a57718ef82f30722c392344583d3f39050c7f29a80
      ;;
    json)
      echo https://github.com/nlohmann/json/archive/refs/tags/v3.11.3.tar.gz \
        0d8ef5af7f9794e3263480193c491549b2ba6cc74bb018906202ada498a79406
      ;;
  esac
}

download() {
  local address digest
  read -r address digest < <(archive_of "$1")
  echo "Downloading $address"
  curl --fail --location --silent --show-error --retry 3 --output "$work/$1.tar" "$address"
  echo "$digest  $work/$1.tar" | sha256sum --check --quiet
}

is_debian() { grep --quiet --line-regexp 'ID=debian' /etc/os-release 2>/dev/null; }

# The mirror that serves the release of this system.
debian_mirror() {
  local codename
  codename=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)
  {
    cat /etc/apt/sources.list.d/*.sources 2>/dev/null |
      awk -v suite="$codename" '/^URIs:/ {uri = $2} /^Suites:/ {for (i = 2; i <= NF; ++i) if ($i == suite) print uri}'
    cat /etc/apt/sources.list /etc/apt/sources.list.d/*.list 2>/dev/null |
      sed -n "s/^deb \(\[[^]]*\] \)\?\([^ ]*\) $codename main.*/\2/p"
  } | head -n 1
}

apt=()
# The lists of the system stay as they are.
debian_source() {
  local package=$1
  case $1 in
    json) package=nlohmann-json3 ;;
    jpeg) package=libjpeg-turbo ;;
    png) package=libpng1.6 ;;
    webp) package=libwebp ;;
  esac
  if [[ ${#apt[@]} -eq 0 ]]; then
    mkdir -p "$work/lists/partial" "$work/sources.d"
    echo "deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $(debian_mirror) $debian_suite main" \
      >"$work/sources.d/source.list"
    apt=(-o Dir::Etc::sourcelist=/dev/null -o Dir::Etc::sourceparts="$work/sources.d"
         -o Dir::State::Lists="$work/lists" -o APT::Sandbox::User=root -qq)
    apt-get "${apt[@]}" update
  fi
  # Of the package only the archive of its authors is needed.
  apt-get "${apt[@]}" source --print-uris "$package" | tr -d "'" | grep '\.orig\.tar\.[a-z0-9]* ' >"$work/$1.uri"
  local address file digest
  read -r address file _ digest <"$work/$1.uri"
  echo "Downloading $file"
  /usr/lib/apt/apt-helper -qq -o APT::Sandbox::User=root download-file "$address" "$work/$1.tar" "$digest"
}

# Puts the source of a library into $work/NAME.
fetch() {
  local variable=${1^^}_SOURCE
  local given=${!variable:-}
  if [[ -d $given ]]; then
    cp -R "$given" "$work/$1"
    return
  elif [[ -n $given ]]; then
    cp "$given" "$work/$1.tar"
  elif is_debian; then
    debian_source "$1"
  else
    download "$1"
  fi
  mkdir "$work/$1"
  tar -xf "$work/$1.tar" --strip-components=1 -C "$work/$1"
}

# Their licences ask for it.
keep_license() {
  local name=$1 file
  shift
  mkdir -p "$prefix/licenses"
  for file in "$@"; do
    if [[ -e $work/$name/$file ]]; then
      cp "$work/$name/$file" "$prefix/licenses/$name.txt"
      return
    fi
  done
  echo "build_wheel_libraries: the source of $name has no $*" >&2
  return 1
}

install_by_cmake() {
  local name=$1
  shift
  cmake -S "$work/$name" -B "$work/$name.build" -DCMAKE_BUILD_TYPE=Release -DCMAKE_POSITION_INDEPENDENT_CODE=ON \
    -DCMAKE_INSTALL_PREFIX="$prefix" -DCMAKE_INSTALL_LIBDIR="$prefix/lib" -DCMAKE_PREFIX_PATH="$prefix" \
    -DBUILD_SHARED_LIBS=OFF -DBUILD_TESTING=OFF -DCMAKE_POLICY_VERSION_MINIMUM=3.5 "$@"
  cmake --build "$work/$name.build" --parallel "${CMAKE_BUILD_PARALLEL_LEVEL:-$(nproc)}"
  cmake --install "$work/$name.build"
}

fetch zlib
keep_license zlib LICENSE
(
  cd "$work/zlib"
  ./configure --static --prefix="$prefix"
  make --jobs="${CMAKE_BUILD_PARALLEL_LEVEL:-$(nproc)}" libz.a
  make install
)

fetch libdeflate
keep_license libdeflate COPYING
install_by_cmake libdeflate -DLIBDEFLATE_BUILD_SHARED_LIB=OFF -DLIBDEFLATE_BUILD_GZIP=OFF

fetch jpeg
keep_license jpeg LICENSE.md
if [[ $(uname -m) == x86_64 ]] && ! command -v nasm >/dev/null; then
  echo "build_wheel_libraries: libjpeg-turbo needs nasm: install the package of that name" >&2
  exit 1
fi
install_by_cmake jpeg -DENABLE_SHARED=OFF -DWITH_TURBOJPEG=OFF -DREQUIRE_SIMD=ON

fetch png
keep_license png LICENSE
install_by_cmake png -DPNG_SHARED=OFF -DPNG_TESTS=OFF -DPNG_TOOLS=OFF -DPNG_EXECUTABLES=OFF -DPNG_FRAMEWORK=OFF

fetch webp
keep_license webp COPYING
install_by_cmake webp -DWEBP_BUILD_ANIM_UTILS=OFF -DWEBP_BUILD_CWEBP=OFF -DWEBP_BUILD_DWEBP=OFF \
  -DWEBP_BUILD_GIF2WEBP=OFF -DWEBP_BUILD_IMG2WEBP=OFF -DWEBP_BUILD_VWEBP=OFF -DWEBP_BUILD_WEBPINFO=OFF \
  -DWEBP_BUILD_WEBPMUX=OFF -DWEBP_BUILD_EXTRAS=OFF -DWEBP_BUILD_LIBWEBPMUX=OFF

fetch xxhash
keep_license xxhash LICENSE
cp "$work/xxhash/xxhash.h" "$prefix/include"

fetch json
keep_license json LICENSE.MIT
install_by_cmake json -DJSON_BuildTests=OFF

fetch hdf5
keep_license hdf5 LICENSE COPYING
# What it says about its configuration ends up in the library: without date, host and folders.
sed -i -E '/@CONFIG_DATE@|@CMAKE_HOST_SYSTEM@|@CMAKE_INSTALL_PREFIX@|_DIRECTORY@|FLAGS/d' \
  "$work/hdf5/src/H5build_settings.cmake.c.in"
install_by_cmake hdf5 -DBUILD_STATIC_LIBS=ON -DHDF5_ENABLE_Z_LIB_SUPPORT=ON -DHDF5_USE_ZLIB_STATIC=ON \
  -DHDF5_ENABLE_SZIP_SUPPORT=OFF -DHDF5_ENABLE_THREADSAFE=OFF -DHDF5_ENABLE_NONSTANDARD_FEATURE_FLOAT16=OFF \
  -DHDF5_BUILD_TOOLS=OFF -DHDF5_BUILD_EXAMPLES=OFF -DHDF5_BUILD_HL_LIB=OFF -DHDF5_BUILD_CPP_LIB=OFF \
  -DHDF5_BUILD_FORTRAN=OFF -DHDF5_BUILD_JAVA=OFF -DHDF5_NO_PACKAGES=ON
touch "$prefix/.complete"
