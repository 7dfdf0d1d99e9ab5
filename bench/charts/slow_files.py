#!/usr/bin/env python3
"""How slow the HDF5 files are that people have, and how fast after `h5pack repack`.

    python bench/charts/slow_files.py --h5pack build/release/tools/h5pack/h5pack [--dir DIR] [--images 20000] [--rounds 5]

Writes the same 64x64x3 images in each of the ways below by h5py, repacks each file, and prints a Markdown table. A round reads
every file once by each reader, before and after, so the readers are interleaved; the figures are medians and ranges of the rounds. Files are in the page
cache. The images of a repacked file are compared with those of the original before anything is timed. Needs h5py and NumPy.

What is read by h5py is what a DataLoader's worker does: one random sample at a time, with h5py's own defaults, for a second.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import time

import h5py
import numpy as np

SHAPE = (64, 64, 3)
CLASSES = 10

# Name, how the dataset is created.
CASES = [
    ("contiguous, as h5py writes by default", {}),
    ("one image a chunk", {"chunks": (1, *SHAPE)}),
    ("chunks that cut images (`chunks=True`)", {"chunks": True}),
    ("gzip, 32 images a chunk", {"chunks": (32, *SHAPE), "compression": "gzip"}),
    ("gzip, 512 images a chunk: larger than the cache", {"chunks": (512, *SHAPE), "compression": "gzip"}),
    ("LZF, 32 images a chunk", {"chunks": (32, *SHAPE), "compression": "lzf"}),
]


def draw(count):
    """Smooth images with some noise, which gzip makes a third smaller: like photos, more than like noise."""
    random = np.random.default_rng(7)
    y, x = np.mgrid[0:64, 0:64] / 64
    for start in range(0, count, 500):
        size = min(500, count - start)
        slope = random.uniform(-100, 100, (size, 2, 1, 1, 3))
        base = random.uniform(60, 200, (size, 1, 1, 3))
        smooth = base + slope[:, 0] * y[None, :, :, None] + slope[:, 1] * x[None, :, :, None]
        yield start, np.clip(smooth + random.integers(-8, 9, (size, *SHAPE)), 0, 255).astype(np.uint8)


def write(path, count, options):
    labels = np.random.default_rng(8).integers(0, CLASSES, count)
    with h5py.File(path, "w") as file:
        images = file.create_dataset("images", (count, *SHAPE), np.uint8, **options)
        for start, block in draw(count):
            images[start : start + len(block)] = block
        file["labels"] = labels


def check(before, after):
    """Rows of the repacked file, which keeps their order, are those of the original."""
    with h5py.File(before) as one, h5py.File(after) as other:
        for row in np.random.default_rng(9).integers(0, len(one["images"]), 50):
            np.testing.assert_array_equal(one["images"][row], other["images"][row])
            assert one["labels"][row] == other["labels"][row]


def warm(path):
    with open(path, "rb") as file:
        while file.read(1 << 24):
            pass


def h5py_rate(path, random):
    with h5py.File(path) as file:
        images, labels, count = file["images"], file["labels"], 0
        start = time.perf_counter()
        while (seconds := time.perf_counter() - start) < 1:
            row = int(random.integers(0, len(images)))
            images[row], labels[row]
            count += 1
    return count / seconds


def stream_rate(h5pack, path):
    """Images a second of all epochs but the first, since the next one is prefetched."""
    command = [h5pack, "stream", path, "--json", "--threads", "2", "--epochs", "6"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    epochs = [json.loads(line) for line in done.stdout.splitlines()][1:]
    return sum(epoch["images"] for epoch in epochs) / sum(epoch["seconds"] for epoch in epochs)


def rounded(value):
    digits = 10 ** max(0, len(str(int(value))) - 3)
    return f"{round(value / digits) * digits:,}"


def cell(values):
    return f"{rounded(statistics.median(values))} ({rounded(min(values))} to {rounded(max(values))})"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--h5pack", required=True)
    parser.add_argument("--dir", type=pathlib.Path, default=pathlib.Path("."))
    parser.add_argument("--images", type=int, default=20000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()

    files = []
    for index, (name, layout) in enumerate(CASES):
        before, after = (options.dir / f"slow{index}{kind}.h5" for kind in ("", "-repacked"))
        write(before, options.images, layout)
        subprocess.run([options.h5pack, "-q", "repack", before, "-o", after, "--force"], check=True, capture_output=True)
        check(before, after)
        files.append((name, before, after))

    random = np.random.default_rng(10)
    rates = {name: ([], [], [], []) for name, *_ in files}
    for _ in range(options.rounds):
        for name, before, after in files:
            warm(before), warm(after)
            for column, rate in zip(rates[name], (
                    h5py_rate(before, random), stream_rate(options.h5pack, before),
                    h5py_rate(after, random), stream_rate(options.h5pack, after))):
                column.append(rate)

    print("| file | h5py, random | chunkio | h5py, repacked | chunkio, repacked |\n|---|---|---|---|---|")
    for name, columns in rates.items():
        print(f"| {name} | {' | '.join(cell(column) for column in columns)} |")
    for _, *paths in files:
        for path in paths:
            os.unlink(path)


if __name__ == "__main__":
    main()
