#!/usr/bin/env python3
"""A ResNet-18 step fed by chunkio and by other loaders on one GPU: images/s, stall, GPU utilisation.

    compare_training.py --dir FOLDER [--shape cifar|celeba]... [--rounds N] [--seconds S] [--ways A,B] [--markdown FILE]
                        [--json FILE] [--timeline FILE]

The step: bfloat16 autocast, channels-last, SGD; with --compile by torch.compile. `step alone` runs it on one batch
that stays on the GPU: no loader can be faster. Ways take turns, the step alone before and behind all others; a figure is
the median (lowest to highest) over the rounds. `stall` is 1 - images/s of the way / images/s of the step alone, of the
same round.

  chunkio resident   chunkio.torch.DataLoader(device="cuda"), the dataset on the GPU
  chunkio from host  the same with resident "off": every image crosses the bus each epoch
  torch DataLoader   the usual class: a sample read by h5py, flipped and normalised by a worker, collated, pinned,
                     copied
  torch v2 on GPU    the best of PyTorch: whole batches of uint8 from memory that workers share, pinned, flipped and
                     normalised on the GPU by torchvision.transforms.v2
  DALI               whole batches that as many workers gather (fn.external_source), uploaded, flipped and normalised by
                     fn.crop_mirror_normalize
  FFCV               a file of raw images in the page cache; flipped on the CPU, normalised on the GPU

The last two are left out where they are not installed. They have no bfloat16 and deliver float16, the PyTorch DataLoader
float32; autocast converts them in the step.

Files are drawn, in the page cache, and removed at the end. Before anything is timed, each way delivers each label of
an epoch once.
"""

import argparse
import importlib.util
import json
import os
import pathlib
import statistics
import sys
import tempfile
import threading
import time

import h5py
import numpy as np
import torch
import torchvision
from torchvision.transforms import v2

import chunkio.torch

MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
# Image shape, images, batch.
SHAPES = {"cifar": ((32, 32, 3), 50_000, 1024), "celeba": ((218, 178, 3), 8192, 256)}
CLASSES = 10
SEED = 7


def write_file(path, shape, count):
    rng = np.random.default_rng(SEED)
    with h5py.File(path, "w") as file:
        rows = max(1, 2**20 // int(np.prod(shape)))
        images = file.create_dataset("images", (count, *shape), np.uint8, chunks=(rows, *shape))
        for first in range(0, count, 64 * rows):
            images[first : first + 64 * rows] = rng.integers(0, 256, (min(64 * rows, count - first), *shape), np.uint8)
        file["labels"] = np.arange(count, dtype=np.int64)  # so that each can be told


def network(shape):
    model = torchvision.models.resnet18(num_classes=CLASSES)
    if shape[0] <= 64:  # as is usual for small images
        model.conv1 = torch.nn.Conv2d(3, 64, 3, 1, 1, bias=False)
        model.maxpool = torch.nn.Identity()
    return model.cuda().to(memory_format=torch.channels_last)


class Step:
    def __init__(self, shape, compiled):
        self.model = network(shape)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01, momentum=0.9)
        self.loss = torch.nn.CrossEntropyLoss()
        self.forward = torch.compile(self.model) if compiled else self.model

    def __call__(self, images, labels):
        with torch.autocast("cuda", torch.bfloat16):
            loss = self.loss(self.forward(images), labels % CLASSES)
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)


class Samples(torch.utils.data.Dataset):
    """As tutorials write it: the file is opened in each worker, and a sample is made by itself."""

    def __init__(self, path, transform):
        self.path, self.file, self.transform = path, None, transform
        with h5py.File(path) as file:
            self.count = len(file["images"])

    def __len__(self):
        return self.count

    def __getitem__(self, row):
        if self.file is None:
            self.file = h5py.File(self.path)
            self.images, self.labels = self.file["images"], self.file["labels"][:]
        return self.transform(self.images[row]), int(self.labels[row])


class WholeBatches(torch.utils.data.Dataset):
    """A batch at a time from memory that all workers share: nothing of PyTorch delivers uint8 faster."""

    def __init__(self, path):
        with h5py.File(path) as file:
            self.images = torch.from_numpy(file["images"][:]).share_memory_()
            self.labels = torch.from_numpy(file["labels"][:]).share_memory_()

    def __getitem__(self, rows):
        rows = torch.as_tensor(rows)
        return self.images[rows], self.labels[rows]


