#!/usr/bin/env bash
# From a fresh Debian or Ubuntu machine to a trained classifier:
#
#   bash samples/quickstart.sh         draws a few thousand labelled images and uses them
#   bash samples/quickstart.sh DIR     uses your images: DIR/CLASS/*.jpg, or DIR/train/CLASS/*.jpg and
#                                      DIR/test/CLASS/*.jpg, or images without classes
#
# Installs what is missing with apt-get, builds, packs the images to HDF5, draws a contact sheet, streams two
# epochs and trains a small classifier, in C++ and in Python. Everything it writes is under build/; set CHUNKIO_QUICKSTART_OUT to have
# the results elsewhere.
set -euo pipefail

if [[ $# -gt 1 || ${1:-} == -* ]]; then
  sed -n '2,12s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
  if [[ ${1:-} == --help || ${1:-} == -h ]]; then exit 0; else exit 2; fi
fi
pictures=
if [[ $# -eq 1 ]]; then
  if [[ ! -d $1 ]]; then
    echo "quickstart.sh: $1 is not a folder; name one that holds images" >&2
    exit 2
  fi
  pictures=$(cd "$1" && pwd)
fi

repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
out=${CHUNKIO_QUICKSTART_OUT:-$repository/build/quickstart}
mkdir -p "$out"
out=$(cd "$out" && pwd)
build=$repository/build/quickstart-build

say() { printf '\n== %s\n' "$*"; }

say "Packages"
# shellcheck source=samples/install_packages.sh
source "$repository/samples/install_packages.sh"
install_packages "${BUILD_PACKAGES[@]}"
try_install_packages python3-venv python3-dev
python=$repository/build/quickstart-python
try_install_wheels "$python" numpy nanobind
with_python=()
if "$python/bin/python" -c "import nanobind, numpy" 2>/dev/null; then
  with_python=(-DCHUNKIO_BUILD_PYTHON=ON "-DPython_EXECUTABLE=$python/bin/python")
fi
echo "Everything needed is installed."

say "Build"
cmake -S "$repository" --preset release -B "$build" --log-level=WARNING \
  -DCHUNKIO_BUILD_BENCH=OFF "${with_python[@]}"
cmake --build "$build"
h5pack=$build/tools/h5pack/h5pack

resize=()
if [[ -n $pictures ]]; then
  # Your images may differ in size: bring them all to 64x64.
  resize=(--resize 64 --center-crop 64x64)
  say "Pack $pictures (shorter side resized to 64, centre 64x64)"
else
  pictures=$out/pictures
  say "Draw pictures"
  rm -rf "$pictures"
  "$build/samples/chunkio-make-pictures" "$pictures"
  say "Pack"
fi

# With at least two of these folders h5pack makes one file for each; otherwise one file of everything.
splits=0
for split in train val test; do
  if [[ -d $pictures/$split ]]; then splits=$((splits + 1)); fi
done
rm -rf "$out/packed"
mkdir "$out/packed"
if [[ $splits -ge 2 ]]; then
  "$h5pack" folder "$pictures" -o "$out/packed" "${resize[@]}"
else
  "$h5pack" folder "$pictures" -o "$out/packed/train.h5" "${resize[@]}"
fi

train=$out/packed/train.h5
held_out=()
for split in test val; do
  if [[ -f $out/packed/$split.h5 ]]; then
    if [[ ! -f $train ]]; then
      train=$out/packed/$split.h5
    elif [[ ${#held_out[@]} -eq 0 ]]; then
      held_out=("$out/packed/$split.h5")
    fi
  fi
done

say "What the file holds"
"$h5pack" info "$train"

say "Contact sheet"
"$h5pack" preview "$train" -o "$out/sheet.png" --force

say "Stream two epochs"
"$h5pack" stream "$train" --epochs 2

say "Train"
if "$h5pack" info "$train" --json | grep --quiet '"labels": *null'; then
  echo "These images have no class folders, so there is nothing to learn: training is left out."
else
  "$build/samples/chunkio-train-softmax" "$train" "${held_out[@]}" --epochs 10
  if [[ ${#with_python[@]} -gt 0 ]]; then
    say "Train in Python"
    PYTHONPATH=$build/libchunkio/python "$python/bin/python" "$repository/samples/python/train_softmax.py" \
      "$train" "${held_out[@]}"
  else
    echo "PyPI could not be reached, so the training in Python is left out."
  fi
fi

say "Done"
cat <<END
Packed files:   $out/packed
Contact sheet:  $out/sheet.png
The program:    $h5pack --help
END
