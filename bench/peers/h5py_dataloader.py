#!/usr/bin/env python3
"""h5py and torch.utils.data.DataLoader as people write it: one image for each __getitem__.

The file is opened in the worker, with a chunk cache of 1 GiB; workers are persistent. 0, 1, 2 and 4
workers are tried, and the fastest is timed.
"""

import functools

import h5py
import torch

import rounds

CACHE_BYTES = 1 << 30
WORKERS = (0, 1, 2, 4)


def cache_slots(file):
    """A prime above the number of chunks, so that no two share a slot."""
    with h5py.File(file, "r") as opened:
        images = opened["images"]
        num_chunks = -(-images.shape[0] // images.chunks[0]) if images.chunks else 1
    slots = 100 * num_chunks + 1
    while any(slots % divisor == 0 for divisor in range(2, int(slots**0.5) + 1)):
        slots += 1
    return slots


class Pictures(torch.utils.data.Dataset):
    def __init__(self, path):
        self.path = path
        self.slots = cache_slots(path)
        self.images = None
        with h5py.File(path, "r") as file:
            self.length = file["images"].shape[0]

    def __len__(self):
        return self.length

    def __getitem__(self, row):
        if self.images is None:
            file = h5py.File(self.path, "r", rdcc_nbytes=CACHE_BYTES, rdcc_nslots=self.slots)
            self.images = file["images"]
        return self.images[row], row


def main():
    options = rounds.parse_options(__doc__)

    def make(workers):
        return torch.utils.data.DataLoader(
            Pictures(options.file), batch_size=options.batch, shuffle=True, num_workers=workers,
            persistent_workers=workers > 0)

    ways = {f"{workers} workers": functools.partial(make, workers) for workers in WORKERS}
    rounds.compete("h5py + DataLoader", {"h5py": h5py.__version__, "hdf5": h5py.version.hdf5_version,
                                         "torch": torch.__version__},
                   {"rdcc_nbytes": CACHE_BYTES, "rdcc_nslots": cache_slots(options.file),
                    "batch": options.batch, "order": "shuffle=True"}, ways, options)


if __name__ == "__main__":
    main()
