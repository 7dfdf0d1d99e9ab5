#!/usr/bin/env python3
"""Grain on the same images, written once to an ArrayRecord file without compression.

An element of the pipeline is a batch: its records are asked for at once, which ArrayRecord reads
without Python, and stacked once. Tried are 0, 1, 2 and 4 reading threads, and the fastest is timed.

On two busy CPUs, images/s (CelebA-sized, CIFAR-sized): 7,100, 39,000 without threads, 9,000, 60,000
with one, 10,400, 56,000 with two, 11,700, 75,000 with four. Left out: single records that Grain
batches (at best 10,000, 5,200), and two processes (1,700, 32,500, after 1.5 seconds of start in
each epoch).
"""

import functools
import importlib.metadata
import os

import grain
import h5py
import numpy as np
from array_record.python import array_record_module

import rounds

THREADS = (0, 1, 2, 4)
BATCHES_AHEAD = 4
WRITER_OPTIONS = "group_size:1,uncompressed"
READER_OPTIONS = {"index_storage_option": "in_memory"}
LABEL_BYTES = 8


def write_records(options, folder):
    writer = array_record_module.ArrayRecordWriter(os.path.join(folder, "images"), WRITER_OPTIONS)
    with h5py.File(options.file, "r") as file:
        for row, image in rounds.rows_of(file["images"]):
            writer.write(row.to_bytes(LABEL_BYTES, "little") + image.tobytes())
    writer.close()


class Epochs:
    """Each `for` over it is the next epoch."""

    def __init__(self, source, threads, shape, batch):
        self.source = source
        self.options = grain.ReadOptions(num_threads=threads, prefetch_buffer_size=BATCHES_AHEAD)
        self.shape = shape
        self.batch = batch
        self.epoch = 0

    def __iter__(self):
        self.epoch += 1
        rows = np.random.default_rng(self.epoch).permutation(len(self.source))
        firsts = grain.MapDataset.range(0, len(rows), self.batch)
        return iter(firsts.map(lambda first: self.read(rows[first:first + self.batch]))
                    .to_iter_dataset(self.options))

    def read(self, rows):
        records = self.source.__getitems__(rows)
        images = np.empty((len(records), *self.shape), np.uint8)
        np.concatenate([np.frombuffer(record, np.uint8, offset=LABEL_BYTES) for record in records],
                       out=images.reshape(-1))
        labels = [int.from_bytes(record[:LABEL_BYTES], "little") for record in records]
        return images, np.array(labels, np.int64)


def main():
    options = rounds.parse_options(__doc__)
    shape = rounds.image_shape(options.file)
    folder = rounds.packed(options, ".array_record", functools.partial(write_records, options))
    source = grain.sources.ArrayRecordDataSource(os.path.join(folder, "images"), READER_OPTIONS)
    ways = {f"{threads} threads": functools.partial(Epochs, source, threads, shape, options.batch)
            for threads in THREADS}
    rounds.compete("Grain", {"grain": importlib.metadata.version("grain"),
                             "array_record": importlib.metadata.version("array_record")},
                   {"writer_options": WRITER_OPTIONS, "batches_ahead": BATCHES_AHEAD,
                    "batch": options.batch}, ways, options)


if __name__ == "__main__":
    main()
