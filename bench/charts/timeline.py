#!/usr/bin/env python3
"""When a training loop computes and when it waits: single JPEG files in a DataLoader, then the same images by chunkio.

    python bench/charts/timeline.py FOLDER FILE.h5 [--step-ms 10] [--out bench/charts/timeline.json]

FOLDER has class folders of JPEG files, and FILE.h5 is what `h5pack folder FOLDER --order source` made of them. The step sleeps, as a
loop does while a GPU computes: so it costs the loaders no CPU. Each loop runs an epoch, in which every image must come once with its label,
and then the epoch that is measured. Needs PyTorch, Pillow and h5py.
"""

import argparse
import datetime
import json
import os
import pathlib
import re
import time

import h5py
import numpy as np
import torch
from PIL import Image

import chunkio
from python_loop import processor

BATCH, SHOWN, SKIPPED = 256, 64, 8


class Files(torch.utils.data.Dataset):
    """Images as ImageFolder reads them: (uint8 [H,W,3], label), classes by name, files in the order of their names."""

    def __init__(self, folder):
        classes = sorted(path for path in folder.iterdir() if path.is_dir())
        self.items = [(path, label) for label, each in enumerate(classes) for path in sorted(each.iterdir())]

    def __len__(self):
        return len(self.items)

    def __getitem__(self, row):
        path, label = self.items[row]
        return torch.from_numpy(np.array(Image.open(path).convert("RGB"))), label, row


def batches_of_files(folder, workers):
    loader = torch.utils.data.DataLoader(Files(folder), BATCH, shuffle=True, num_workers=workers, persistent_workers=True, prefetch_factor=4)
    while True:
        yield loader


def batches_of_chunkio(path):
    loader = chunkio.Loader(chunkio.Dataset(path), batch_size=BATCH, seed=1)
    while True:
        yield ((batch.images, batch.labels, batch.sample_ids) for batch in loader)


def check(batches, labels):
    seen = np.zeros(len(labels), np.int64)
    for _, delivered, rows in batches:
        np.add.at(seen, np.asarray(rows), 1)
        np.testing.assert_array_equal(np.asarray(delivered), labels[np.asarray(rows)])
    assert (seen == 1).all(), "an image is missing, or came twice"


def measure(batches, step_seconds):
    """Milliseconds of each step: waited for the batch, then computed."""
    steps, iterator = [], iter(batches)
    while True:
        start = time.perf_counter()
        batch = next(iterator, None)
        ready = time.perf_counter()
        if batch is None:
            return steps
        del batch
        time.sleep(step_seconds)
        steps.append((1e3 * (ready - start), 1e3 * (time.perf_counter() - ready)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("file")
    parser.add_argument("--step-ms", type=float, default=10)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path(__file__).parent / "timeline.json")
    options = parser.parse_args()

    workers = len(os.sched_getaffinity(0))
    with h5py.File(options.file) as file:
        labels, shape = file["labels"][:], file["images"].shape
    loops = []
    for name, epochs in ((f"JPEG files, DataLoader, {workers} workers", batches_of_files(options.folder, workers)),
                         (f"chunkio, {workers} threads", batches_of_chunkio(options.file))):
        check(next(epochs), labels)
        steps = measure(next(epochs), options.step_ms / 1e3)
        waited, computed = (sum(step[i] for step in steps) for i in (0, 1))
        loops.append({"name": name, "images_per_second": round(1e3 * len(labels) / (waited + computed)),
                      "stalled_percent": round(100 * waited / (waited + computed), 2),
                      "steps_ms": [[round(ms, 2) for ms in step] for step in steps[SKIPPED:SKIPPED + SHOWN]]})
        print(loops[-1]["name"], loops[-1]["images_per_second"], "images/s, waits", loops[-1]["stalled_percent"], "%")
    text = json.dumps({
        "machine": f"{processor().replace('(R)', '')}, {workers} CPUs, {datetime.date.today()}", "images": shape[0],
        "size": "x".join(str(extent) for extent in shape[1:]), "batch": BATCH, "step_ms": options.step_ms, "first_step": SKIPPED,
        "loops": loops}, indent=1) + "\n"
    # A step a line.
    options.out.write_text(re.sub(r"\[\s+([\d.]+),\s+([\d.]+)\s+\]", r"[\1, \2]", text))


if __name__ == "__main__":
    main()
