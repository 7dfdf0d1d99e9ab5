#!/usr/bin/env python3
"""Writes inputs from which the fuzzing programs begin: make_seeds.py FOLDER. One folder in it for each program."""

import ctypes
import ctypes.util
import io
import json
import os
import pathlib
import struct
import sys
import tempfile
import zipfile
import zlib

import h5py
import numpy as np
from PIL import Image

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "scripts"))
import make_foreign_file as foreign  # noqa: E402

MAX_INPUT = 1 << 16
# XXH3 of nothing, and of https://host/a.h5.
EMPTY_DIGEST, PLACE_DIGEST = "2d06800538d394c2", "8258cc19b936b248b07c8c71a7d71b90"


def file_of(write):
    """The bytes of a file that write(path) makes."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "file")
        write(path)
        return pathlib.Path(path).read_bytes()


def written(libver=None, **arrays):
    """The bytes of a file of these datasets."""
    return file_of(lambda path: foreign.write(path, libver, **arrays))


def small_images(**options):
    return {"data": np.arange(30 * 6 * 5 * 3).astype(np.uint8).reshape(30, 6, 5, 3), **options}


def opened():
    yield "chunked", written(images=small_images(chunks=(3, 6, 5, 3)), labels={"data": np.arange(30)})
    yield "latest", written("latest", images=small_images(chunks=(3, 6, 5, 3)), labels={"data": np.arange(30)})
    yield "contiguous", written(images=small_images(), weights={"data": np.ones(30, np.float32)})
    yield "filtered", written(images=small_images(chunks=(5, 6, 5, 3), compression="gzip", shuffle=True, fletcher32=True))
    yield "lzf", written(images=small_images(chunks=(5, 6, 5, 3), compression="lzf"))
    yield "cut", written(images=small_images(chunks=(4, 3, 4, 2)))
    for case in ("btree1", "masked_chunks", "unallocated_chunks", "extensible_array", "btree2"):
        yield case, file_of(foreign.CASES[case])


def trees():
    for name, half_entries, options in (("wide", 32, {}), ("deep", 1, {"left_out": 5}), ("cut", 2, {"chunk": (3, 5, 4, 2)}),
                                        ("header_2", 2, {"libver": "v18", "track_order": True})):
        shape = (60, 6, 4, 3)
        options = {"chunk": (1, 6, 4, 3)} | options
        content = file_of(foreign.scattered(shape=shape, half_entries=half_entries, **options))
        with h5py.File(io.BytesIO(content)) as file:
            address = h5py.h5o.get_info(file["images"].id).addr
        sizes = [size - 1 for size in (*shape, *options["chunk"])]
        yield name, struct.pack("<QB8H", address, half_entries - 1, *sizes) + content


def streams():
    raw = np.repeat(np.random.default_rng(0).integers(0, 4, 60, np.uint8), 10)
    size = struct.pack("<HB", len(raw) - 1, 0)
    yield "deflate", b"\0" + size + zlib.compress(raw.tobytes())
    for pipeline, name, options in ((1, "lzf", {"compression": "lzf"}), (2, "blosc", {"compression": 32001}),
                                    (3, "lz4", {"compression": 32004}),
                                    (5, "all", {"compression": "gzip", "shuffle": True, "fletcher32": True})):
        with h5py.File(io.BytesIO(), "w") as file:
            try:
                data = file.create_dataset("a", data=raw.view("<u4") if pipeline == 5 else raw,
                                           chunks=(150,) if pipeline == 5 else (600,), **options)
                yield name, bytes([pipeline]) + size + data.id.read_direct_chunk((0,))[1]
            except (ValueError, OSError):
                continue  # there is no such plugin


    library = ctypes.util.find_library("zstd")
    if library:
        stream = ctypes.create_string_buffer(2000)
        compress = ctypes.CDLL(library).ZSTD_compress
        compress.restype = ctypes.c_size_t
        yield "zstandard", b"\4" + size + stream[:compress(stream, ctypes.c_size_t(2000), raw.tobytes(), ctypes.c_size_t(600), 3)]


def images():
    rng = np.random.default_rng(0)
    pixels = np.kron(rng.integers(0, 255, (6, 8, 3), np.uint8), np.ones((8, 8, 1), np.uint8))
    picture = Image.fromarray(pixels)
    kinds = {"jpeg": (picture, "JPEG", {"quality": 80}), "progressive": (picture, "JPEG", {"progressive": True}),
             "gray": (picture.convert("L"), "JPEG", {}), "cmyk": (picture.convert("CMYK"), "JPEG", {}),
             "restarts": (picture, "JPEG", {"subsampling": 0, "restart_marker_blocks": 3}),
             "png": (picture, "PNG", {}), "palette": (picture.quantize(16), "PNG", {}), "bits": (picture.convert("1"), "PNG", {}),
             "alpha": (picture.convert("RGBA"), "PNG", {}), "deep": (Image.fromarray(pixels[..., 0].astype(np.uint16) * 257), "PNG", {}),
             "lossy": (picture, "WEBP", {"quality": 60}), "lossless": (picture, "WEBP", {"lossless": True})}
    for number, (name, (image, kind, options)) in enumerate(kinds.items()):
        file = io.BytesIO()
        image.save(file, kind, **options)
        yield name, bytes([number, number]) + file.getvalue()


def records():
    state = {"chunkio_state": 1, "epoch": 3, "step": 5, "seed": 7, "samples": 100, "group_samples": 10,
             "window_groups": 2, "lanes": 4, "global_batch": 32, "order": "chunk_shuffled", "uneven": "pad", "drop_last": False,
             "selection": "all", "fingerprint": "0123456789abcdef"}
    yield "state", b"\0" + json.dumps(state).encode()
    yield "description", b"\1" + b'{"identity":{"seed":"8"},"specification":{"samples":"3"}}'
    body = struct.pack("<5q", 4096, 3000, 3, 13096, 1) + b'{"seed":7}'
    record = struct.pack("<IQ", 1, 24 + 9) + struct.pack("<qqQ", 1, 3, 5) + b"some note"
    # The program puts digests right, and the length of what is last.
    yield "journal", b"\2" + b"chunkioJ" + struct.pack("<IQ", 2, len(body)) + body + bytes(8) + record + bytes(8)
    rows = 3
    note = struct.pack("<3q6i3B3Q", 10, 20, 30, 4, 4, 5, 5, 6, 6, 1, 2, 3, 7, 8, 9)
    yield "record", b"\3" + struct.pack("<qqQ", 0, rows, 5) + note
    line = {"bytes": 1000000, "digest": EMPTY_DIGEST, "part_bytes": 0, "parts_at": 0, "place": PLACE_DIGEST, "version": "1"}
    text = json.dumps(line, separators=(",", ":")) + "\n"
    yield "index", b"\4" + f'{{"chunkio_index":1,"head_bytes":{len(text)}}}\n{text}'.encode()
    yield "parts", b"\5" + struct.pack("<qq5sqq4s", 100, 5, b"abcde", 7770, 4, b"wxyz")


def texts():
    yield "csv", b"\0" + b'path,label\r\n"a ""b""",1\nc.png,"2\n3"\n'
    yield "ratings", b"\1" + b"user,item,rating\n1,10,4.5\n2,10,3\n1,11,5\n"
    yield "mtx", b"\2" + b"%%MatrixMarket matrix coordinate real general\n% a\n3 4 3\n1 1 1.5\n2 3 -2e3\n3 4 7\n"
    yield "symmetric", b"\1" + b"%%MatrixMarket matrix coordinate pattern symmetric\n3 3 2\n2 1\n3 3\n"
    arrays = {"data": np.arange(1, 5, dtype=np.float32), "indices": np.array([0, 2, 1, 3], np.int32),
              "indptr": np.array([0, 2, 3, 4], np.int32), "shape": np.array([3, 4]), "format": np.array(b"csr")}
    for number, compression in ((1, zipfile.ZIP_STORED), (2, zipfile.ZIP_DEFLATED)):
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w", compression) as archive:
            for name, array in arrays.items():
                member = io.BytesIO()
                np.save(member, array)
                archive.writestr(f"{name}.npy", member.getvalue())
        yield f"npz{number}", bytes([number]) + file.getvalue()


def main():
    for name, seeds in (("filters", streams), ("images", images), ("open", opened), ("records", records), ("text", texts),
                        ("tree", trees)):
        folder = pathlib.Path(sys.argv[1]) / name
        folder.mkdir(parents=True, exist_ok=True)
        for seed, content in seeds():
            (folder / seed).write_bytes(content[:MAX_INPUT])


if __name__ == "__main__":
    main()
