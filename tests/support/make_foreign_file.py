#!/usr/bin/env python3
"""Writes one HDF5 file with h5py, as other people's programs do: make_foreign_file.py CASE FILE.

Pixels follow the pattern of h5_files.hpp: byte j of sample i, in the order of the file.
"""
import sys

import h5py
import numpy as np


def pattern(shape):
    sample = np.arange(shape[0], dtype=np.int64)[:, None]
    byte = np.arange(int(np.prod(shape[1:])), dtype=np.int64)[None, :]
    return ((sample * 31 + byte * 7 + (byte >> 8)) % 251).astype(np.uint8).reshape(shape)


def labels(n):
    return np.arange(n) % 7


def images(name="images", shape=(40, 8, 8, 3), **options):
    def make(path):
        with h5py.File(path, "w") as file:
            file.create_dataset(name, data=pattern(shape), **options)
            file.create_dataset("labels", data=labels(shape[0]).astype(np.int32))
    return make


def celeba_chunks(path):
    """Chunks that cut every picture in two, and label chunks far larger than the labels."""
    with h5py.File(path, "w") as file:
        file.create_dataset("images", data=pattern((130, 3, 218, 178)), chunks=(100, 3, 217, 178))
        file.create_dataset("labels", data=labels(130), chunks=(20000,), maxshape=(None,))


def fields(path):
    with h5py.File(path, "w") as file:
        file["data/pictures"] = pattern((12, 5, 6, 1))
        file["label"] = (np.arange(12) % 2).astype(">u2")
        file["meta/box"] = np.arange(48, dtype=">f4").reshape(12, 4)
        file["meta/id"] = np.arange(12, dtype=np.uint64)
        file["meta/name"] = np.array([b"x"] * 12)
        file["other"] = np.arange(11)
        file["scalar"] = 1.5
        file["data/again"] = file["data/pictures"]


def attribute_table(path):
    with h5py.File(path, "w") as file:
        file["images"] = pattern((9, 3, 8, 8))
        file["labels"] = (np.arange(36) % 2).astype(np.uint8).reshape(9, 4)


def two_candidates(path):
    with h5py.File(path, "w") as file:
        file["train/x"] = pattern((5, 8, 8, 3))
        file["test/x"] = pattern((4, 8, 8, 3))


def no_candidate(path):
    with h5py.File(path, "w") as file:
        file["features"] = np.zeros((5, 3, 8, 8), np.float32)
        file["ids"] = np.arange(5)


def soft_link(path):
    with h5py.File(path, "w") as file:
        file["real"] = pattern((5, 8, 8, 3))
        file["images"] = h5py.SoftLink("/real")


def soft_link_in_path(path):
    with h5py.File(path, "w") as file:
        file["group/x"] = pattern((5, 8, 8, 3))
        file["alias"] = h5py.SoftLink("/group")


def soft_link_labels(path):
    with h5py.File(path, "w") as file:
        file["images"] = pattern((5, 8, 8, 3))
        file["y"] = np.arange(5)
        file["labels"] = h5py.SoftLink("/y")


def external_link(path):
    with h5py.File(path + ".other", "w") as file:
        file["x"] = pattern((5, 8, 8, 3))
    with h5py.File(path, "w") as file:
        file["images"] = h5py.ExternalLink(path + ".other", "/x")


def external_storage(path):
    with open(path + ".secret", "wb") as secret:
        secret.write(b"s" * 960)
    with h5py.File(path, "w") as file:
        file.create_dataset("images", (5, 8, 8, 3), np.uint8, external=[(path + ".secret", 0, 960)])


def virtual(path):
    with h5py.File(path + ".other", "w") as file:
        file["x"] = pattern((5, 8, 8, 3))
    layout = h5py.VirtualLayout((5, 8, 8, 3), np.uint8)
    layout[:] = h5py.VirtualSource(path + ".other", "x", (5, 8, 8, 3))
    with h5py.File(path, "w") as file:
        file.create_virtual_dataset("images", layout)


def user_block(path):
    with h5py.File(path, "w", userblock_size=512) as file:
        file["images"] = pattern((40, 8, 8, 3))


def unallocated(path):
    with h5py.File(path, "w") as file:
        file.create_dataset("images", (6, 8, 8, 3), np.uint8)


def unallocated_chunks(path):
    with h5py.File(path, "w") as file:
        data = file.create_dataset("images", (6, 8, 8, 3), np.uint8, chunks=(2, 8, 8, 3), fillvalue=9)
        data[2:4] = pattern((6, 8, 8, 3))[2:4]


def layout_attribute(path):
    with h5py.File(path, "w") as file:
        file["images"] = pattern((4, 3, 8, 3))
        file["images"].attrs["layout"] = "NCHW"


def no_samples(path):
    with h5py.File(path, "w") as file:
        file.create_dataset("images", (0, 8, 8, 3), np.uint8, maxshape=(None, 8, 8, 3))


def huge_shape(path):
    with h5py.File(path, "w") as file:
        file.create_dataset("images", (2**40, 4096, 4096, 3), np.uint8, chunks=(1, 64, 64, 3))


def unknown_filter(path):
    with h5py.File(path, "w") as file:
        creation = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        creation.set_chunk((2, 8, 8, 3))
        creation.set_filter(32001, h5py.h5z.FLAG_OPTIONAL, (1, 2))
        space = h5py.h5s.create_simple((6, 8, 8, 3))
        h5py.h5d.create(file.id, b"images", h5py.h5t.STD_U8LE, space, creation)


def group_loop(path):
    with h5py.File(path, "w") as file:
        file["a/x"] = pattern((5, 8, 8, 3))
        file["a/up"] = file["/"]
        file["a/self"] = file["a"]


CASES = {
    "contiguous": images(),
    "gray": images("x", (40, 8, 9, 1)),
    "nchw": images(shape=(40, 3, 8, 9)),
    "whole_chunks": images(chunks=(16, 8, 8, 3)),
    "one_chunk": images(chunks=(40, 8, 8, 3)),
    "deflate": images(chunks=(16, 8, 8, 3), compression="gzip", shuffle=True),
    "fletcher": images(chunks=(7, 5, 8, 2), fletcher32=True),
    "large_deflate": images(shape=(72, 3, 400, 400), chunks=(72, 1, 150, 400), compression="gzip",
                            compression_opts=1),
    "ambiguous": images(shape=(4, 3, 8, 3)),
    "no_channel_axis": images(shape=(4, 5, 8, 6)),
}
for make in (celeba_chunks, fields, attribute_table, two_candidates, no_candidate, soft_link,
             soft_link_in_path, soft_link_labels, external_link, external_storage, virtual, user_block,
             unallocated, unallocated_chunks, layout_attribute, no_samples, huge_shape, unknown_filter,
             group_loop):
    CASES[make.__name__] = make

if __name__ == "__main__":
    CASES[sys.argv[1]](sys.argv[2])
