"""Writes the third-party files of this folder: make_files.py FOLDER, with the h5py whose libhdf5 is to write them.

They were written once, by h5py 3.7 (libhdf5 1.10.8), 3.11 (1.14.2) and 3.16 (2.0.0), and stay as they are. Files of
h5pack were made of `third_party-1.10.8-earliest.h5` by the program of each format version:

    h5pack repack third_party-1.10.8-earliest.h5 -o v2.h5 --order stored --chunk 3
"""

import pathlib
import sys

import h5py
import numpy as np

COUNT, SHAPE = 7, (6, 5, 3)


def images():
    row, rest = np.mgrid[0:COUNT, 0:np.prod(SHAPE)]
    return ((row * 31 + rest * 7) % 256).astype(np.uint8).reshape(COUNT, *SHAPE)


def labels():
    return np.arange(COUNT, dtype=np.int64) * 3 % 4


def main():
    folder = pathlib.Path(sys.argv[1])
    version = h5py.version.hdf5_version
    for libver, storage in ("earliest", {}), ("v110", {"chunks": (3, *SHAPE), "compression": "gzip"}):
        with h5py.File(folder / f"third_party-{version}-{libver}.h5", "w", libver=(libver, libver if libver != "earliest" else "latest")) as file:
            file.create_dataset("images", data=images(), **storage)
            file["labels"] = labels()
            file["weights"] = np.stack([np.arange(COUNT), -np.arange(COUNT)], axis=1).astype(np.float32)


if __name__ == "__main__":
    main()
