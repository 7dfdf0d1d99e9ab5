"""The file that chunkio reads from Python: the same images, with row numbers as labels."""

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


def packed(options):
    return os.path.join(rounds.packed(options, ".chunkio", functools.partial(write_file, options)),
                        NAME)


class Epochs:
    """Each `for` over it is EPOCH of a loader, and yields what `deliver` makes of each batch."""

    def __init__(self, loader, deliver=lambda batch: batch):
        self.loader = loader
        self.deliver = deliver

    def __iter__(self):
        self.loader.set_epoch(EPOCH)
        return map(self.deliver, self.loader)
