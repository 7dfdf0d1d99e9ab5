#!/usr/bin/env python3
"""chunkio from Python, on its own file with the same images and their row numbers as labels.

Tried are one thread, as many as --threads says, and as many as it chooses. The fastest is timed.
"""

import functools

import chunkio
import numpy as np

import chunkio_file
import rounds


def arrays(batch):
    images, labels = batch
    return np.asarray(images), np.asarray(labels)  # without a copy


def main():
    options = rounds.parse_options(__doc__)
    path = chunkio_file.packed(options)

    def make(threads):
        loader = chunkio.Loader(chunkio.Dataset(path), batch_size=options.batch,
                                num_threads=threads, **chunkio_file.LOADER_OPTIONS)
        return chunkio_file.Epochs(loader, arrays)

    ways = {f"num_threads={threads}": functools.partial(make, threads)
            for threads in sorted({0, 1, options.threads})}
    rounds.compete("chunkio", {"chunkio": chunkio.__version__}, {"batch": options.batch}, ways,
                   options)


if __name__ == "__main__":
    main()
