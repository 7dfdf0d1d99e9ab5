#!/usr/bin/env python3
"""h5py and torch.utils.data.DataLoader as people write it: one row for each __getitem__, made dense there.

Where rows begin is kept in memory. 0, 1, 2 and 4 workers are tried, and the fastest is timed.
"""

import functools

import h5py
import numpy as np
import torch

import dense_rows
import rounds
from h5py_dataloader import WORKERS


class Rows(torch.utils.data.Dataset):
    def __init__(self, path):
        self.path = path
        self.matrix = None
        with h5py.File(path, "r") as file:
            self.indptr = file["X/indptr"][:]
            self.columns = file["X"].attrs["shape"][1]

    def __len__(self):
        return len(self.indptr) - 1

    def __getitem__(self, row):
        if self.matrix is None:
            self.matrix = h5py.File(self.path, "r")["X"]
        begin, end = self.indptr[row:row + 2]
        dense = np.zeros(self.columns, np.float32)
        dense[self.matrix["indices"][begin:end]] = self.matrix["data"][begin:end]
        return dense, row


def main():
    options = rounds.parse_options(__doc__)

    def make(workers):
        return torch.utils.data.DataLoader(Rows(options.file), batch_size=options.batch, shuffle=True, num_workers=workers,
                                           persistent_workers=workers > 0)

    dense_rows.compete("h5py + DataLoader", {"h5py": h5py.__version__, "torch": torch.__version__}, {"batch": options.batch},
                       {f"{workers} workers": functools.partial(make, workers) for workers in WORKERS}, options)


if __name__ == "__main__":
    main()
