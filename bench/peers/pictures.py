"""What the peers that pack have in common: files, decoders, and the check of what was written."""

import argparse
import functools
import os

import cv2
import numpy as np
import PIL
from PIL import Image

import rounds


def parse_options(description):
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("folder", help="folder of class folders of JPEG files of one size")
    parser.add_argument("--threads", type=int, default=2, help="processes that decode, if several")
    parser.add_argument("--dir", default=".", help="where files may be put that the caller removes")
    parser.add_argument("--rounds", type=int, default=0,
                        help="packs to time; 0: one for each line on standard input")
    return parser.parse_args()


def list_files(folder):
    """All files, with the number of their class, in the order of their paths."""
    classes = sorted(entry.name for entry in os.scandir(folder) if entry.is_dir())
    paths = [(os.path.join(folder, name), label) for label, name in enumerate(classes)]
    return [(os.path.join(path, file), label)
            for path, label in paths for file in sorted(os.listdir(path))]


def with_pil(path):
    with Image.open(path) as image:
        return np.asarray(image.convert("RGB"))


def with_cv2(path):
    return cv2.cvtColor(cv2.imread(path, cv2.IMREAD_COLOR), cv2.COLOR_BGR2RGB)


# Each gives [H,W,3] uint8.
DECODERS = {"PIL": with_pil, "cv2": with_cv2}


def check(pictures, files, decode, what):
    """`pictures` yields (image, label) in the order of `files`."""
    count = 0
    for (picture, label), (path, expected) in zip(pictures, files):
        if label != expected or not np.array_equal(picture, decode(path)):
            raise SystemExit(f"{what} wrote {path} wrongly")
        count += 1
    if count != len(files):
        raise SystemExit(f"{what} wrote {count} of {len(files)} images")


def compete(peer, versions, settings, ways, read_back, name, options):
    """Packs in each of `ways`, {name: (decode, pack(files, path))}, checks what it wrote, and serves the fastest.

    `read_back(path)` yields (image, label). `name` is that of the file.
    """
    files = list_files(options.folder)
    out = os.path.join(options.dir, name)
    cv2.setNumThreads(1)

    def run(pack):
        if os.path.exists(out):
            os.remove(out)
        pack(files, out)
        return len(files)

    packs = {way: functools.partial(run, pack) for way, (_, pack) in ways.items()}
    for way, (decode, _) in ways.items():
        packs[way]()
        check(read_back(out), files, decode, way)
    best, rates = rounds.fastest(packs, len(files))
    rounds.serve(peer, {**versions, "pillow": PIL.__version__, "opencv": cv2.__version__}, settings, best, rates,
                 packs[best], options)
