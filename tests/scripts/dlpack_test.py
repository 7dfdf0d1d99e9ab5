"""Reads batches through DLPack in Python and compares them with what h5py reads.

    dlpack_test.py EXPORTER numpy_legacy|numpy_versioned|torch

EXPORTER is the library of dlpack_exporter.cpp. Exits 77, and says why, if the consumer of that name is not
there.
"""

import ctypes
import pathlib
import sys
import tempfile

import h5py
import numpy as np

SKIPPED = 77
NUM_ROWS = 37
BATCH_SIZE = 8
CPU = (1, 0)

new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype = ctypes.py_object
new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


def load_exporter(path):
    exporter = ctypes.CDLL(path)
    exporter.last_error.restype = ctypes.c_char_p
    exporter.open_loader.restype = ctypes.c_void_p
    exporter.open_loader.argtypes = [ctypes.c_char_p, ctypes.c_int64, ctypes.c_char_p]
    exporter.close_loader.restype = None
    exporter.close_loader.argtypes = [ctypes.c_void_p]
    exporter.next_batch.restype = ctypes.c_int64
    exporter.next_batch.argtypes = [ctypes.c_void_p]
    for function in (exporter.export_versioned, exporter.export_legacy):
        function.restype = ctypes.c_void_p
        function.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
    return exporter


class Producer:
    """What from_dlpack() asks for tensors of the current batch."""

    def __init__(self, exporter, loader, name, only_legacy):
        self.exporter = exporter
        self.arguments = (loader, name.encode())
        self.only_legacy = only_legacy

    def __dlpack_device__(self):
        return CPU

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        if self.only_legacy or max_version is None or max_version[0] < 1:
            pointer, name = self.exporter.export_legacy(*self.arguments), b"dltensor"
        else:
            pointer, name = self.exporter.export_versioned(*self.arguments), b"dltensor_versioned"
        assert pointer, self.exporter.last_error().decode()
        # Without a destructor: the consumers here take every capsule.
        return new_capsule(pointer, name, None)


def write_file(path):
    random = np.random.default_rng(5)
    with h5py.File(path, "w") as file:
        file["images"] = random.integers(0, 256, (NUM_ROWS, 6, 5, 3), np.uint8)
        file["labels"] = random.integers(0, 2**40, NUM_ROWS, np.int64)
        file["boxes"] = random.random((NUM_ROWS, 2, 2), np.float32)


def compare(tensor, expected, name):
    got = np.asarray(tensor)
    assert got.dtype == expected.dtype, (name, got.dtype)
    assert np.array_equal(got, expected), name


def check(exporter, path, from_dlpack, only_legacy=False):
    """\returns the images of the first batch, of a loader that is gone."""
    with h5py.File(path) as file:
        stored = {name: file[name][:] for name in ("images", "labels", "boxes")}
    stored["sample_ids"] = np.arange(NUM_ROWS)

    def take(loader, name):
        return from_dlpack(Producer(exporter, loader, name, only_legacy))

    def open_loader():
        loader = exporter.open_loader(str(path).encode(), BATCH_SIZE, b"boxes")
        assert loader, exporter.last_error().decode()
        return loader

    loader = open_loader()
    seen = 0
    while rows := exporter.next_batch(loader):
        assert rows > 0, exporter.last_error().decode()
        tensors = {name: take(loader, name) for name in stored}
        for name, values in stored.items():
            compare(tensors[name], values[seen:seen + rows], name)
        seen += rows
        # One batch may be held: there is another when the last of these tensors is gone, and not before.
        while tensors and seen < NUM_ROWS:
            assert exporter.next_batch(loader) < 0, f"another batch while {sorted(tensors)} are held"
            assert b"held" in exporter.last_error(), exporter.last_error()
            tensors.popitem()
    assert seen == NUM_ROWS, seen
    exporter.close_loader(loader)

    loader = open_loader()
    assert exporter.next_batch(loader) == BATCH_SIZE
    images = take(loader, "images")
    exporter.close_loader(loader)
    compare(images, stored["images"][:BATCH_SIZE], "images")
    return images


def skip(reason):
    print(f"skipped: {reason}")
    return SKIPPED


def main():
    exporter = load_exporter(sys.argv[1])
    case = sys.argv[2]
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "train.h5"
        write_file(path)
        if case == "torch":
            try:
                import torch
            except ImportError:
                return skip("no PyTorch")
            check(exporter, path, torch.from_dlpack)
            return 0
        version = tuple(int(part) for part in np.__version__.split(".")[:2])
        if version < (1, 23):
            return skip(f"NumPy {np.__version__} has no from_dlpack()")
        if case == "numpy_versioned" and version < (2, 1):
            return skip(f"NumPy {np.__version__} takes legacy tensors only")
        images = check(exporter, path, np.from_dlpack, only_legacy=case == "numpy_legacy")
        if case == "numpy_versioned":
            assert not images.flags.writeable, "read-only was not said, or not understood"
        return 0


if __name__ == "__main__":
    sys.exit(main())
