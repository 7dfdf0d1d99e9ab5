"""What an HDF5 file holds, to be compared with what another holds."""

import h5py
import numpy as np


def datasets_and_attributes(path):
    """Arrays of all datasets by name, attributes of the file and of its images, and the images' chunk shape."""
    found = {}

    def visit(name, item):
        if isinstance(item, h5py.Dataset):
            found[name] = item[()]

    with h5py.File(path, "r") as file:
        file.visititems(visit)
        return found, {**file.attrs, **file["images"].attrs}, file["images"].chunks


def contents(path):
    """Datasets byte for byte and all attributes, but for the uuid, which is new in each file written."""
    found = {}

    def visit(name, item):
        for key, value in item.attrs.items():
            if key != "uuid":
                found[f"{name}@{key}"] = (str(np.asarray(value).dtype), np.asarray(value).tobytes())
        if isinstance(item, h5py.Dataset):
            found[name] = (str(item.dtype), item.shape, item.chunks, item[()].tobytes())

    with h5py.File(path, "r") as file:
        visit("/", file)
        file.visititems(visit)
    return found


def assert_contents(test, path, expected):
    """Fails unless `path` holds what contents() gave as `expected`; names only what differs."""
    found = contents(path)
    differing = sorted(key for key in found.keys() | expected.keys() if found.get(key) != expected.get(key))
    if differing:
        test.fail(f"{path}: " + "; ".join(f"{key}: {_difference(found.get(key), expected.get(key))}" for key in differing))


def _difference(found, expected):
    if found is None or expected is None:
        return "not there" if found is None else "not expected"
    if found[:-1] != expected[:-1]:
        return f"{found[:-1]} instead of {expected[:-1]}"
    a, b = found[-1], expected[-1]
    places = [i for i, (x, y) in enumerate(zip(a, b)) if x != y]
    if not places:
        return f"{len(a)} bytes instead of {len(b)}, the first {min(len(a), len(b))} alike"
    around = slice(max(0, places[0] - 40), places[0] + 80)
    return (f"{len(a)} and {len(b)} bytes, {len(places)} differ, from {places[0]} to {places[-1]}: "
            f"{a[around]!r} instead of {b[around]!r}")
