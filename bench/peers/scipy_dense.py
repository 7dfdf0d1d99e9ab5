#!/usr/bin/env python3
"""The matrix in memory, and `csr[rows].toarray()` for each batch.

Tried are the loop of a trainer, and a DataLoader whose 1 or 2 workers make whole batches.
"""

import functools

import numpy as np
import scipy
import torch

import dense_rows
import rounds


class Batches(torch.utils.data.Dataset):
    """Item: a batch, by its row numbers."""

    def __init__(self, matrix):
        self.matrix = matrix

    def __len__(self):
        return self.matrix.shape[0]

    def __getitem__(self, rows):
        return torch.from_numpy(self.matrix[rows].toarray()), np.asarray(rows)


class Loop:
    def __init__(self, batches, batch_size):
        self.batches, self.batch_size, self.random = batches, batch_size, np.random.default_rng(7)

    def __iter__(self):
        order = self.random.permutation(len(self.batches))
        for first in range(0, len(order), self.batch_size):
            yield self.batches[order[first:first + self.batch_size]]


def main():
    options = rounds.parse_options(__doc__)
    batches = Batches(dense_rows.load_matrix(options.file))

    def in_workers(workers):
        sampler = torch.utils.data.BatchSampler(torch.utils.data.RandomSampler(batches), options.batch, drop_last=False)
        return torch.utils.data.DataLoader(batches, batch_size=None, sampler=sampler, num_workers=workers,
                                           persistent_workers=True)

    ways = {"a loop": functools.partial(Loop, batches, options.batch)}
    ways |= {f"{workers} workers": functools.partial(in_workers, workers) for workers in (1, 2)}
    dense_rows.compete("scipy", {"scipy": scipy.__version__, "torch": torch.__version__}, {"batch": options.batch}, ways, options)


if __name__ == "__main__":
    main()
