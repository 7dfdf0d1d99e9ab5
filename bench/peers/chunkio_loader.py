#!/usr/bin/env python3
"""chunkio from Python, on its own file with the same images and their row numbers as labels.

Tried are one thread, as many as --threads says, and as many as it chooses. The fastest is timed.
"""

import functools
import os

import chunkio
import h5py
import numpy as np

import rounds

NAME = "train.h5"
# Every `for` is this epoch, and nothing of the next one is read before the clock starts.
EPOCH = 1
LOADER_OPTIONS = {"seed": 7, "num_epochs": EPOCH + 1}


def write_file(options, folder):
    with h5py.File(options.file, "r") as file:
        images = file["images"]
        with chunkio.Writer(os.path.join(folder, NAME), num_samples=len(images),
                            shape=images.shape[1:]) as writer:
            for first in range(0, len(images), options.batch):
                block = images[first:first + options.batch]
                writer.append(block, np.arange(first, first + len(block)))


class Epochs:
    """Each `for` over it is EPOCH of a loader, and yields what `deliver` makes of each batch."""

    def __init__(self, loader, deliver):
        self.loader = loader
        self.deliver = deliver

    def __iter__(self):
        self.loader.set_epoch(EPOCH)
        return map(self.deliver, self.loader)


def compete(peer, versions, options, make, deliver=lambda batch: batch, check=rounds.check_epoch):
    """Serves the loaders that `make(path, **options)` makes of the file."""
    path = os.path.join(rounds.packed(options, ".chunkio", functools.partial(write_file, options)),
                        NAME)

    def epochs(threads):
        return Epochs(make(path, batch_size=options.batch, num_threads=threads, **LOADER_OPTIONS), deliver)

    ways = {f"num_threads={threads}": functools.partial(epochs, threads)
            for threads in sorted({0, 1, options.threads})}
    rounds.compete(peer, {"chunkio": chunkio.__version__, **versions}, {"batch": options.batch}, ways, options, check)


def arrays(batch):
    images, labels = batch
    return np.asarray(images), np.asarray(labels)  # without a copy


def main():
    compete("chunkio", {}, rounds.parse_options(__doc__),
            lambda path, **options: chunkio.Loader(chunkio.Dataset(path), **options), arrays)


if __name__ == "__main__":
    main()
