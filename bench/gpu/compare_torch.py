#!/usr/bin/env python3
"""The work of the kernel, done by PyTorch on the device.

    compare_torch.py [--rounds N] [--json FILE]

Batches of uint8 [B,H,W,C] that lie on the device become normalised float16 or float32 images, [B,C,H,W] or
channels-last: by a chain of operations (permute, to, sub, div), and by torchvision.transforms.v2, where it is
installed. Both are compared with float64 on the CPU first. Also random resized crops by torchvision, and rows of a sparse
matrix made dense. Prints JSON, which `figures gpu --torch` puts beside its own
figures; sizes of images and batches are those of that program.
"""

import argparse
import json
import sys

SIZES = {"CelebA-sized": ((218, 178, 3), 512), "CIFAR-sized": ((32, 32, 3), 65536)}
MEAN = (0.485, 0.456, 0.406)
STD = (0.229, 0.224, 0.225)
# As measure_resized_crops.cpp and measure_dense_rows.cpp have them.
RESIZED = {"stored": (375, 500, 3), "side": 224, "batch": 256}
DENSE = {"columns": 20_000, "entries": 1500, "rows": 2048, "row_sum": 10_000}
# Moved in one timing at least; many launches, so that the time between them does not count.
TIMED_BYTES = 16e9
# Inputs that were used since one was used last, in sizes of the L2 cache.
CACHE_MULTIPLE = 4
# Of the norm. float16 works with values up to 255, which it knows to 1/8.
TOLERANCE = {"float16": 2e-3, "float32": 1e-5}


def seconds_of(torch, works, count):
    """Seconds of one work when `count` of them are put into the stream, interleaved."""
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    for i in range(count):
        works[i % len(works)]()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) / 1000 / count


def check(torch, name, result, expected, dtype):
    """Compares the first images of a batch with their float64 values."""
    result = result[:len(expected)].to("cpu", torch.float64)
    error = (torch.linalg.vector_norm(result - expected) / torch.linalg.vector_norm(expected)).item()
    if not error <= TOLERANCE[dtype]:
        raise RuntimeError(f"{name} to {dtype} is wrong: relative error {error}")
    return error


