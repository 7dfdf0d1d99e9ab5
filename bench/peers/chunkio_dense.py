#!/usr/bin/env python3
"""chunkio from Python: a Loader of the file as it is, and a Densifier, with as many threads as --threads says."""

import functools

import chunkio
import numpy as np

import dense_rows
import rounds
from chunkio_loader import LOADER_OPTIONS, Epochs


def main():
    options = rounds.parse_options(__doc__)
    data = chunkio.Dataset(options.file)
    densify = chunkio.Densifier(data, num_threads=options.threads)

    def deliver(batch):
        return np.asarray(densify(batch)), np.asarray(batch.sample_ids)

    def make():
        return Epochs(chunkio.Loader(data, batch_size=options.batch, num_threads=options.threads, **LOADER_OPTIONS), deliver)

    dense_rows.compete("chunkio", {"chunkio": chunkio.__version__}, {"batch": options.batch},
                       {f"num_threads={options.threads}": functools.partial(make)}, options)


if __name__ == "__main__":
    main()
