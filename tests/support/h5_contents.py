"""What an HDF5 file holds, to be compared with what another holds."""

import h5py
import numpy as np


def datasets_and_attributes(path):
    """Arrays of all datasets by name, attributes of the file and of its pictures, and the pictures' chunk shape."""
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
