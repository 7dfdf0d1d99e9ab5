#!/usr/bin/env python3
"""chunkio.torch.DataLoader on the CPU: contiguous float32 [B,C,H,W] from its own file.

Tried are one thread, as many as --threads says, and as many as it chooses. The fastest is timed.
"""

import functools

import chunkio
import chunkio.torch
import torch

import chunkio_file
import normalized
import rounds


def main():
    options = rounds.parse_options(__doc__)
    path = chunkio_file.packed(options)
    torch.set_num_threads(options.threads)

    def make(threads):
        return chunkio_file.Epochs(chunkio.torch.DataLoader(
            path, batch_size=options.batch, device="cpu", dtype=torch.float32,
            mean=normalized.MEAN, std=normalized.STD, num_threads=threads,
            **chunkio_file.LOADER_OPTIONS))

    ways = {f"num_threads={threads}": functools.partial(make, threads)
            for threads in sorted({0, 1, options.threads})}
    rounds.compete("chunkio, normalised", {"chunkio": chunkio.__version__,
                                           "torch": torch.__version__},
                   {"batch": options.batch}, ways, options, normalized.check_epoch)


if __name__ == "__main__":
    main()
