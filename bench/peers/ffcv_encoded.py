#!/usr/bin/env python3
"""FFCV in JPEG mode: RandomResizedCropRGBImageDecoder((224, 224)) and RandomHorizontalFlip, uint8 [B,H,W,C].

The bytes of the files are stored as they are. Random and quasi-random order are tried. The fastest is timed.
"""

import functools
import importlib.metadata
import os

import torch
import torchvision
from ffcv.fields import IntField, RGBImageField
from ffcv.fields.decoders import IntDecoder, RandomResizedCropRGBImageDecoder
from ffcv.loader import Loader, OrderOption
from ffcv.transforms import RandomHorizontalFlip, ToTensor
from ffcv.writer import DatasetWriter

import rounds
from torchvision_encoded import images_of

SIDE = 224


def main():
    options = rounds.parse_options(__doc__)
    folder = torchvision.datasets.ImageFolder(options.file)

    def write_beton(path):
        DatasetWriter(os.path.join(path, "train.beton"), {"image": RGBImageField(write_mode="jpg", jpeg_quality=92),
                                                          "label": IntField()}, num_workers=1).from_indexed_dataset(folder)

    beton = os.path.join(rounds.packed(options, ".ffcv-jpg", write_beton), "train.beton")
    rates, kept = {}, {}
    for name, order in (("RANDOM", OrderOption.RANDOM), ("QUASI_RANDOM", OrderOption.QUASI_RANDOM)):
        try:
            loader = Loader(beton, batch_size=options.batch, num_workers=options.threads, os_cache=True, order=order, seed=7,
                            drop_last=False, pipelines={
                                "image": [RandomResizedCropRGBImageDecoder((SIDE, SIDE)), RandomHorizontalFlip(), ToTensor()],
                                "label": [IntDecoder(), ToTensor()]})
        except ValueError:
            continue
        for pictures, _ in loader:
            if pictures.dtype != torch.uint8 or tuple(pictures.shape[1:]) != (SIDE, SIDE, 3):
                raise SystemExit(f"{name} delivered {pictures.dtype} {tuple(pictures.shape)}")
        rates |= rounds.fastest({name: functools.partial(images_of, loader)}, len(folder))[1]
        kept[name] = loader
    best = max(rates, key=rates.get)
    rounds.serve("FFCV", {"ffcv": importlib.metadata.version("ffcv"), "torch": torch.__version__},
                 {"num_workers": options.threads, "batch": options.batch, "mode": "jpg"}, best, rates,
                 functools.partial(images_of, kept[best]), options)


if __name__ == "__main__":
    main()
