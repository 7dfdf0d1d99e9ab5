#!/usr/bin/env python3
"""Writes a file of encoded images with h5py and Pillow, as libchunkio/doc/format.md says: make_encoded_file.py FILE."""

import io
import sys

import h5py
import numpy as np
from PIL import Image

ROWS = 100


def encoded(row):
    """A JPEG file, its height and its width; no two are alike."""
    random = np.random.default_rng(row)
    height, width = random.integers(20, 90, 2)
    y, x = np.mgrid[:height, :width]
    pixels = np.stack([127 + 100 * np.sin(x / (5 + row % 7) + c + y / 9) for c in range(3)], -1)
    out = io.BytesIO()
    Image.fromarray(pixels.astype(np.uint8)).save(out, "JPEG", quality=90)
    return out.getvalue(), height, width


def write(path, rows=ROWS):
    images = [encoded(row) for row in range(rows)]
    sizes = np.array([image[1:] for image in images], np.int32)
    with h5py.File(path, "w") as file:
        group = file.create_group("images")
        group.attrs.update({
            "encoding-type": "encoded-images", "encoding-version": "1", "max_height": sizes[:, 0].max(),
            "max_width": sizes[:, 1].max(), "max_pixels": sizes.prod(1).max(),
        })
        group["data"] = np.frombuffer(b"".join(image[0] for image in images), np.uint8)
        group["indptr"] = np.cumsum([0] + [len(image[0]) for image in images])
        group["sizes"] = sizes
        file["labels"] = np.arange(rows) % 7


if __name__ == "__main__":
    write(sys.argv[1])