def chunkio_way(path, batch, resident):
    loader = chunkio.torch.DataLoader(
        path, batch, seed=SEED, device="cuda:0", dtype=torch.bfloat16, memory_format=torch.channels_last, mean=MEAN, std=STD,
        flip=True, drop_last=True, device_options={"resident": resident})  # fmt: skip
    return lambda: iter(loader)


def torch_way(path, batch, workers):
    transform = v2.Compose(
        [v2.ToImage(), v2.RandomHorizontalFlip(), v2.ToDtype(torch.float32, scale=True), v2.Normalize(MEAN, STD)])
    loader = torch.utils.data.DataLoader(Samples(path, transform), batch, shuffle=True, num_workers=workers, pin_memory=True,
                                         persistent_workers=True, prefetch_factor=4, drop_last=True)

    def epoch():
        for images, labels in loader:
            yield (images.cuda(non_blocking=True).to(memory_format=torch.channels_last), labels.cuda(non_blocking=True))

    return epoch


def transforms_way(path, batch, workers):
    data = WholeBatches(path)
    sampler = torch.utils.data.BatchSampler(torch.utils.data.RandomSampler(range(len(data.labels))), batch, drop_last=True)
    loader = torch.utils.data.DataLoader(data, sampler=sampler, batch_size=None, num_workers=workers, pin_memory=True,
                                         persistent_workers=True, prefetch_factor=4)
    transform = v2.Compose([v2.ToDtype(torch.bfloat16, scale=True), v2.Normalize(MEAN, STD)])

    def epoch():
        for images, labels in loader:
            # [B,H,W,C] in memory is channels-last [B,C,H,W]. v2.RandomHorizontalFlip flips all of a batch, or none.
            images = images.cuda(non_blocking=True).permute(0, 3, 1, 2)
            flipped = torch.rand(len(images), 1, 1, 1, device="cuda") < 0.5
            yield transform(torch.where(flipped, images.flip(3), images)), labels.cuda(non_blocking=True)

    return epoch


