#!/usr/bin/env python3
"""Checks with h5py that a file made by the writer tests holds what was written.

check_with_h5py.py FILE SAMPLES LAYOUT CHUNK_SAMPLES [COMPRESSION]: the specification is small_spec() of h5_files.hpp.
"""
import json
import sys

import h5py
import numpy as np

path, samples, layout, chunk = sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
compression = sys.argv[5] if len(sys.argv) > 5 else None
height, width, channels = 6, 5, 3
shape = (samples, height, width, channels) if layout == "nhwc" else (samples, channels, height, width)
sample = np.arange(samples)[:, None]
byte = np.arange(height * width * channels)[None, :]

with h5py.File(path, "r", libver="latest") as file:
    images = file["images"]
    assert images.dtype == np.uint8 and images.shape == shape and images.maxshape == shape
    assert images.chunks == (chunk,) + shape[1:], images.chunks
    assert images.compression == compression and images.external is None
    expected = ((sample * 31 + byte * 7 + (byte >> 8)) % 251).astype(np.uint8).reshape(shape)
    assert np.array_equal(images[:], expected)
    assert file["labels"].dtype == np.int64
    assert np.array_equal(file["labels"][:], np.arange(samples) % 3)
    assert np.array_equal(file["source_index"][:], np.arange(samples)[::-1])
    assert file["labels"].chunks is None and file["labels"].maxshape == (samples,)

    root = dict(file.attrs)
    assert root["chunkio_format"] == 2
    assert root["creator"].decode().startswith("chunkio ")
    assert len(root["uuid"].decode()) == 36 and root["uuid"][14:15] == b"4"
    assert root["split"] == b"train" and root["order"] == b"shuffled"
    assert root["seed"] == 0xFEDCBA9876543210
    assert json.loads(root["options"]) == {"source": "folder"}
    assert root["rdcc_nslots"] > images.id.get_num_chunks()
    assert root["rdcc_nbytes"] > 0 and root["rdcc_w0"] == 1.0

    attributes = dict(images.attrs)
    assert attributes["layout"].decode() == layout
    assert attributes["channel_order"] == b"RGB"
    assert [name.decode() for name in attributes["class_names"]] == ["cat", "dog", "schnürle"]
    assert np.array_equal(attributes["mean"], [0.25, 0.5, 0.75])
    assert np.array_equal(attributes["std"], [0.1, 0.2, 0.3])
    assert "255" in attributes["statistics_definition"].decode()
    assert attributes["class_counts"].sum() == samples
    assert "chunk_digests" not in attributes and "digest_algorithm" not in attributes
    digests = file["sample_digests"]
    assert digests.dtype == np.uint64 and digests.chunks is None
    assert digests.attrs["algorithm"] == b"XXH3-64"
    assert list(digests.attrs["covers"]) == [b"images", b"labels", b"source_index"]
    # Loaders of other projects refuse a file in which one dataset has another first axis.
    shapes = []
    file.visititems(lambda name, item: shapes.append(item.shape) if isinstance(item, h5py.Dataset) else None)
    assert len(shapes) == 4 and all(shape[0] == samples for shape in shapes), shapes
    # Nor is any attribute a list that grows with the samples.
    assert all(np.size(value) <= 4 for item in (file, images, digests) for value in item.attrs.values())
