#!/usr/bin/env python3
"""FFCV in raw mode with its own normalising: contiguous float32 [B,C,H,W].

Tried are NormalizeImage, compiled, before ToTorchImage, and PyTorch's operations behind FFCV. Order
and cache are RANDOM with os_cache. The fastest is timed.
"""

import functools
import importlib.metadata

import h5py
import numpy as np
import torch
from ffcv.fields.decoders import IntDecoder, SimpleRGBImageDecoder
from ffcv.loader import Loader, OrderOption
from ffcv.transforms import NormalizeImage, ToTensor, ToTorchImage

import ffcv_raw
import normalized
import rounds

MEAN = 255 * np.array(normalized.MEAN)
STD = 255 * np.array(normalized.STD)


class Batches:
    def __init__(self, loader, normalize):
        self.loader = loader
        self.normalize = normalize

    def __iter__(self):
        for images, rows in self.loader:
            yield self.normalize(images), rows.reshape(-1)


def with_torch(images):
    images = images.permute(0, 3, 1, 2).to(torch.float32, memory_format=torch.contiguous_format)
    mean, std = (torch.tensor(numbers, dtype=torch.float32).reshape(1, -1, 1, 1)
                 for numbers in (MEAN, STD))
    return images.sub_(mean).div_(std)


# name: (operations of FFCV after decoding, what is done with each batch)
WAYS = {
    "NormalizeImage": (lambda: [NormalizeImage(MEAN, STD, np.float32), ToTensor(),
                                ToTorchImage(channels_last=False)], lambda images: images),
    "PyTorch": (lambda: [ToTensor()], with_torch),
}


def main():
    options = rounds.parse_options(__doc__)
    beton = ffcv_raw.packed(options)
    torch.set_num_threads(options.threads)

    def make(operations, normalize):
        pipelines = {"image": [SimpleRGBImageDecoder(), *operations()],
                     "row": [IntDecoder(), ToTensor()]}
        loader = Loader(beton, batch_size=options.batch,
                        num_workers=options.threads, os_cache=True, order=OrderOption.RANDOM,
                        seed=7, drop_last=False, pipelines=pipelines)
        return Batches(loader, normalize)

    ways = {name: functools.partial(make, *way) for name, way in WAYS.items()}
    rounds.compete("FFCV, normalised", {"ffcv": importlib.metadata.version("ffcv"),
                                        "torch": torch.__version__, "h5py": h5py.__version__},
                   {"num_workers": options.threads, "batch": options.batch, "mode": "raw"},
                   ways, options, normalized.check_epoch)


if __name__ == "__main__":
    main()
