"""Writes the files of must_fail/, each of v2.h5 or v1.h5 with one thing wrong: make_must_fail.py FOLDER."""

import pathlib
import shutil
import sys

import h5py
import numpy as np


def flip(path, dataset, row):
    with h5py.File(path) as file:
        images = file[dataset]
        offset = images.id.get_chunk_info(0).byte_offset if images.chunks else images.id.get_offset()
    with open(path, "r+b") as file:
        file.seek(offset + row)
        byte = file.read(1)[0]
        file.seek(offset + row)
        file.write(bytes([byte ^ 1]))


def change(path, action):
    with h5py.File(path, "r+") as file:
        action(file)


def shorter_digests(file):
    attributes = dict(file["sample_digests"].attrs)
    digests = file["sample_digests"][:-1]
    del file["sample_digests"]
    file["sample_digests"] = digests
    for name, value in attributes.items():
        file["sample_digests"].attrs[name] = value


def main():
    here = pathlib.Path(sys.argv[1])
    cases = {
        "version_3": lambda p: change(p, lambda f: f.attrs.modify("chunkio_format", np.int64(3))),
        "pixel": lambda p: flip(p, "images", 5),
        "label": lambda p: flip(p, "labels", 8),
        "digest": lambda p: flip(p, "sample_digests", 16),
        "shorter_digests": lambda p: change(p, shorter_digests),
        "covered_dataset_gone": lambda p: change(p, lambda f: f.__delitem__("weights")),
        "truncated": lambda p: p.write_bytes(p.read_bytes()[:-600]),
    }
    for name, damage in cases.items():
        path = here / "must_fail" / f"v2-{name}.h5"
        shutil.copy(here / "v2.h5", path)
        damage(path)
    path = here / "must_fail" / "v1-pixel.h5"
    shutil.copy(here / "v1.h5", path)
    flip(path, "images", 5)


if __name__ == "__main__":
    main()
