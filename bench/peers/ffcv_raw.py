#!/usr/bin/env python3
"""FFCV on the same images, written once to its own format in raw mode.

Random and quasi-random order are tried, both from the page cache; quasi-random also with FFCV's own
cache, for which it is meant. The fastest is timed.
"""

import importlib.metadata
import os

import h5py
import torch
from ffcv.fields import IntField, RGBImageField
from ffcv.fields.decoders import IntDecoder, SimpleRGBImageDecoder
from ffcv.loader import Loader, OrderOption
from ffcv.transforms import ToTensor
from ffcv.writer import DatasetWriter

import h5py_dataloader
import rounds

NAME = "train.beton"
# name: (order, os_cache)
WAYS = {
    "RANDOM, os_cache": (OrderOption.RANDOM, True),
    "QUASI_RANDOM, os_cache": (OrderOption.QUASI_RANDOM, True),
    "QUASI_RANDOM, process cache": (OrderOption.QUASI_RANDOM, False),
}


def packed(options):
    """The images in FFCV's own format, in raw mode."""
    def write_beton(folder):
        writer = DatasetWriter(os.path.join(folder, NAME),
                               {"image": RGBImageField(write_mode="raw"), "row": IntField()},
                               num_workers=1)
        writer.from_indexed_dataset(h5py_dataloader.Pictures(options.file))

    return os.path.join(rounds.packed(options, ".ffcv", write_beton), NAME)


def main():
    options = rounds.parse_options(__doc__)
    beton = packed(options)
    loaders = {}
    refused = {}
    for name, (order, os_cache) in WAYS.items():
        try:
            loaders[name] = Loader(beton, batch_size=options.batch, num_workers=options.threads,
                                   os_cache=os_cache, order=order, seed=7, drop_last=False,
                                   pipelines={"image": [SimpleRGBImageDecoder(), ToTensor()],
                                              "row": [IntDecoder(), ToTensor()]})
        except ValueError as error:
            refused[name] = str(error)
    if not loaders:
        raise SystemExit(f"FFCV refused every order: {refused}")
    ways = {name: lambda loader=loader: loader for name, loader in loaders.items()}
    rounds.compete("FFCV", {"ffcv": importlib.metadata.version("ffcv"),
                            "torch": torch.__version__, "h5py": h5py.__version__},
                   {"num_workers": options.threads, "batch": options.batch, "mode": "raw",
                    "refused": refused}, ways, options)


if __name__ == "__main__":
    main()
