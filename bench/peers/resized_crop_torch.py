#!/usr/bin/env python3
"""Random resized crops on the CPU as torchvision makes them of uint8 tensors: interpolate(antialias=True).

Each image is cut and resized by itself, as its box differs from the others', by a pool of threads; a batch is then
stacked, flipped where it is wanted, and normalised.
"""

import concurrent.futures
import math
import random

import torch
from torch.nn.functional import interpolate

import torch_loop
from torch_loop import MEAN, STD


def random_box(height, width):
    """As RandomResizedCrop draws it, with its defaults."""
    for _ in range(10):
        area = height * width * random.uniform(0.08, 1)
        ratio = math.exp(random.uniform(math.log(3 / 4), math.log(4 / 3)))
        w, h = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
        if 0 < w <= width and 0 < h <= height:
            return random.randint(0, height - h), random.randint(0, width - w), h, w
    side = min(height, width)
    return (height - side) // 2, (width - side) // 2, side, side


def main():
    options = torch_loop.make_parser(__doc__, ("height", "width", "size", "pictures")).parse_args()
    # One thread for each image: within one, threads cost more than they gain.
    torch.set_num_threads(1)
    pictures = torch_loop.draw(options.pictures, options.height, options.width, 3)
    mean = (255 * torch.tensor(MEAN)).reshape(1, 3, 1, 1)
    std = (255 * torch.tensor(STD)).reshape(1, 3, 1, 1)
    size = (options.size, options.size)

    @torch.no_grad()
    def resized(picture):
        top, left, height, width = random_box(options.height, options.width)
        # Channels last in memory, for which PyTorch has its fastest loop.
        box = picture[top:top + height, left:left + width].permute(2, 0, 1)[None]
        made = interpolate(box, size, mode="bilinear", antialias=True, align_corners=False)
        return made.flip(-1) if random.random() < 0.5 else made

    pool = concurrent.futures.ThreadPoolExecutor(options.threads)
    of_all = pool.map if options.threads > 1 else map

    @torch.no_grad()
    def normalized(batch):
        images = torch.cat(list(of_all(resized, batch)))
        return images.to(torch.float32, memory_format=torch.contiguous_format).sub_(mean).div_(std)

    made = normalized(pictures[:2])
    if made.shape != (min(2, options.pictures), 3, *size) or not made.is_contiguous():
        raise SystemExit("PyTorch's result is wrong")
    torch_loop.serve(normalized, pictures, options, "interpolate, flip, cat, to, sub_, div_")


if __name__ == "__main__":
    main()
