#!/usr/bin/env python3
"""Does shuffling by chunks cost accuracy? Trains the same network on the same images in globally random and in
chunk-shuffled order, with several seeds, and compares the held-out accuracies pair by pair.

    bench/accuracy.py --trainer build/release/samples/torch/chunkio-train-cifar --train shuffled=cifar/train.h5
        --train sorted=cifar-by-class/train.h5 --test cifar/test.h5 --out accuracy/ [-- OPTIONS OF THE TRAINER]

Each --train is a file with a name for it: a file packed as usual (its rows were shuffled once), or the hard case, one packed
from class folders with `h5pack folder --order source`, whose chunks have few classes each. --windows are what is mixed together in
chunk-shuffled order; with as much as the whole file that order is a random one, too.

A pair has the same seed, which is that of the weights, the crops and the order. The table has the mean difference over
seeds and its 95 % interval (Student's t of the pairs). Every run leaves a JSON file in --out, and what is there is not run
again: an interrupted experiment goes on where it stopped. On a CPU as many trainings run at a time as there are CPUs, with one
thread each: that is faster than several threads for each, and the result does not depend on it. Needs nothing but Python.
"""

import argparse
import concurrent.futures
import json
import math
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import time

# 97.5 % quantiles of Student's t for 1 to 30 degrees of freedom (any table of it); with more, the last, which is a little wide.
T_QUANTILES = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
               2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042]
# Small enough for a CPU: about half a minute of one core for an epoch of CIFAR-10.
TRAINER_OPTIONS = ["--epochs", "8", "--width", "16", "--stem-stride", "2", "--batch", "128"]


def paired_interval(differences):
    """(mean, half width of its 95 % interval) of paired differences; the width is infinite for one pair."""
    mean = statistics.fmean(differences)
    pairs = len(differences)
    if pairs < 2:
        return mean, math.inf
    quantile = T_QUANTILES[min(pairs - 1, len(T_QUANTILES)) - 1]
    return mean, quantile * statistics.stdev(differences) / math.sqrt(pairs)


def named_file(text):
    name, equals, path = text.partition("=")
    if not equals or not name or not path:
        raise argparse.ArgumentTypeError(f"'{text}': expected NAME=FILE.h5")
    return name, pathlib.Path(path)


def parse(arguments):
    trainer_options = TRAINER_OPTIONS
    if "--" in arguments:
        split = arguments.index("--")
        arguments, trainer_options = arguments[:split], arguments[split + 1:]
    parser = argparse.ArgumentParser(
        description="Accuracy of chunk-shuffled against globally random order.",
        epilog=f"What follows -- goes to the trainer (default: {' '.join(TRAINER_OPTIONS)}).")
    parser.add_argument("--trainer", type=pathlib.Path, required=True, help="the program chunkio-train-cifar")
    parser.add_argument("--train", type=named_file, action="append", required=True, metavar="NAME=FILE.h5")
    parser.add_argument("--test", type=pathlib.Path, required=True, metavar="FILE.h5")
    parser.add_argument("--windows", default="16MiB", help="sizes, with commas between them (default 16MiB)")
    parser.add_argument("--seeds", type=int, default=5, help="pairs, from seed 0 on (default 5)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="trainings at a time (default: the CPUs; 1 on a GPU)")
    parser.add_argument("--out", type=pathlib.Path, required=True, metavar="FOLDER")
    options = parser.parse_args(arguments)
    if options.jobs < 1:
        parser.error("--jobs: at least 1")
    if options.seeds < 2:
        parser.error("--seeds: an interval needs at least 2")
    for path in [options.trainer, options.test, *(path for _, path in options.train)]:
        if not path.is_file():
            parser.error(f"there is no file {path}")
    if len({name for name, _ in options.train}) < len(options.train):
        parser.error("--train: two files have the same name")
    return options, trainer_options


def train(options, trainer_options, name, path, order, window, seed):
    """One training, unless its result is there already: what the trainer wrote, and the seconds it took."""
    label = f"{name}-{order}{'-' + window if window else ''}-{seed}"
    json_file = options.out / f"{label}.json"
    command = [str(options.trainer), str(path), str(options.test), "--order", order, "--seed", str(seed), "--eval", "last",
               *(["--window-bytes", window] if window else []), *trainer_options]
    # The command stands in the file, so that results of other settings are not taken for these.
    if json_file.exists():
        saved = json.loads(json_file.read_text(encoding="utf-8"))
        if saved["command"] == command:
            return label, saved
    started = time.monotonic()
    lines = json_file.with_suffix(".lines")
    result = subprocess.run([*command, "--json", str(lines)], capture_output=True, text=True, check=False,
                            env={"OMP_NUM_THREADS": "1", **os.environ})
    if result.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {result.stderr.strip()}")
    saved = {"command": command, "seconds": time.monotonic() - started,
             "lines": [json.loads(line) for line in lines.read_text(encoding="utf-8").splitlines()]}
    part = json_file.with_suffix(".part")
    part.write_text(json.dumps(saved), encoding="utf-8")
    part.replace(json_file)
    lines.unlink()
    return label, saved


def spread(values):
    return f"{statistics.fmean(values):.2f} ({min(values):.2f} to {max(values):.2f})"


def main():
    options, trainer_options = parse(sys.argv[1:])
    windows = options.windows.split(",")
    options.out.mkdir(parents=True, exist_ok=True)
    accuracies = {}  # (name, window or "" for random order): percent, seed by seed
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        # Seed by seed, so that all pairs so far are complete whenever it is interrupted.
        runs = [(name, window, pool.submit(train, options, trainer_options, name, path,
                                           "chunk_shuffled" if window else "random", window, seed))
                for seed in range(options.seeds) for name, path in options.train for window in ["", *windows]]
        for done, (name, window, future) in enumerate(runs, start=1):
            try:
                label, saved = future.result()
            except (RuntimeError, OSError, ValueError) as error:
                pool.shutdown(cancel_futures=True)
                sys.exit(f"accuracy.py: {error}")
            accuracy = 100 * saved["lines"][-1]["held_out_accuracy"]
            accuracies.setdefault((name, window), []).append(accuracy)
            print(f"{done}/{len(runs)}: {label}: {accuracy:.2f} % in {saved['seconds']:.0f} s", flush=True)

    rows = [f"Held-out accuracy in percent, {options.seeds} seeds: mean (lowest to highest). `{' '.join(trainer_options)}`; "
            f"{platform.machine()}, {time.strftime('%Y-%m-%d', time.gmtime())}.",
            "",
            "| file | window | globally random | chunk-shuffled | difference, 95 % interval | holds 0 |",
            "|---|---|---|---|---|---|"]
    for (name, window), chunked in accuracies.items():
        if not window:
            continue
        random = accuracies[name, ""]
        mean, half = paired_interval([a - b for a, b in zip(chunked, random, strict=True)])
        rows.append(f"| {name} | {window} | {spread(random)} | {spread(chunked)} "
                    f"| {mean:+.2f} ({mean - half:+.2f} to {mean + half:+.2f}) | {'yes' if abs(mean) <= half else 'no'} |")
    table = "\n".join(rows) + "\n"
    (options.out / "accuracy.md").write_text(table, encoding="utf-8")
    print("\n" + table, end="")


if __name__ == "__main__":
    main()
