#!/usr/bin/env python3
"""chunkio.torch.DataLoader on the CPU: contiguous float32 [B,C,H,W] from its own file.

Tried are one thread, as many as --threads says, and as many as it chooses. The fastest is timed.
"""

import functools

import chunkio.torch
import torch

import chunkio_loader
import normalized
import rounds


def main():
    options = rounds.parse_options(__doc__)
    torch.set_num_threads(options.threads)
    make = functools.partial(chunkio.torch.DataLoader, device="cpu", dtype=torch.float32,
                             mean=normalized.MEAN, std=normalized.STD)
    chunkio_loader.compete("chunkio, normalised", {"torch": torch.__version__}, options, make,
                           check=normalized.check_epoch)


if __name__ == "__main__":
    main()
