# shellcheck shell=bash
# Sources of the libraries that are built here. To be sourced, with $work set to a folder:
#
#   fetch NAME         puts the source of hdf5, zlib, libdeflate, jpeg, png, webp, xxhash or json into $work/NAME
#   fetch_once NAME    unless it is there
#
# ${NAME}_SOURCE (HDF5_SOURCE, ...) names a folder or a tarball. Without it, Debian takes the source packages of Debian
# 13, as its configured mirror serves them; any other system downloads the release archives, whose digests are checked.
debian_suite=trixie

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

fetch_once() {
  if [[ ! -e $work/$1/CMakeLists.txt ]]; then
    rm -rf "${work:?}/$1"
    fetch "$1"
  fi
}
