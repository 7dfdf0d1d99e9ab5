#!/usr/bin/env python3
"""Normalising on the CPU as PyTorch programs do: permute, to, sub_, div_.

The result has the axes of --layout and lies contiguous in memory,
as the first layer of a network wants it.
"""

import torch

import torch_loop
from torch_loop import MEAN, STD


def parse_options():
    parser = torch_loop.make_parser(__doc__, ("height", "width", "channels", "pictures"))
    parser.add_argument("--dtype", choices=("float32", "float16", "bfloat16"), default="float32")
    parser.add_argument("--layout", choices=("nchw", "nhwc"), default="nchw")
    return parser.parse_args()


def make_normalize(options):
    dtype = getattr(torch, options.dtype)
    shape = (1, options.channels, 1, 1) if options.layout == "nchw" else (1, 1, 1, options.channels)
    mean = (255 * torch.tensor(MEAN)).reshape(shape).to(dtype)
    std = (255 * torch.tensor(STD)).reshape(shape).to(dtype)

    def normalize(batch):
        if options.layout == "nchw":
            batch = batch.permute(0, 3, 1, 2)
        return batch.to(dtype, memory_format=torch.contiguous_format).sub_(mean).div_(std)

    return normalize


def check(normalize, pictures, options):
    made = normalize(pictures).to(torch.float32)
    wanted = (pictures / 255 - torch.tensor(MEAN)) / torch.tensor(STD)
    if options.layout == "nchw":
        wanted = wanted.permute(0, 3, 1, 2)
    if not made.is_contiguous():
        raise SystemExit("the result is not contiguous")
    # Without rounding to the type in between, these differ by a few units of its last place.
    tolerance = {"float32": 1e-4, "float16": 1e-2, "bfloat16": 5e-2}[options.dtype]
    if not torch.allclose(made, wanted, rtol=tolerance, atol=tolerance):
        raise SystemExit("PyTorch's result is wrong")


def main():
    options = parse_options()
    torch.set_num_threads(options.threads)
    pictures = torch_loop.draw(options.pictures, options.height, options.width, options.channels)
    normalize = make_normalize(options)
    check(normalize, pictures[:options.batch], options)
    torch_loop.serve(normalize, pictures, options, "permute, to, sub_, div_")


if __name__ == "__main__":
    main()
