#!/usr/bin/env python3
"""WebDataset on the same images, written once to tar shards.

A sample is one file of label and raw pixels: a second file for the label would take as long to
find in the tar. Shards are shuffled, samples within a buffer of 1,000; batches are made by the
workers. Tried are 0, 1 and 2 workers, and the fastest is timed.

On two busy CPUs, images/s (CelebA-sized, CIFAR-sized): 6,700, 11,600 without workers, 3,600, 12,600
with one, 4,500, 12,900 with two; buffers of 100 or 5,000 samples make no difference.
"""

import functools
import glob
import importlib.metadata
import os

import h5py
import numpy as np
import torch
import webdataset

import rounds
import stacking

WORKERS = (0, 1, 2)
SHARD_BYTES = 32 << 20
SHUFFLE_BUFFER = 1000
LABEL_BYTES = 8


def write_shards(options, folder):
    pattern = os.path.join(folder, "%06d.tar")
    with h5py.File(options.file, "r") as file, \
            webdataset.ShardWriter(pattern, maxsize=SHARD_BYTES, maxcount=1 << 30,
                                   verbose=False) as writer:
        for row, image in rounds.rows_of(file["images"]):
            writer.write({"__key__": f"{row:09d}",
                          "bin": row.to_bytes(LABEL_BYTES, "little") + image.tobytes()})


def collate(samples, shape):
    parts = [sample["bin"] for sample in samples]
    return stacking.stack([np.frombuffer(part, np.uint8, offset=LABEL_BYTES) for part in parts],
                          [int.from_bytes(part[:LABEL_BYTES], "little") for part in parts], shape)


def main():
    options = rounds.parse_options(__doc__)
    shape = rounds.image_shape(options.file)
    folder = rounds.packed(options, ".tars", functools.partial(write_shards, options))
    shards = sorted(glob.glob(os.path.join(folder, "*.tar")))

    def make(workers):
        dataset = (webdataset.WebDataset(shards, shardshuffle=len(shards), detshuffle=True, seed=7,
                                         empty_check=False)
                   .shuffle(SHUFFLE_BUFFER, initial=SHUFFLE_BUFFER)
                   .batched(options.batch, partial=True,
                            collation_fn=functools.partial(collate, shape=shape)))
        return webdataset.WebLoader(dataset, batch_size=None, num_workers=workers,
                                    persistent_workers=workers > 0)

    ways = {f"{workers} workers": functools.partial(make, workers) for workers in WORKERS}
    rounds.compete("WebDataset", {"webdataset": importlib.metadata.version("webdataset"),
                                  "torch": torch.__version__},
                   {"shard_bytes": SHARD_BYTES, "shuffle": SHUFFLE_BUFFER, "batch": options.batch},
                   ways, options)


if __name__ == "__main__":
    main()
