#!/usr/bin/env python3
"""Writes one HDF5 file with h5py, as other people's programs do: make_foreign_file.py CASE FILE.

Pixels follow the pattern of h5_files.hpp: byte j of sample i, in the order of the file.
"""
import ctypes
import re
import struct
import sys

import h5py
import numpy as np


def pattern(shape):
    sample = np.arange(shape[0], dtype=np.int64)[:, None]
    byte = np.arange(int(np.prod(shape[1:])), dtype=np.int64)[None, :]
    return ((sample * 31 + byte * 7 + (byte >> 8)) % 251).astype(np.uint8).reshape(shape)


def labels(n):
    return np.arange(n) % 7


def write(path, libver=None, userblock_size=None, **datasets):
    """A file of these datasets: their values, links, or what create_dataset() takes."""
    with h5py.File(path, "w", libver=libver, userblock_size=userblock_size) as file:
        for name, data in datasets.items():
            if isinstance(data, dict):
                file.create_dataset(name, **data)
            else:
                file[name] = data


def images(name="images", shape=(40, 8, 8, 3), libver=None, userblock_size=None, **options):
    return lambda path: write(path, libver, userblock_size, **{
        name: {"data": pattern(shape), **options}, "labels": labels(shape[0]).astype(np.int32)})


def empty(shape, dtype=np.uint8, **options):
    """A dataset without values."""
    return {"shape": shape, "dtype": dtype, **options}


def datasets(**arrays):
    return lambda path: write(path, **arrays)


def with_labels(**more):
    """Nine images beside other datasets: what people take for labels."""
    return datasets(images=pattern((9, 8, 8, 3)), **more)


def floats(dtype=np.float32, shape=(40, 8, 8, 3), black=0.0, white=1.0, change=None, **options):
    """Images of which scaling makes the pattern; and what a uint8 file of them has beside them."""
    def make(path):
        data = (black + pattern(shape) / 255 * (white - black)).astype(dtype)
        if change is not None:
            data[17, 3, 2] = change
        write(path, images={"data": data, **options}, labels=labels(shape[0]))
    return make


def numbers(shape, dtype=np.float32):
    """Other numbers than pixels: number j of row i is 1024 i + j."""
    row = np.arange(shape[0])[:, None]
    return (1024 * row + np.arange(int(np.prod(shape[1:])))).astype(dtype).reshape(shape)


def vectors(shape=(40, 784), dtype=np.float32, name="x", libver=None, **options):
    """A file without images."""
    return lambda path: write(path, libver, **{
        name: {"data": numbers(shape, dtype), **options}, "labels": labels(shape[0]).astype(np.uint8),
        "id": np.arange(shape[0], dtype=np.int64) + 100})


def as_packed(x, rows=47):
    """Labels and a field as those of pixels.hpp."""
    row = np.arange(rows)
    return lambda path: write(path, x=x, labels=(row * 7 + 3) % 10,
                              weights=np.stack([row, -row], axis=1).astype(np.float32))


def fields(path):
    write(path, **{
        "data/pictures": pattern((12, 5, 6, 1)), "label": (np.arange(12) % 2).astype(">u2"),
        "meta/box": np.arange(48, dtype=">f4").reshape(12, 4), "meta/id": np.arange(12, dtype=np.uint64),
        "meta/name": np.array([b"x"] * 12), "other": np.arange(11), "scalar": 1.5})
    with h5py.File(path, "r+") as file:
        file["data/again"] = file["data/pictures"]


def external_link(path):
    write(path + ".other", x=pattern((5, 8, 8, 3)))
    write(path, images=h5py.ExternalLink(path + ".other", "/x"))


def layout_attribute(path):
    write(path, images=pattern((4, 3, 8, 3)))
    with h5py.File(path, "r+") as file:
        file["images"].attrs["layout"] = "NCHW"


def external_storage(path):
    with open(path + ".secret", "wb") as secret:
        secret.write(b"s" * 960)
    write(path, images=empty((5, 8, 8, 3), external=[(path + ".secret", 0, 960)]))


