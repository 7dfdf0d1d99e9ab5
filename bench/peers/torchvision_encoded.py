#!/usr/bin/env python3
"""ImageFolder, RandomResizedCrop(224) and DataLoader of torchvision: uint8 [B,C,H,W].

Tried are 0, 1, 2 and twice as many workers as --threads says. The fastest is timed.
"""

import functools

import PIL
import torch
import torchvision
from torchvision.transforms import v2

import rounds

SIDE = 224
TRANSFORMS = v2.Compose([v2.RandomResizedCrop(SIDE, antialias=True), v2.RandomHorizontalFlip(), v2.PILToTensor()])


def check(batches, count, what):
    images = 0
    for pictures, labels in batches:
        if pictures.dtype != torch.uint8 or tuple(pictures.shape[1:]) != (3, SIDE, SIDE):
            raise SystemExit(f"{what} delivered {pictures.dtype} {tuple(pictures.shape)}")
        images += len(labels)
    if images != count:
        raise SystemExit(f"{what} delivered {images} of {count} images")


def main():
    options = rounds.parse_options(__doc__)
    folder = torchvision.datasets.ImageFolder(options.file, TRANSFORMS)
    torch.set_num_threads(1)

    def make(workers):
        return torch.utils.data.DataLoader(folder, batch_size=options.batch, shuffle=True, num_workers=workers,
                                           persistent_workers=workers > 0)

    rates, kept = {}, {}
    for workers in sorted({0, 1, 2, 2 * options.threads}):
        batches = make(workers)
        check(batches, len(folder), f"{workers} workers")
        name = f"{workers} workers"
        rates |= rounds.fastest({name: functools.partial(images_of, batches)}, len(folder))[1]
        kept[name] = batches
    best = max(rates, key=rates.get)
    rounds.serve("torchvision", {"torch": torch.__version__, "torchvision": torchvision.__version__,
                                 "pillow": PIL.__version__}, {"batch": options.batch}, best, rates,
                 functools.partial(images_of, kept[best]), options)


def images_of(batches):
    return sum(len(labels) for _, labels in batches)


if __name__ == "__main__":
    main()
