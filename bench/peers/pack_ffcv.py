#!/usr/bin/env python3
"""FFCV's DatasetWriter in raw mode.

Tried are PIL and OpenCV to decode, and as many worker processes as --threads says and twice as
many. The fastest is timed.
"""

import functools
import importlib.metadata

import torch
from ffcv.fields import IntField, RGBImageField
from ffcv.fields.decoders import IntDecoder, SimpleRGBImageDecoder
from ffcv.loader import Loader, OrderOption
from ffcv.transforms import ToTensor
from ffcv.writer import DatasetWriter

import pictures


class Files(torch.utils.data.Dataset):
    def __init__(self, files, decode):
        self.files = files
        self.decode = decode

    def __len__(self):
        return len(self.files)

    def __getitem__(self, row):
        path, label = self.files[row]
        return self.decode(path), label


def pack(decode, workers, files, beton):
    fields = {"image": RGBImageField(write_mode="raw"), "label": IntField()}
    writer = DatasetWriter(beton, fields, num_workers=workers)
    writer.from_indexed_dataset(Files(files, decode))


def read_back(beton, threads):
    loader = Loader(beton, batch_size=256, num_workers=threads, os_cache=True,
                    order=OrderOption.SEQUENTIAL, drop_last=False,
                    pipelines={"image": [SimpleRGBImageDecoder(), ToTensor()],
                               "label": [IntDecoder(), ToTensor()]})
    for images, labels in loader:
        yield from zip(images.numpy(), labels.numpy().reshape(-1))


def main():
    options = pictures.parse_options(__doc__)
    ways = {f"{name}, {workers} workers": (decode, functools.partial(pack, decode, workers))
            for name, decode in pictures.DECODERS.items()
            for workers in (options.threads, 2 * options.threads)}
    pictures.compete("FFCV", {"ffcv": importlib.metadata.version("ffcv"), "torch": torch.__version__}, {"mode": "raw"},
                     ways, functools.partial(read_back, threads=options.threads), "ffcv.beton", options)


if __name__ == "__main__":
    main()
