#!/usr/bin/env python3
"""The script that people write to pack images: create_dataset, a loop, and slices.

One process. Tried are PIL and OpenCV to decode, and writing image by image to a contiguous
dataset or 256 at a time to a chunked one. The fastest is timed.
"""

import functools

import h5py
import numpy as np

import pictures

BATCH = 256


def by_picture(file, files, decode):
    first = decode(files[0][0])
    images = file.create_dataset("images", (len(files), *first.shape), np.uint8)
    labels = file.create_dataset("labels", (len(files),), np.int64)
    for row, (path, label) in enumerate(files):
        images[row] = decode(path)
        labels[row] = label


def by_batch(file, files, decode):
    first = decode(files[0][0])
    images = file.create_dataset("images", (len(files), *first.shape), np.uint8,
                                 chunks=(min(BATCH, len(files)), *first.shape))
    batch = np.empty((BATCH, *first.shape), np.uint8)
    for begin in range(0, len(files), BATCH):
        part = files[begin:begin + BATCH]
        for row, (path, _) in enumerate(part):
            batch[row] = decode(path)
        images[begin:begin + len(part)] = batch[:len(part)]
    file["labels"] = np.array([label for _, label in files], np.int64)


WRITERS = {"an image at a time": by_picture, f"{BATCH} at a time": by_batch}


def pack(write, decode, files, out):
    with h5py.File(out, "w") as file:
        write(file, files, decode)


def read_back(out):
    with h5py.File(out, "r") as file:
        yield from zip(file["images"], file["labels"])


def main():
    ways = {f"{decoder}, {name}": (decode, functools.partial(pack, write, decode))
            for decoder, decode in pictures.DECODERS.items() for name, write in WRITERS.items()}
    pictures.compete("h5py script", {"h5py": h5py.__version__, "hdf5": h5py.version.hdf5_version}, {"processes": 1},
                     ways, read_back, "h5py.h5", pictures.parse_options(__doc__))


if __name__ == "__main__":
    main()