def virtual(path):
    write(path + ".other", x=pattern((5, 8, 8, 3)))
    layout = h5py.VirtualLayout((5, 8, 8, 3), np.uint8)
    layout[:] = h5py.VirtualSource(path + ".other", "x", (5, 8, 8, 3))
    with h5py.File(path, "w") as file:
        file.create_virtual_dataset("images", layout)


def unallocated_chunks(path):
    with h5py.File(path, "w") as file:
        data = file.create_dataset("images", (6, 8, 8, 3), np.uint8, chunks=(2, 8, 8, 3), fillvalue=9)
        data[2:4] = pattern((6, 8, 8, 3))[2:4]


def never_filled(path):
    """Chunks without storage in a file that tells libhdf5 not to fill memory for them."""
    with h5py.File(path, "w") as file:
        creation = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        creation.set_chunk((2, 8, 8, 3))
        creation.set_fill_value(np.array(9, np.uint8))
        creation.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
        space = h5py.h5s.create_simple((12, 8, 8, 3))
        data = h5py.Dataset(h5py.h5d.create(file.id, b"images", h5py.h5t.STD_U8LE, space, creation))
        data[2:4] = pattern((12, 8, 8, 3))[2:4]
        data[8:10] = pattern((12, 8, 8, 3))[8:10]


def indexed(libver="latest", user_block=0, maxshape=None, **options):
    """40 images in chunks of 7 whole ones, behind the index that libver and maxshape lead to."""
    def make(path):
        with h5py.File(path, "w", libver=libver, userblock_size=user_block) as file:
            data = file.create_dataset("images", (40, 8, 8, 3), np.uint8, chunks=(7, 8, 8, 3),
                                       maxshape=maxshape, **options)
            pictures = pattern((40, 8, 8, 3))
            for first in (28, 0, 35, 14, 7, 21):  # so that they do not lie in order
                data[first:first + 7] = pictures[first:first + 7]
    return make


