#!/usr/bin/env python3
"""torchvision's v2 transforms over the images of h5py and DataLoader: float32 [B,C,H,W].

Whole batches are transformed, either by the workers or by this process. Tried are 0, 1 and 2
workers. The fastest is timed.
"""

import functools

import h5py
import torch
import torchvision
from torchvision.transforms import v2

import h5py_dataloader
import normalized
import rounds
import stacking

WORKERS = (0, 1, 2)
TRANSFORMS = v2.Compose([v2.ToDtype(torch.float32, scale=True),
                         v2.Normalize(normalized.MEAN, normalized.STD, inplace=True)])


def normalize(batch):
    images, labels = batch
    return TRANSFORMS(images.permute(0, 3, 1, 2).contiguous()), labels


def collate(samples, shape):
    images, rows = zip(*samples)
    return stacking.stack(images, rows, shape)


def collate_and_normalize(samples, shape):
    return normalize(collate(samples, shape))


class Normalized:
    """Normalises in this process what the workers of `loader` deliver."""

    def __init__(self, loader):
        self.loader = loader

    def __iter__(self):
        return map(normalize, self.loader)


def main():
    options = rounds.parse_options(__doc__)
    shape = rounds.image_shape(options.file)
    torch.set_num_threads(options.threads)

    def make(collate_fn, workers):
        return torch.utils.data.DataLoader(
            h5py_dataloader.Pictures(options.file), batch_size=options.batch, shuffle=True,
            collate_fn=functools.partial(collate_fn, shape=shape), num_workers=workers,
            persistent_workers=workers > 0)

    ways = {f"{workers} workers": functools.partial(make, collate_and_normalize, workers)
            for workers in WORKERS}
    ways |= {f"{workers} workers, normalised in this process":
             lambda workers=workers: Normalized(make(collate, workers)) for workers in WORKERS[1:]}
    rounds.compete("h5py + DataLoader + torchvision",
                   {"h5py": h5py.__version__, "torch": torch.__version__,
                    "torchvision": torchvision.__version__},
                   {"batch": options.batch}, ways, options, normalized.check_epoch)


if __name__ == "__main__":
    main()
