"""What the scripts share that do on the CPU, with PyTorch, what `figures normalizing` times. They need nothing else."""

import argparse
import json
import sys
import time

import torch

# Of value / 255.
MEAN = (0.485, 0.456, 0.406)
STD = (0.229, 0.224, 0.225)


def make_parser(description, sizes):
    """A parser of `sizes`, the numbers that come first, and of what all scripts take."""
    parser = argparse.ArgumentParser(description=description)
    for name in sizes:
        parser.add_argument(name, type=int)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--threads", type=int, default=2)
    return parser


def draw(*shape):
    return torch.randint(0, 256, shape, dtype=torch.uint8)


@torch.no_grad()
def serve(work, pictures, options, operations):
    """Prints one JSON line about itself, and one for each line on its standard input, with the seconds that `work` took on
    all pictures, batch by batch."""
    print(json.dumps({"peer": "torch", "versions": {"torch": torch.__version__},
                      "settings": {"threads": options.threads, "operations": operations}}), flush=True)
    for _ in sys.stdin:
        start = time.perf_counter()
        for first in range(0, len(pictures), options.batch):
            work(pictures[first:first + options.batch])
        print(json.dumps({"images": len(pictures), "seconds": time.perf_counter() - start}), flush=True)