def scattered(chunk, shape=(1000, 8, 8, 3), half_entries=32, libver="earliest", left_out=0, user_block=0, **options):
    """Small chunks in random order, of which every `left_out`-th has no storage, behind a B-tree of version 1 whose
    nodes have at most 2 * `half_entries` entries."""
    def make(path):
        creation = h5py.h5p.create(h5py.h5p.FILE_CREATE)
        # Some versions of h5py do not have it, but their libhdf5 does.
        libhdf5 = ctypes.CDLL(h5py.h5p.__file__)
        assert libhdf5.H5Pset_istore_k(ctypes.c_int64(creation.id), ctypes.c_uint(half_entries)) >= 0
        creation.set_userblock(user_block)
        access = h5py.h5p.create(h5py.h5p.FILE_ACCESS)
        low = h5py.h5f.LIBVER_EARLIEST if libver == "earliest" else h5py.h5f.LIBVER_V18
        access.set_libver_bounds(low, h5py.h5f.LIBVER_V18)
        with h5py.File(h5py.h5f.create(path.encode(), h5py.h5f.ACC_TRUNC, creation, access)) as file:
            data = file.create_dataset("images", shape, np.uint8, chunks=chunk, fillvalue=9, **options)
            pictures = pattern(shape)
            grid = [-(-size // part) for size, part in zip(shape, chunk)]
            for number in np.random.default_rng(7).permutation(int(np.prod(grid))):
                if left_out and number % left_out == 0:
                    continue
                place = tuple(slice(i * part, (i + 1) * part) for i, part in zip(np.unravel_index(number, grid), chunk))
                data[place] = pictures[place]
            file["labels"] = labels(shape[0]).astype(np.int32)
    return make


def masked_chunks(path):
    """Deflate and shuffle, but chunk 1 without deflate, chunk 2 without shuffle, chunk 3 with neither."""
    import zlib
    with h5py.File(path, "w") as file:
        data = file.create_dataset("images", (40, 8, 8, 3), np.uint8, chunks=(10, 8, 8, 3), shuffle=True,
                                   compression="gzip")
        pictures = pattern((40, 8, 8, 3))
        for chunk, mask in enumerate((0, 2, 1, 3)):
            raw = pictures[10 * chunk:10 * chunk + 10].tobytes()  # shuffling single bytes changes nothing
            data.id.write_direct_chunk((10 * chunk, 0, 0, 0), raw if mask & 2 else zlib.compress(raw), mask)


def masks(path, n=400):
    """Images with fields of other types and other chunks."""
    row = np.arange(n)
    place = np.arange(16 * 12).reshape(16, 12)
    rows = row[:, None, None]
    write(path,
          images={"data": pattern((n, 16, 12, 3)), "chunks": (16, 16, 12, 3), "compression": "gzip"}, labels=labels(n),
          masks={"data": (rows * 7 + place).astype(np.uint16), "chunks": (9, 5, 7), "compression": "gzip",
                 "shuffle": True},
          depth={"data": (rows + place / 256).astype(np.float32), "chunks": (50, 16, 12), "fletcher32": True},
          heat=(rows * 2 + place).astype(">i4"),
          flow=(row[:, None, None, None] - place[:, :, None] * np.array([1, -1])).astype(np.int16))


def fletcher32(data):
    """As libhdf5 stores it: sums of big-endian words, the checksum itself little-endian."""
    words = np.frombuffer(data + b"\0" * (len(data) % 2), ">u2")
    one = two = 0
    for word in words.tolist():
        one = (one + word) % 65535
        two = (two + one) % 65535
    # Sums with end-around carry never return to 0.
    one, two = (one or 65535, two or 65535) if words.any() else (0, 0)
    return data + (two << 16 | one).to_bytes(4, "little")


def masked_fields(path):
    """Fields whose eight chunks each skip another set of filters, in two orders of filters."""
    import zlib
    with h5py.File(path, "w") as file:
        file["images"] = pattern((40, 8, 8, 3))
        for name, dtype, order in (("float32", "<f4", "shuffle deflate fletcher32"),
                                   ("uint16", "<u2", "fletcher32 shuffle deflate")):
            creation = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
            creation.set_chunk((5, 7))
            for step in order.split():
                {"shuffle": creation.set_shuffle, "deflate": lambda: creation.set_deflate(6),
                 "fletcher32": creation.set_fletcher32}[step]()
            space = h5py.h5s.create_simple((40, 7))
            data = h5py.Dataset(h5py.h5d.create(file.id, name.encode(), h5py.h5t.py_create(np.dtype(dtype)),
                                                space, creation))
            values = (np.arange(280).reshape(40, 7) * 3.25).astype(dtype)
            size = values.itemsize
            for mask in range(8):
                stored = values[5 * mask:5 * mask + 5].tobytes()
                for bit, step in enumerate(order.split()):
                    if mask >> bit & 1:
                        continue
                    if step == "shuffle":
                        whole = len(stored) // size * size
                        planes = np.frombuffer(stored[:whole], np.uint8).reshape(-1, size).T.tobytes()
                        stored = planes + stored[whole:]
                    elif step == "deflate":
                        stored = zlib.compress(stored)
                    else:
                        stored = fletcher32(stored)
                data.id.write_direct_chunk((5 * mask, 0), stored, mask)


def typed_fields(path, compression="gzip"):
    """Fields of several types and ranks, chunked otherwise than the images, or not at all."""
    n = 50
    all_filters = dict(shuffle=True, compression=compression, fletcher32=True)
    with h5py.File(path, "w") as file:
        file.create_dataset("images", data=pattern((n, 8, 8, 3)), chunks=(16, 8, 8, 3), compression=compression)
        masks = (np.arange(n * 9 * 10, dtype=np.int64) ** 2 % 60000).astype(np.uint16).reshape(n, 9, 10)
        file.create_dataset("masks", data=masks, chunks=(7, 4, 3), **all_filters)
        file.create_dataset("masks_plain", data=masks, chunks=(60, 9, 10), maxshape=(None, 9, 10))
        depth = np.sqrt(np.arange(n * 33)).astype(np.float32).reshape(n, 33)
        file.create_dataset("depth", data=depth, chunks=(3, 5), **all_filters)
        file["depth_contiguous"] = depth
        file.create_dataset("weight", data=np.linspace(0, 1, n), chunks=(11,), compression=compression)
        file.create_dataset("id", data=np.arange(n, dtype=np.int64) - 7, chunks=(64,), maxshape=(None,),
                            shuffle=True, fletcher32=True)
        box = file.create_dataset("box", (n, 4), np.float32, chunks=(6, 3), fillvalue=-1.5, compression=compression)
        box[12:20] = np.arange(32).reshape(8, 4)
        flag = file.create_dataset("flag", (n, 5), np.uint8, chunks=(8, 2), fillvalue=3)
        flag[20:30, :2] = 1
        planes = np.arange(n * 2 * 3 * 4 * 5, dtype=np.int32).reshape(n, 2, 3, 4, 5)
        file.create_dataset("planes", data=planes, chunks=(4, 2, 2, 4, 5), shuffle=True)


def lzf_fields(path, compression="lzf"):
    """Everything under LZF that libhdf5 converts or fills; compression=None: the same without."""
    n = 50
    typed_fields(path, compression)
    row = np.arange(n)
    with h5py.File(path, "r+") as file:
        def add(name, data, **options):
            file.create_dataset(name, data=data, compression=compression, **options)
        add("labels", (row * 3 % 7).astype(np.int32)[:, None], chunks=(9, 1))
        add("big_endian", (row[:, None, None] * 300 + np.arange(20).reshape(4, 5)).astype(">u2"), chunks=(7, 3, 5),
            shuffle=True, fletcher32=True)
        add("bools", row[:, None] % np.arange(1, 6) == 0, chunks=(50, 2))
        file.create_dataset("nothing", (n, 3), np.int16, chunks=(8, 2), fillvalue=-7, compression=compression)


def implicit_chunks(path, n=2**24 + 5):
    """More chunks than a table is made for, at addresses that libhdf5 computes."""
    with h5py.File(path, "w", libver="latest") as file:
        creation = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        creation.set_chunk((1, 2, 1, 1))
        creation.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
        creation.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
        space = h5py.h5s.create_simple((n, 2, 1, 1))
        data = h5py.h5d.create(file.id, b"images", h5py.h5t.STD_U8LE, space, creation)
        base = data.get_chunk_info_by_coord((0, 0, 0, 0)).byte_offset
    with open(path, "r+b") as file:
        for row in (0, 1, n - 1):
            file.seek(base + 2 * row)
            file.write(bytes(((row * 31) % 251, (row * 31 + 7) % 251)))


def large_chunk_of(name, dtype, elements):
    """One row for each of four images in a deflated chunk of many more, which is damaged."""
    def make(path):
        with h5py.File(path, "w") as file:
            file["images"] = pattern((4, 8, 8, 3))
            data = file.create_dataset(name, (4,), dtype, chunks=(elements,), maxshape=(None,), compression="gzip")
            data.id.write_direct_chunk((0,), b"no deflate", 0)
    return make


def altered(place, value, **arrays):
    """The one place that the regular expression finds is overwritten. `earliest`: without check sums."""
    def make(path):
        write(path, "earliest", images=pattern((4, 8, 8, 3)), **arrays)
        with open(path, "r+b") as file:
            found, = re.finditer(place, file.read(), re.DOTALL)
            file.seek(found.start(1))
            file.write(value)
    return make


def zstandard(shape, chunk):
    """Images in chunks as the filter of Zstandard writes them: one frame each. Debian has the library alone."""
    def make(path):
        library = ctypes.CDLL("libzstd.so.1")
        library.ZSTD_compress.restype = library.ZSTD_compressBound.restype = ctypes.c_size_t
        with h5py.File(path, "w") as file:
            creation = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
            creation.set_chunk(chunk)
            creation.set_filter(32015, h5py.h5z.FLAG_OPTIONAL, (3,))
            space = h5py.h5s.create_simple(shape)
            images = h5py.h5d.create(file.id, b"images", h5py.h5t.STD_U8LE, space, creation)
            whole = np.zeros([-(-n // k) * k for n, k in zip(shape, chunk)], np.uint8)
            whole[tuple(map(slice, shape))] = pattern(shape)
            for place in np.ndindex(*(n // k for n, k in zip(whole.shape, chunk))):
                first = tuple(int(i * k) for i, k in zip(place, chunk))
                raw = np.ascontiguousarray(whole[tuple(slice(f, f + k) for f, k in zip(first, chunk))]).tobytes()
                frame = ctypes.create_string_buffer(library.ZSTD_compressBound(ctypes.c_size_t(len(raw))))
                size = library.ZSTD_compress(frame, ctypes.c_size_t(len(frame)), raw, ctypes.c_size_t(len(raw)), 3)
                images.write_direct_chunk(first, frame.raw[:size])
    return make


def unknown_filter(path):
    with h5py.File(path, "w") as file:
        creation = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        creation.set_chunk((2, 8, 8, 3))
        creation.set_filter(32008, h5py.h5z.FLAG_OPTIONAL, (1, 2))
        space = h5py.h5s.create_simple((6, 8, 8, 3))
        h5py.h5d.create(file.id, b"images", h5py.h5t.STD_U8LE, space, creation)


def group_loop(path):
    with h5py.File(path, "w") as file:
        file["a/x"] = pattern((5, 8, 8, 3))
        file["a/up"] = file["/"]
        file["a/self"] = file["a"]


def splits(changed_row=None):
    """Datasets of one shape: one of its own contents, and one that is a copy; maybe with a byte changed."""
    def make(path):
        with h5py.File(path, "w") as file:
            file["train/images"] = pattern((40, 8, 8, 3))
            file["test/images"] = pattern((80, 8, 8, 3))[40:]
            file["copy/images"] = pattern((40, 8, 8, 3))
            if changed_row is not None:
                pixel = file["train/images"][changed_row, 7, 7, 2]
                file["train/images"][changed_row, 7, 7, 2] = pixel ^ 1
    return make


CASES = {
    "splits": splits(),
    "splits_changed_first": splits(0),
    "splits_changed_middle": splits(20),
    "splits_changed_last": splits(39),
    "contiguous": images(),
    # Chunks that cut every image in two, and label chunks far larger than the labels.
    "celeba_chunks": lambda path: write(
        path, images={"data": pattern((130, 3, 218, 178)), "chunks": (100, 3, 217, 178)},
        labels={"data": labels(130), "chunks": (20000,), "maxshape": (None,)}),
    "attribute_table": datasets(images=pattern((9, 3, 8, 8)), labels=(np.arange(36) % 2).astype(np.uint8).reshape(9, 4)),
    "uint64_labels": with_labels(labels=np.array([2**63 - 1, 0, 1, 2, 3, 4, 5, 6, 2**63], np.uint64)),
    "two_candidates": datasets(**{"train/x": pattern((5, 8, 8, 3)), "test/x": pattern((4, 8, 8, 3))}),
    "no_candidate": datasets(features=np.zeros((5, 3, 8, 8), np.float32), ids=np.arange(5)),
    "no_arrays": datasets(ids=np.arange(5), name=np.array([b"x"] * 5)),
    "soft_link": datasets(real=pattern((5, 8, 8, 3)), images=h5py.SoftLink("/real")),
    "soft_link_in_path": datasets(**{"group/x": pattern((5, 8, 8, 3)), "alias": h5py.SoftLink("/group")}),
    "soft_link_labels": datasets(images=pattern((5, 8, 8, 3)), y=np.arange(5), labels=h5py.SoftLink("/y")),
    "soft_loop": datasets(images=h5py.SoftLink("/b"), b=h5py.SoftLink("/images")),
    "user_block": datasets(userblock_size=512, images=pattern((40, 8, 8, 3))),
    "unallocated": datasets(images=empty((6, 8, 8, 3))),
    # libhdf5 adds the user block to the offset that says that there is none.
    "unallocated_behind_user_block": datasets(userblock_size=512, images=pattern((40, 8, 8, 3)),
                                              labels=empty((40,), np.int64, fillvalue=7)),
    "many_masks": lambda path: masks(path, 4000),
    # A field with a filter that is part of libhdf5 and of nothing else.
    "scaleoffset": datasets(images=pattern((20, 8, 8, 3)), depth={
        "data": np.arange(20 * 6, dtype=np.int32).reshape(20, 6), "chunks": (8, 4), "scaleoffset": 0,
        "compression": "gzip"}),
    # 100,000 chunks of one image each behind the B-tree of early versions.
    "many_chunks": lambda path: write(
        path, "earliest", images={"data": pattern((100000, 2, 2, 1)), "chunks": (1, 2, 2, 1)}),
    "no_samples": datasets(images=empty((0, 8, 8, 3), maxshape=(None, 8, 8, 3))),
    "huge_shape": datasets(images=empty((2**40, 4096, 4096, 3), chunks=(1, 64, 64, 3))),
    # Parallel to the images, but of 2^70 bytes: its number of chunks wraps to 0.
    "huge_field": datasets(images=empty((2**40, 2, 1, 1), chunks=(2**10, 2, 1, 1)),
                           huge=empty((2**40, 2**30), chunks=(1, 1)),
                           wide=empty((2**40, 2**20), np.int64, chunks=(2**20, 1))),
    # All labels in one deflated chunk of 1.6 MB, more than libhdf5 keeps of a dataset by itself.
    "label_pieces": lambda path: write(path, images=pattern((200000, 2, 1, 1)), labels={
        "data": np.arange(200000, dtype=np.int64) % 7, "chunks": (200000,), "compression": "gzip"}),
    "gray": images("x", (40, 8, 9, 1)),
    "nchw": images(shape=(40, 3, 8, 9)),
    "whole_chunks": images(chunks=(16, 8, 8, 3)),
    "one_chunk": images(chunks=(40, 8, 8, 3)),
    "deflate": images(chunks=(16, 8, 8, 3), compression="gzip", shuffle=True),
    "fletcher": images(chunks=(7, 5, 8, 2), fletcher32=True),
    # LZF makes every chunk of the first smaller, none of the second (so their filter masks say that it was left
    # out), and some of the third.
    "lzf": images(chunks=(16, 8, 8, 3), compression="lzf", shuffle=True),
    "lzf_masked": images(chunks=(1, 8, 8, 3), compression="lzf"),
    "lzf_odd_chunks": images(shape=(40, 9, 8, 3), chunks=(7, 5, 3, 2), compression="lzf", fletcher32=True),
    "lzf_large": images(shape=(72, 3, 400, 400), chunks=(72, 1, 150, 400), compression="lzf", fletcher32=True),
    "lzf_user_block": images(chunks=(16, 8, 8, 3), compression="lzf", userblock_size=512),
    "zstd": zstandard((40, 32, 31, 3), (16, 32, 31, 3)),
    "zstd_cut": zstandard((40, 90, 80, 3), (7, 50, 30, 2)),
    # By plugins, if libhdf5 finds them.
    "lz4": images(shape=(40, 32, 31, 3), chunks=(16, 32, 31, 3), compression=32004, compression_opts=(1000,)),
    "lz4_cut": images(shape=(40, 90, 80, 3), chunks=(7, 50, 30, 2), compression=32004, fletcher32=True),
    "blosc": images(shape=(40, 32, 31, 3), chunks=(16, 32, 31, 3), compression=32001),
    "blosc_cut": images(shape=(40, 90, 80, 3), chunks=(7, 50, 30, 2), compression=32001,
                        compression_opts=(0, 0, 0, 0, 5, 1, 0), fletcher32=True),
    "plain_fields": lambda path: lzf_fields(path, None),
    "large_deflate": images(shape=(72, 3, 400, 400), chunks=(72, 1, 150, 400), compression="gzip",
                            compression_opts=1),
    "btree1": indexed("earliest"),
    "implicit": indexed(),
    "fixed_array": indexed(fletcher32=True),
    "extensible_array": indexed(maxshape=(None, 8, 8, 3)),
    "btree2": indexed(maxshape=(None, None, 8, 3)),
    "btree1_user_block": indexed("earliest", user_block=1024),
    "extensible_array_user_block": indexed(user_block=512, maxshape=(None, 8, 8, 3)),
    "one_image_chunks": images(shape=(1000, 8, 8, 3), libver="earliest", chunks=(1, 8, 8, 3)),
    "one_image_deflate": images(shape=(1000, 8, 8, 3), libver="earliest", chunks=(1, 8, 8, 3), compression="gzip"),
    "one_image_filters": images(shape=(1000, 8, 8, 3), libver="earliest", chunks=(1, 8, 8, 3), compression="gzip",
                                shuffle=True, fletcher32=True),
    "one_image_extensible": images(shape=(1000, 8, 8, 3), libver="latest", chunks=(1, 8, 8, 3),
                                   maxshape=(None, 8, 8, 3), compression="gzip"),
    "scattered": scattered((1, 8, 8, 3)),
    "scattered_holes": scattered((1, 8, 8, 3), left_out=7, compression="gzip"),
    "scattered_cut": scattered((3, 5, 8, 2), shape=(500, 9, 8, 3)),
    "scattered_cut_deflate": scattered((3, 5, 8, 2), shape=(500, 9, 8, 3), compression="gzip", shuffle=True),
    "deep_tree": scattered((1, 8, 8, 3), half_entries=1),
    "deep_tree_cut": scattered((3, 5, 8, 2), shape=(500, 9, 8, 3), half_entries=2, left_out=5),
    "tree_header_2": scattered((1, 8, 8, 3), libver="v18", track_order=True),
    "tree_user_block": scattered((1, 8, 8, 3), user_block=512),
    "default_chunks": images(shape=(40, 64, 48, 3), chunks=True),
    "odd_chunks": images(shape=(40, 9, 8, 3), chunks=(7, 5, 3, 2)),
    "odd_chunks_checked": images(shape=(40, 9, 8, 3), chunks=(7, 5, 3, 2), compression="gzip", shuffle=True,
                                 fletcher32=True),
    "odd_chunks_btree1": images(shape=(40, 9, 8, 3), libver="earliest", chunks=(7, 5, 3, 2),
                                compression="gzip"),
    "default_chunks_deflate": images(shape=(40, 64, 48, 3), chunks=True, compression="gzip"),
    "large_chunk": images(shape=(40, 100, 131, 3), chunks=(40, 100, 131, 3), maxshape=(None, 100, 131, 3)),
    "large_rows_cut": images(shape=(5, 512, 701, 3), chunks=(3, 300, 701, 2)),
    "odd_chunks_deflate": images(shape=(40, 9, 8, 3), chunks=(7, 5, 3, 2), compression="gzip", shuffle=True),
    "label_bomb": large_chunk_of("labels", np.int64, 2**29 - 1),
    "field_bomb": large_chunk_of("depth", np.int64, 2**29 - 1),
    "damaged_field": large_chunk_of("depth", np.int64, 100),
    # The second axis of chunks, in the message of the layout: libhdf5 reads on behind what it stores.
    "short_chunks": altered(rb"\x02\x00\x00\x00(\x06\x00\x00\x00)\x08\x00\x00\x00",
                            struct.pack("<I", 600), depth={"data": np.arange(24).reshape(4, 6), "chunks": (2, 6)}),
    # When to fill, in the message of the fill value: neither always, never nor if it is set.
    "odd_fill_time": altered(rb"\x05\x00.\x00.\x00\x00\x00\x02\x03(\x00)",
                             b"\x10", depth={"data": np.arange(4), "chunks": (4,)}),
    # 128 MiB as they are stored, 1 GiB as they are delivered.
    "small_labels": large_chunk_of("labels", np.uint8, 2**27),
    "ambiguous": images(shape=(4, 3, 8, 3)),
    "no_images": datasets(ids=np.arange(5), box=np.zeros((5, 4), np.float32)),
    "gray3": images("x_train", (40, 8, 9)),
    "gray3_chunked": images(shape=(40, 8, 9), chunks=(7, 5, 4), compression="gzip"),
    "gray3_three_wide": images(shape=(40, 8, 3), chunks=(16, 8, 3)),
    "gray3_lzf": images(shape=(40, 28, 28), chunks=True, compression="lzf"),
    "gray3_and_4": datasets(masks=pattern((40, 8, 8)), pictures=pattern((40, 8, 8, 3))),
    "gray3_named": datasets(masks=pattern((40, 6, 6)), images=pattern((40, 8, 9))),
    "gray3_several": datasets(x_train=pattern((40, 8, 9)), x_test=pattern((20, 8, 9))),
    "gray3_beside_floats": datasets(masks=pattern((40, 8, 9)), x=np.zeros((40, 8, 9, 3), np.float32)),
    "floats_and_masks": datasets(images=np.zeros((40, 8, 9, 3), np.float32), thumbs=pattern((40, 4, 4, 3))),
    "floats_gray": datasets(x=np.zeros((40, 8, 9))),
    "floats": floats(),
    "floats64_signed": floats(">f8", (40, 8, 9), -1, 1, chunks=(7, 5, 9), compression="gzip"),
    "floats_lzf": floats(np.float32, (40, 3, 8, 9), 0, 255, chunks=(16, 2, 8, 9), compression="lzf", shuffle=True),
    "floats_inverted": floats(np.float32, (40, 8, 9), 1, 0),
    "wide_integers": floats(np.int64, (40, 8, 8, 3), 0, 255),
    "scans": datasets(volumes=pattern((40, 8, 9)).astype(np.int16) * 8 - 1000, scans=h5py.SoftLink("/volumes"),
                      diagnosis=labels(40)),
    "floats_outside": floats(change=1.5),
    "floats_infinite": floats(change=np.inf),
    "floats_nan": floats(change=np.nan),
    "label_column_uint8": with_labels(labels=labels(9).astype(np.uint8)[:, None]),
    "label_column_int32": with_labels(labels=labels(9).astype(np.int32)[:, None]),
    "label_bool": with_labels(labels=labels(9) % 2 == 1, mask=np.ones((9, 2), bool)),
    "label_float": with_labels(labels=labels(9).astype(np.float32)),
    "label_string": with_labels(labels=np.array([b"cat"] * 9)),
    "label_rows": with_labels(labels=labels(8), y_train=labels(9)),
    "label_one_hot": with_labels(labels=np.eye(9, dtype=np.int32)),
    "label_group": with_labels(**{"labels/fine": labels(9), "labels/coarse": labels(9)[:, None]}),
    "label_likely": with_labels(y_train=labels(9).astype(np.uint8)[:, None], y_test=labels(5),
                                weight=np.ones(9), ids=np.arange(9), name=np.array([b"x"] * 9)),
    "label_unlikely": with_labels(yes=np.arange(9), weight=np.ones(9)),
    "vectors": vectors(),
    "vectors_chunked": vectors(chunks=(7, 784)),
    "vectors_latest": vectors(libver="latest", chunks=(7, 784)),
    "vectors_cut": vectors(chunks=(7, 100), compression="gzip", shuffle=True),
    "vectors_deflate": vectors(dtype=np.float64, chunks=(7, 784), compression="gzip", shuffle=True, fletcher32=True),
    "vectors_lzf": vectors((40, 3, 5, 7, 2), np.int16, chunks=(16, 2, 5, 3, 2), compression="lzf"),
    "vectors_big_endian": vectors(dtype=">f4", chunks=(16, 784)),
    "vectors_scaleoffset": vectors(dtype=np.int32, chunks=(16, 784), scaleoffset=0),
    "vectors_one_axis": vectors((40,), np.float32),
    "vectors_bytes": datasets(x=pattern((40, 784))),
    "vectors_and_boxes": datasets(x=numbers((40, 784)), box=numbers((40, 4)), more=numbers((39, 4))),
    "vectors_beside_others": datasets(x=numbers((40, 784)), weights=numbers((10, 784)), labels=labels(40)),
    "vectors_one_hot": datasets(x=numbers((40, 784)), y=np.eye(40, dtype=np.int32)),
    "packed_vectors": as_packed({"data": numbers((47, 784)), "chunks": (6, 784)}),
    "packed_gray": as_packed({"data": pattern((47, 9, 10)), "chunks": (6, 9, 10)}),
    "no_channel_axis": images(shape=(4, 5, 8, 6)),
}
for make in (fields, external_link, external_storage, virtual, unallocated_chunks, never_filled, layout_attribute,
             unknown_filter, group_loop, masked_chunks, masked_fields, masks, typed_fields, lzf_fields, implicit_chunks):
    CASES[make.__name__] = make

if __name__ == "__main__":
    CASES[sys.argv[1]](sys.argv[2])
