#!/usr/bin/env python3
"""What the way through Python costs: chunkio.Loader against `h5pack stream`, interleaved, and the loop's own time.

    python bench/python_loop.py FILE.h5 --h5pack build/release/tools/h5pack/h5pack [--rounds 5] [--json OUT]

FILE should have at least four times the last-level cache, and is read once before, so that it is warm. Rounds alternate;
of each all of its epochs but the first count, for both, since the next epoch is prefetched. Everything is checked before it is timed: each epoch
delivers every sample once, and the pixels of some batches are those of h5py, where that is installed.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time

BATCH = 256
EPOCHS = 4


def processor():
    with open("/proc/cpuinfo") as file:
        return next((line.split(":")[1].strip() for line in file if line.startswith("model name")), platform.machine())


def epoch_of_stream(h5pack, path, threads):
    command = [h5pack, "stream", path, "--batch", str(BATCH), "--epochs", str(EPOCHS), "--threads", str(threads), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    epochs = [json.loads(line) for line in done.stdout.splitlines()]
    return sum(epoch["images"] for epoch in epochs[1:]) / sum(epoch["seconds"] for epoch in epochs[1:])


def epoch_of_python(chunkio, path, threads):
    loader = chunkio.Loader(chunkio.Dataset(path), batch_size=BATCH, num_threads=threads, num_epochs=EPOCHS)
    for epoch in range(EPOCHS):
        if epoch == 1:
            images, start = 0, time.perf_counter()
        for batch in loader:
            if epoch > 0:
                images += batch.images.shape[0]
    assert images == (EPOCHS - 1) * len(loader.dataset)
    return images / (time.perf_counter() - start)


def check(chunkio, np, path):
    data = chunkio.Dataset(path)
    seen = np.zeros(len(data), np.int64)
    for step, (batch) in enumerate(chunkio.Loader(data, batch_size=BATCH)):
        rows = np.asarray(batch.sample_ids)
        seen[rows] += 1
        if step % 50 == 0:
            for place in (0, len(rows) - 1):
                np.testing.assert_array_equal(np.asarray(batch.images)[place], data[rows[place]][0])
    assert (seen == 1).all()


def seconds_of_import():
    """Without torch, of a second process, so that the files are in memory."""
    program = "import time; start = time.perf_counter(); import chunkio; print(time.perf_counter() - start)"
    return min(float(subprocess.check_output([sys.executable, "-c", program])) for _ in range(5))


def seconds_to_first_batch(chunkio, path):
    start = time.perf_counter()
    next(iter(chunkio.Loader(chunkio.Dataset(path))))
    return time.perf_counter() - start


def cpu_seconds_a_batch(chunkio, path):
    """Of the thread that loops and takes images and labels as NumPy arrays."""
    import numpy as np

    loader = chunkio.Loader(chunkio.Dataset(path), batch_size=BATCH)
    batches, used = 0, 0.0
    for _ in range(3):
        start = time.thread_time()
        for images, labels in loader:
            np.asarray(images)
            batches += 1
        used += time.thread_time() - start
    return used / batches


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file")
    parser.add_argument("--h5pack", required=True)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--json")
    options = parser.parse_args()

    import_seconds = seconds_of_import()
    import chunkio
    import numpy as np

    check(chunkio, np, options.file)
    rounds = [
        (epoch_of_python(chunkio, options.file, options.threads), epoch_of_stream(options.h5pack, options.file, options.threads))
        for _ in range(options.rounds)
    ]
    ratios = [python / stream for python, stream in rounds]
    report = {
        "processor": processor(),
        "python": platform.python_version(),
        "shape": list(chunkio.Dataset(options.file).shape),
        "threads": options.threads,
        "python_images_per_second": statistics.median(python for python, _ in rounds),
        "stream_images_per_second": statistics.median(stream for _, stream in rounds),
        "ratio": {"median": statistics.median(ratios), "least": min(ratios), "most": max(ratios)},
        "cpu_microseconds_a_batch": 1e6 * statistics.median(cpu_seconds_a_batch(chunkio, options.file) for _ in range(3)),
        "import_seconds": import_seconds,
        "first_batch_seconds": statistics.median(seconds_to_first_batch(chunkio, options.file) for _ in range(5)),
    }
    print(json.dumps(report, indent=2))
    if options.json:
        with open(options.json, "w") as file:
            json.dump(report, file)


if __name__ == "__main__":
    main()