def dali_way(path, batch, workers):
    import cloudpickle
    from nvidia.dali import fn, pipeline_def, types
    from nvidia.dali.plugin.pytorch import DALIGenericIterator

    data = WholeBatches(path)
    batches = len(data.labels) // batch

    def whole_batch(info):
        order = np.random.default_rng(SEED + info.iteration // batches).permutation(len(data.labels))
        first = info.iteration % batches * batch
        images, labels = data[order[first : first + batch]]
        return images.numpy(), labels.numpy()

    @pipeline_def(batch_size=batch, num_threads=workers, device_id=0, prefetch_queue_depth=4, py_num_workers=workers,
                  py_start_method="spawn", py_callback_pickler=cloudpickle)
    def pipeline():
        images, labels = fn.external_source(whole_batch, num_outputs=2, batch=True, batch_info=True, parallel=True,
                                            prefetch_queue_depth=4, layout=["HWC", None])
        images = fn.crop_mirror_normalize(
            images.gpu(), dtype=types.FLOAT16, output_layout="HWC", mirror=fn.random.coin_flip(),
            mean=[255 * value for value in MEAN], std=[255 * value for value in STD])  # fmt: skip
        return images, labels.gpu()

    made = pipeline()
    made.build()
    loader = DALIGenericIterator(made, ["images", "labels"], size=-1)

    def epoch():
        for _ in range(batches):
            made = next(loader)[0]
            yield made["images"].permute(0, 3, 1, 2), made["labels"].flatten()

    return epoch


def ffcv_way(path, batch, workers):
    from ffcv.fields import IntField, RGBImageField
    from ffcv.fields.decoders import IntDecoder, SimpleRGBImageDecoder
    from ffcv.loader import Loader, OrderOption
    from ffcv.transforms import NormalizeImage, RandomHorizontalFlip, Squeeze, ToDevice, ToTensor, ToTorchImage
    from ffcv.writer import DatasetWriter

    beton = path.with_suffix(".beton")
    writer = DatasetWriter(beton, {"image": RGBImageField(write_mode="raw"), "label": IntField()}, num_workers=workers)
    writer.from_indexed_dataset(Samples(path, lambda image: image))
    device = torch.device("cuda:0")
    mean, std = 255 * np.array(MEAN), 255 * np.array(STD)
    loader = Loader(
        str(beton), batch_size=batch, num_workers=workers, os_cache=True, order=OrderOption.RANDOM, drop_last=True,
        pipelines={"image": [SimpleRGBImageDecoder(), RandomHorizontalFlip(), ToTensor(),
                             ToDevice(device, non_blocking=True), ToTorchImage(), NormalizeImage(mean, std, np.float16)],
                   "label": [IntDecoder(), ToTensor(), ToDevice(device, non_blocking=True), Squeeze()]})  # fmt: skip
    return lambda: iter(loader)


class Utilisation:
    """Of the GPU, as nvidia-smi prints it: in which share of the last moments a kernel ran."""

    def __init__(self):
        import pynvml

        pynvml.nvmlInit()
        handle = pynvml.nvmlDeviceGetHandleByIndex(0)
        self.values, self.over = [], threading.Event()

        def look():
            while not self.over.wait(0.1):
                self.values.append(pynvml.nvmlDeviceGetUtilizationRates(handle).gpu)

        self.thread = threading.Thread(target=look, daemon=True)
        self.thread.start()

    def end(self):
        self.over.set()
        self.thread.join()
        # What was measured before this began may be in the first values.
        values = self.values[3:] or self.values
        return statistics.mean(values) if values else None


def endless(epoch):
    """The batches of one epoch after the other."""
    while True:
        yield from epoch()


def train(step, epoch, seconds, batch):
    """Images a second over whole steps, after half a second of warming up; and the mean utilisation."""
    batches = endless(epoch)

    def run(duration):
        steps, start = 0, time.perf_counter()
        while time.perf_counter() - start < duration:
            step(*next(batches))
            steps += 1
        torch.cuda.synchronize()  # the queue of a stream is short: little of what was launched is not done by then
        return steps * batch / (time.perf_counter() - start)

    run(0.5)
    watch = Utilisation()
    speed = run(seconds)
    return speed, watch.end()


def check_labels(name, epoch, count, batch):
    labels = torch.cat([labels.cpu() for _, labels in epoch()])
    assert len(labels) == count // batch * batch and len(labels.unique()) == len(labels), name


def spread(values, digits=0):
    return f"{statistics.median(values):,.{digits}f} ({min(values):,.{digits}f} to {max(values):,.{digits}f})"


def lane_of(event):
    if event["cat"] == "gpu_memcpy" and "HtoD" in event["name"]:
        return "copies"
    return "batches" if "chunkio" in event["name"] else "step"


def timeline(step, epoch, steps=10):
    """When the GPU copied images, made batches and did steps, by the profiler of PyTorch: [begin, end] in microseconds, joined
    where less than 20 lie between them."""
    from torch.profiler import ProfilerActivity, profile

    batches = endless(epoch)
    for _ in range(30):
        step(*next(batches))
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CUDA], acc_events=True) as made:
        for _ in range(steps):
            step(*next(batches))
        torch.cuda.synchronize()
    with tempfile.TemporaryDirectory() as folder:
        trace = pathlib.Path(folder) / "trace.json"
        made.export_chrome_trace(str(trace))
        events = json.loads(trace.read_text())["traceEvents"]
    return spans([event for event in events if event.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")])


def spans(events):
    lanes = {"copies": [], "batches": [], "step": []}
    events = sorted(events, key=lambda event: event["ts"])
    events = events[len(events) // 2:]  # Until then the host, which the profiler slows down, may not be ahead.
    first = events[0]["ts"]
    for event in events:
        begin = event["ts"] - first
        end = begin + event["dur"]
        lane = lanes[lane_of(event)]
        if lane and begin - lane[-1][1] < 20:
            lane[-1][1] = max(lane[-1][1], end)
        else:
            lane.append([begin, end])
    return {name: [[round(begin), max(round(end), round(begin) + 1)] for begin, end in lane] for name, lane in lanes.items()}


def measure(options, shape_name):
    shape, count, batch = SHAPES[shape_name]
    path = options.dir / f"{shape_name}.h5"
    write_file(path, shape, count)
    workers = len(os.sched_getaffinity(0))
    makers = {"chunkio resident": lambda: chunkio_way(path, batch, "require"),
              "chunkio from host": lambda: chunkio_way(path, batch, "off"),
              "torch v2 on GPU": lambda: transforms_way(path, batch, workers),
              "torch DataLoader": lambda: torch_way(path, batch, workers)}
    if importlib.util.find_spec("nvidia") and importlib.util.find_spec("nvidia.dali"):
        makers["DALI"] = lambda: dali_way(path, batch, workers)
    if importlib.util.find_spec("ffcv"):
        makers["FFCV"] = lambda: ffcv_way(path, batch, workers)
    ways = {name: make() for name, make in makers.items() if not options.ways or name in options.ways}
    for name, epoch in ways.items():
        check_labels(name, epoch, count, batch)
    images = torch.randn((batch, shape[2], *shape[:2]), device="cuda", dtype=torch.bfloat16)
    fixed = (images.to(memory_format=torch.channels_last), torch.randint(0, 1000, (batch,), device="cuda"))
    ways = {"step alone": lambda: iter([fixed] * (count // batch)), **ways}
    step = Step(shape, options.compile)
    if options.timeline and shape_name == "celeba":
        drawn = {"gpu": torch.cuda.get_device_name(0), "images": "x".join(map(str, shape)), "batch": batch,
                 "lanes": timeline(step, ways["chunkio from host"])}
        options.timeline.write_text(json.dumps(drawn) + "\n")
    speeds = {name: [] for name in ways}
    used = {name: [] for name in ways}

    def turn(name):
        speed, utilisation = train(step, ways[name], options.seconds, batch)
        print(f"{shape_name}, {name}: {speed:,.0f} images/s, GPU {utilisation}", file=sys.stderr, flush=True)
        speeds[name].append(speed)
        used[name].append(utilisation)

    for _ in range(options.rounds):
        for name in ways:
            turn(name)
        # Once more, because clocks drift: its speed is the mean of both.
        turn("step alone")
        before, after = speeds["step alone"].pop(-2), speeds["step alone"].pop()
        speeds["step alone"].append((before + after) / 2)
    path.unlink()
    path.with_suffix(".beton").unlink(missing_ok=True)
    return {"shape": shape_name, "count": count, "batch": batch, "compiled": options.compile, "workers": workers, "speeds": speeds,
            "utilisation": used}


def table(results):
    rows = ["| images | loader | images/s | stall, % of the step alone | GPU utilisation, % | |", "|---|---|---|---|---|---|"]
    for result in results:
        alone = result["speeds"]["step alone"]
        for name, speeds in result["speeds"].items():
            stalls = [100 * (1 - one / other) for one, other in zip(speeds, alone)]
            verdict = ""
            if name.startswith("chunkio"):
                met = statistics.median(stalls) <= 0.5 and statistics.median(result["utilisation"][name]) >= 99
                verdict = ("met" if met else "SHORT") + ": stall <= 0.5, GPU >= 99"
            rows.append(f"| {result['shape']} | {name} | {spread(speeds)} | "
                        f"{'' if name == 'step alone' else spread(stalls, 2)} | {spread(result['utilisation'][name], 1)} | {verdict} |")
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dir", type=pathlib.Path, required=True)
    parser.add_argument("--shape", action="append", choices=list(SHAPES))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3, help="of each way in each round (3)")
    parser.add_argument("--ways", type=lambda text: text.split(","), help="some of them")
    parser.add_argument("--compile", action="store_true", help="the network, by torch.compile")
    parser.add_argument("--markdown", type=pathlib.Path)
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--timeline", type=pathlib.Path, metavar="FILE", help="when the GPU did what in ten steps of celeba, as JSON")
    options = parser.parse_args()
    options.dir.mkdir(parents=True, exist_ok=True)
    torch.backends.cudnn.benchmark = True
    results = []
    for shape in options.shape or SHAPES:
        results.append(measure(options, shape))
        text = "\n".join(
            ["# A ResNet-18 step", "", f"PyTorch {torch.__version__}, torchvision {torchvision.__version__}, "
             f"{torch.cuda.get_device_name(0)}; {options.rounds} rounds of {options.seconds:g} s each way; "
             + "; ".join(f"{one['shape']}: {one['count']} images, batches of {one['batch']}, "
                         f"{'compiled' if one['compiled'] else 'eager'}, {one['workers']} workers of PyTorch" for one in results),
             "", *table(results)]) + "\n"
        if options.markdown:
            options.markdown.write_text(text, encoding="utf-8")
        if options.json:
            options.json.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
