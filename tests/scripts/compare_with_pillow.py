#!/usr/bin/env python3
"""Compares every image and label of packed files with what Pillow and ImageFolder's rules give.

    compare_with_pillow.py DIR OUT

DIR is what `h5pack folder DIR -o OUT` was given, without resize options. OUT is a file, or a folder of split files.
Prints one line for each file; exits 1 at the first difference.
"""
import pathlib
import sys

import h5py
import numpy as np
from PIL import Image

EXTENSIONS = {".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp"}
SPLITS = ("train", "val", "test")


def class_names(root):
    return sorted((p.name for p in root.iterdir() if p.is_dir()), key=lambda n: n.encode())


def image_folder(root, classes):
    """(path, label) of every image, in ImageFolder's order."""
    samples = []
    for label, name in enumerate(classes):
        folder = root / name
        if not folder.is_dir():
            continue
        found = (p for p in folder.rglob("*") if p.is_file() and p.suffix.lower() in EXTENSIONS)
        # os.walk in sorted order: a folder's files before those of its subfolders.
        found = sorted(found, key=lambda p: (str(p.parent).encode(), p.name.encode()))
        samples += [(path, label) for path in found]
    return samples


def compare(file, root, classes):
    samples = image_folder(root, classes)
    with h5py.File(file, "r") as h5:
        images, labels, source = h5["images"], h5["labels"][:], h5["source_index"][:]
        assert images.shape[0] == len(samples), f"{file}: {images.shape[0]} images, {len(samples)} files"
        stored = [name.decode() for name in images.attrs["class_names"]]
        assert stored == classes, f"{file}: classes {stored}, folders {classes}"
        assert np.array_equal(np.sort(source), np.arange(len(samples))), f"{file}: source_index"
        nchw = images.attrs["layout"] in ("nchw", b"nchw")
        rows = images.chunks[0] if images.chunks else 1024
        for first in range(0, len(samples), rows):
            block = images[first:first + rows]
            if nchw:
                block = block.transpose(0, 2, 3, 1)
            for row, pixels in enumerate(block, first):
                path, label = samples[source[row]]
                assert labels[row] == label, f"{file} row {row}: label {labels[row]}, {path} is {label}"
                with Image.open(path) as image:
                    expected = np.asarray(image.convert("RGB"))
                assert np.array_equal(pixels, expected), f"{file} row {row} differs from {path}"
    print(f"{file}: {len(samples)} images and labels equal")


def main():
    root, out = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    splits = [s for s in SPLITS if (root / s).is_dir()]
    if len(splits) < 2:
        compare(out, root, class_names(root))
        return
    classes = sorted({n for s in splits for n in class_names(root / s)}, key=lambda n: n.encode())
    for split in splits:
        compare(out / f"{split}.h5", root / split, classes)


if __name__ == "__main__":
    try:
        main()
    except AssertionError as difference:
        sys.exit(f"compare_with_pillow: {difference}")
