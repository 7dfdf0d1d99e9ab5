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

import rounds

# name: (order, os_cache)
WAYS = {
    "RANDOM, os_cache": (OrderOption.RANDOM, True),
    "QUASI_RANDOM, os_cache": (OrderOption.QUASI_RANDOM, True),
    "QUASI_RANDOM, process cache": (OrderOption.QUASI_RANDOM, False),
}


class Pictures(torch.utils.data.Dataset):
    def __init__(self, pictures):
        self.pictures = pictures

    def __len__(self):
        return len(self.pictures)

    def __getitem__(self, row):
        return self.pictures[row], row


def main():
    options = rounds.parse_options(__doc__)
    reference = rounds.load_reference(options.file)
    beton = os.path.join(options.dir, os.path.basename(options.file) + ".beton")
    writer = DatasetWriter(beton, {"image": RGBImageField(write_mode="raw"), "row": IntField()},
                           num_workers=options.threads)
    writer.from_indexed_dataset(Pictures(reference))

    if options.cold:
        options.cold_files = [beton]

    loaders = {}
    refused = {}
    for name, (order, os_cache) in WAYS.items():
        try:
            loader = Loader(beton, batch_size=options.batch, num_workers=options.threads,
                            os_cache=os_cache, order=order, seed=7, drop_last=False,
                            pipelines={"image": [SimpleRGBImageDecoder(), ToTensor()],
                                       "row": [IntDecoder(), ToTensor()]})
        except ValueError as error:
            refused[name] = str(error)
            continue
        rounds.check_epoch(loader, reference, name)
        loaders[name] = loader
    if not loaders:
        raise SystemExit(f"FFCV refused every order: {refused}")

    def epoch_of(loader):
        def run():
            return sum(len(rows) for _, rows in loader)
        return run

    best, rates = rounds.fastest({name: epoch_of(loader) for name, loader in loaders.items()},
                                 len(reference), options.cold_files)
    del reference
    rounds.serve("FFCV", {"ffcv": importlib.metadata.version("ffcv"),
                          "torch": torch.__version__, "h5py": h5py.__version__},
                 {"num_workers": options.threads, "batch": options.batch, "mode": "raw",
                  "refused": refused},
                 best, rates, epoch_of(loaders[best]), options)


if __name__ == "__main__":
    main()