def measure(torch, transforms, size, dtype_name, layout, rounds):
    shape, batch = SIZES[size]
    dtype = getattr(torch, dtype_name)
    memory_format = torch.contiguous_format if layout == "nchw" else torch.channels_last
    picture_bytes = shape[0] * shape[1] * shape[2]
    cache_bytes = torch.cuda.get_device_properties(0).L2_cache_size
    count = max(2, int(CACHE_MULTIPLE * cache_bytes / (batch * picture_bytes)) + 1)
    inputs = [torch.randint(0, 256, (batch, *shape), dtype=torch.uint8, device="cuda") for _ in range(count)]

    # The fastest of the ways to write it: mean and standard deviation of 0 to 255, and the axes change places
    # in the conversion.
    mean, std = (torch.tensor(values, device="cuda", dtype=dtype).mul(255).view(1, 3, 1, 1)
                 for values in (MEAN, STD))

    def chain(pictures):
        pictures = pictures.permute(0, 3, 1, 2).to(dtype, memory_format=memory_format)
        return pictures.sub(mean).div(std)

    ways = {"chain": chain}
    if transforms is not None:
        transform = transforms.Compose([transforms.ToDtype(dtype, scale=True), transforms.Normalize(MEAN, STD)])

        def transformed(pictures):
            return transform(pictures.permute(0, 3, 1, 2).contiguous(memory_format=memory_format))

        ways["transforms"] = transformed

    few = inputs[0][:16].to("cpu", torch.float64).permute(0, 3, 1, 2) / 255
    expected = (few - torch.tensor(MEAN, dtype=torch.float64).view(3, 1, 1)) / torch.tensor(
        STD, dtype=torch.float64).view(3, 1, 1)
    errors = {}
    for name, function in ways.items():
        result = function(inputs[0])
        if result.dtype != dtype or not result.is_contiguous(memory_format=memory_format):
            raise RuntimeError(f"{name} does not give {dtype_name} {layout}")
        errors[name] = check(torch, name, result, expected, dtype_name)
        del result

    # As many bytes read and written as the kernel reads and writes.
    bytes_moved = batch * picture_bytes * (1 + dtype.itemsize)
    sources = [torch.empty(bytes_moved // 2, dtype=torch.uint8, device="cuda").random_(0, 256) for _ in range(2)]
    targets = [torch.empty_like(source) for source in sources]

    works = {name: [lambda pictures=pictures, function=function: function(pictures) for pictures in inputs]
             for name, function in ways.items()}
    works["copy"] = [lambda source=source, target=target: target.copy_(source)
                     for source, target in zip(sources, targets)]
    launches = max(10, min(1000, int(TIMED_BYTES / bytes_moved)))
    seconds = {name: [] for name in works}
    for work in works.values():
        seconds_of(torch, work, 10)
    for _ in range(rounds):
        for name, work in works.items():
            seconds[name].append(seconds_of(torch, work, launches))
    return {"size": size, "dtype": dtype_name, "layout": layout, "batch": batch, "bytes": bytes_moved,
            "relative_errors": errors, **{f"{name}_seconds": values for name, values in seconds.items()}}


def resized_crops(torch, transforms):
    """An image at a time, as boxes differ; flips and normalising then are of whole batches."""
    images = torch.randint(0, 256, (RESIZED["batch"], *RESIZED["stored"]), dtype=torch.uint8, device="cuda")
    crop = transforms.RandomResizedCrop(RESIZED["side"], antialias=True)
    finish = transforms.Compose([transforms.ToDtype(torch.float16, scale=True), transforms.Normalize(MEAN, STD)])

    def work():
        crops = torch.stack([crop(image.permute(2, 0, 1)) for image in images])
        return finish(torch.where(torch.rand(len(crops), 1, 1, 1, device="cuda") < 0.5, crops.flip(3), crops))

    result = work()
    if result.shape != (RESIZED["batch"], 3, RESIZED["side"], RESIZED["side"]) or result.dtype != torch.float16:
        raise RuntimeError(f"the crops are {result.dtype} {tuple(result.shape)}")
    return work, "torchvision.transforms.v2, an image at a time on the device"


def dense_rows(torch, transformed):
    rows, entries, columns = DENSE["rows"], DENSE["entries"], DENSE["columns"]
    # One of each so many columns, so that they ascend.
    first = torch.arange(entries, device="cuda") * columns // entries
    indices = (first + torch.randint(0, columns // entries, (rows, entries), device="cuda")).to(torch.int32).flatten()
    values = torch.randint(1, 9, (rows * entries,), device="cuda").to(torch.float32)
    offsets = torch.arange(0, rows * entries + 1, entries, dtype=torch.int32, device="cuda")

    def work():
        kept = values
        if transformed:
            factors = DENSE["row_sum"] / torch.segment_reduce(values, "sum", offsets=offsets.to(torch.int64))
            kept = (values * factors.repeat_interleave(entries)).log1p()
        return torch.sparse_csr_tensor(offsets, indices, kept, (rows, columns), check_invariants=False).to_dense()

    result = work()[:8].cpu()
    expected = torch.zeros(8, columns, dtype=torch.float64)
    few = values.cpu().to(torch.float64).view(rows, entries)[:8]
    if transformed:
        few = (few * DENSE["row_sum"] / few.sum(1, keepdim=True)).log1p()
    expected.scatter_(1, indices.cpu().to(torch.int64).view(rows, entries)[:8], few)
    torch.testing.assert_close(result.to(torch.float64), expected, rtol=1e-5, atol=0)
    return work, "torch.sparse_csr_tensor().to_dense() on the device"


def measure_works(torch, transforms, rounds):
    """What `figures gpu` measures beside the kernel that normalises: seconds of a batch, in each round."""
    makers = {"dense rows": lambda: dense_rows(torch, False), "dense rows, log1p": lambda: dense_rows(torch, True)}
    if transforms is not None:
        makers["resized crops"] = lambda: resized_crops(torch, transforms)
    made = {}
    for name, make in makers.items():
        work, how = make()
        launches = 3 if name == "resized crops" else 100
        seconds_of(torch, [work], launches)
        made[name] = {"how": how, "seconds": [seconds_of(torch, [work], launches) for _ in range(rounds)]}
    return made


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=9, help="(default 9)")
    parser.add_argument("--json", metavar="FILE", help="write there, not to stdout")
    options = parser.parse_args()
    try:
        import torch
    except ImportError as error:
        sys.exit(f"compare_torch.py: {error}")
    try:
        import torchvision
        from torchvision.transforms import v2 as transforms
    except ImportError:
        torchvision = transforms = None
    if not torch.cuda.is_available():
        sys.exit("compare_torch.py: PyTorch finds no CUDA device")
    torch.manual_seed(7)
    cases = []
    with torch.inference_mode():
        for size in SIZES:
            for dtype in ("float16", "float32"):
                for layout in ("nchw", "nhwc"):
                    cases.append(measure(torch, transforms, size, dtype, layout, options.rounds))
                    torch.cuda.empty_cache()
        works = measure_works(torch, transforms, options.rounds)
    text = json.dumps({"torch": torch.__version__, "torchvision": torchvision and torchvision.__version__,
                       "cuda": torch.version.cuda, "device": torch.cuda.get_device_name(0), "cases": cases, "works": works}, indent=2)
    if options.json is None:
        print(text)
    else:
        with open(options.json, "w", encoding="utf-8") as file:
            file.write(text + "\n")


if __name__ == "__main__":
    main()
