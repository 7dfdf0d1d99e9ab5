#!/usr/bin/env python3
"""LitData on the same images, written once to its chunks by `optimize`.

Tried are 0, 1 and 2 workers that decode single items, and 0 workers with windows of 256. The
fastest is timed.

On two busy CPUs, images/s (CelebA-sized, CIFAR-sized): single items 7,700, 40,000 without workers,
3,700, 28,000 with one, 3,600, 62,000 with two; windows of 256 without workers 7,100, 63,000. Left
out: the default, which decodes the larger images again and again (280), and whole chunks (390). A
full shuffle within chunks (item_shuffle_window=0) makes no difference. In a process that tried
nothing else before, windows of 256 gave 137,000 for the smaller images. Without workers, single
epochs sometimes took 5 to 13 seconds, for a reason that was not found; the median of the rounds
leaves them out.
"""

import functools
import importlib.metadata
import os

import h5py
import litdata
import torch

import rounds
import stacking

# (workers, batch_decode)
WAYS = ((0, 0), (1, 0), (2, 0), (0, 256))
CHUNK_BYTES = 64 << 20


def read_part(part, file):
    with h5py.File(file, "r") as opened:
        for row, image in zip(part, opened["images"][part.start:part.stop]):
            yield {"image": image.reshape(-1), "label": row}


def write_chunks(options, folder):
    with h5py.File(options.file, "r") as file:
        count = len(file["images"])
    parts = [range(first, min(first + options.batch, count))
             for first in range(0, count, options.batch)]
    litdata.optimize(functools.partial(read_part, file=os.path.abspath(options.file)), parts,
                     folder, chunk_bytes=CHUNK_BYTES, num_workers=1, verbose=False)


def main():
    options = rounds.parse_options(__doc__)
    collate = functools.partial(stacking.stack_samples, shape=rounds.image_shape(options.file))
    folder = rounds.packed(options, ".litdata", functools.partial(write_chunks, options))

    def make(workers, batch_decode):
        dataset = litdata.StreamingDataset(folder, shuffle=True, drop_last=False,
                                           batch_decode=batch_decode)
        return litdata.StreamingDataLoader(
            dataset, batch_size=options.batch, collate_fn=collate, num_workers=workers,
            persistent_workers=workers > 0)

    ways = {f"{workers} workers, batch_decode={batch_decode}":
            functools.partial(make, workers, batch_decode) for workers, batch_decode in WAYS}
    rounds.compete("LitData", {"litdata": importlib.metadata.version("litdata"),
                               "torch": torch.__version__},
                   {"chunk_bytes": CHUNK_BYTES, "batch": options.batch}, ways, options)


if __name__ == "__main__":
    main()
