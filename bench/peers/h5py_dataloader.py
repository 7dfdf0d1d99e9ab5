#!/usr/bin/env python3
"""h5py and torch.utils.data.DataLoader as people write it: one image for each __getitem__.

The file is opened in the worker, with a chunk cache of 1 GiB; workers are persistent. 0, 1, 2 and 4
workers are tried, and the fastest is timed.
"""

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
    reference = rounds.load_reference(options.file)
    num_images = len(reference)

    def make(workers):
        return torch.utils.data.DataLoader(
            Pictures(options.file), batch_size=options.batch, shuffle=True, num_workers=workers,
            persistent_workers=workers > 0)

    def epoch_of(loader):
        def run():
            return sum(len(rows) for _, rows in loader)
        return run

    rates = {}
    for workers in WORKERS:
        name = f"{workers} workers"
        loader = make(workers)
        if workers == WORKERS[0]:
            rounds.check_epoch(loader, reference, name)
        else:
            epoch_of(loader)()  # fills the caches
        rates |= rounds.fastest({name: epoch_of(loader)}, num_images, options.cold_files)[1]
        del loader
    best = max(rates, key=rates.get)
    loader = make(int(best.split()[0]))
    rounds.check_epoch(loader, reference, best)
    del reference
    rounds.serve("h5py + DataLoader", {"h5py": h5py.__version__,
                                       "hdf5": h5py.version.hdf5_version,
                                       "torch": torch.__version__},
                 {"rdcc_nbytes": CACHE_BYTES, "rdcc_nslots": cache_slots(options.file),
                  "batch": options.batch, "order": "shuffle=True"},
                 best, rates, epoch_of(loader), options)


if __name__ == "__main__":
    main()
