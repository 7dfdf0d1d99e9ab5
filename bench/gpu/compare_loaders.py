#!/usr/bin/env python3
"""The trainers of samples/torch with each of their loaders: images/s, stall and GPU utilisation.

    compare_loaders.py --build FOLDER --dir FOLDER [--seconds N] [--markdown FILE] [--json FILE]

  --build FOLDER   where the programs were built
  --dir FOLDER     on a disk with 4 GiB: where the training files are made; they are removed at the end
  --seconds N      for all trainings together (120): what would not end in time is left out
  --pictures N     of the CIFAR-10-sized file (50000); 2/5 as many of the CelebA-sized one

The files are made by training_files. train_cifar runs resident on the GPU, from the host, with the host's loader and with the
naive one; train_celeba the same, bypassing the page cache and with a memory budget of a quarter of the data (512 MiB at
least), then with the echo factor that it asked for itself. A figure is the median (lowest to highest) of the epochs but the first, in which memory and
algorithms are chosen; GPU utilisation is the mean over them. They are no interleaved rounds: a trainer takes seconds to start.
"""

import argparse
import json
import pathlib
import signal
import statistics
import subprocess
import sys
import time

# A GPU has enough to do with these, so that launching its kernels takes less time than running them.
CIFAR = ["--batch", "1024", "--width", "64"]
CELEBA = ["--batch", "256", "--width", "64", "--window-bytes", "64MiB", "--direct-io"]
LOADERS = ["device", "naive", "host"]


def parse(arguments):
    parser = argparse.ArgumentParser(description="The trainers with each of their loaders.")
    parser.add_argument("--build", type=pathlib.Path, required=True, metavar="FOLDER")
    parser.add_argument("--dir", type=pathlib.Path, required=True, metavar="FOLDER")
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--pictures", type=int, default=50_000)
    parser.add_argument("--loaders", default=",".join(LOADERS), help="some of them (a machine without a GPU has no device)")
    parser.add_argument("--markdown", type=pathlib.Path, metavar="FILE")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE")
    options = parser.parse_args(arguments)
    options.loaders = options.loaders.split(",")
    if set(options.loaders) - set(LOADERS):
        parser.error(f"--loaders: {', '.join(LOADERS)}")
    return options


class Trainings:
    def __init__(self, options):
        self.options = options
        self.deadline = time.monotonic() + options.seconds
        self.results = []

    def run(self, program, what, loader, files, epochs, *arguments, target=None):
        """One training, whose stall is to be `target` percent at most. Returns its last line, or None: then the result says why."""
        lines = self.options.dir / "lines.json"
        lines.unlink(missing_ok=True)
        command = [self.options.build / "samples" / "torch" / program, *files, "--loader", loader, "--epochs", str(epochs),
                   "--eval", "last", "--json", lines, *arguments]
        result = {"trainer": program, "what": what, "loader": loader,
                  "options": " ".join(["--epochs", str(epochs), *arguments])}
        if target is not None:
            result["target"] = target
        self.results.append(result)
        left = self.deadline - time.monotonic()
        try:
            if left <= 0:
                raise subprocess.TimeoutExpired(program, 0)
            done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, timeout=left)
            if done.returncode != 0:
                result["error"] = done.stderr.strip() or f"exit code {done.returncode}"
        except subprocess.TimeoutExpired:
            result["error"] = "no time was left"
        except OSError as error:
            result["error"] = str(error)
        if "error" not in result:
            result["lines"] = [json.loads(line) for line in lines.read_text(encoding="utf-8").splitlines()]
        print(f"{program}, {what}: {result.get('error') or figures(result)['speed']}", flush=True)
        return result["lines"][-1] if "lines" in result else None


def spread(values, digits):
    return f"{statistics.median(values):,.{digits}f} ({min(values):,.{digits}f} to {max(values):,.{digits}f})"


def figures(result):
    epochs = [line for line in result["lines"] if line["kind"] == "epoch"]
    epochs = epochs[1:] or epochs
    last = result["lines"][-1]
    return {"images_per_second": statistics.median(line["images_per_second"] for line in epochs),
            "speed": spread([line["images_per_second"] for line in epochs], 0),
            "stall": statistics.median(line["stall_percent"] for line in epochs),
            "stall_text": spread([line["stall_percent"] for line in epochs], 2),
            "gpu": last["gpu_percent"], "loss": last["loss"], "accuracy": last["held_out_accuracy"]}


def table(results):
    rows = ["| trainer | loader | images/s | times naive | stall, % of the time | GPU utilisation, % | loss | held-out accuracy, % | |",
            "|---|---|---|---|---|---|---|---|---|"]
    naive = {result["trainer"]: figures(result)["images_per_second"] for result in results
             if result["loader"] == "naive" and "lines" in result}
    for result in results:
        name = result["trainer"].removeprefix("chunkio-").replace("-", "_")
        if "error" in result:
            rows.append(f"| {name} | {result['what']} | | | | | | | FAILED: {result['error']} |")
            continue
        values = figures(result)
        times = f"{values['images_per_second'] / naive[result['trainer']]:.1f}" if result["trainer"] in naive else ""
        gpu = "n/a" if values["gpu"] is None else f"{values['gpu']:.1f}"
        verdict = ""
        if "target" in result:
            met = values["stall"] <= result["target"] and values["gpu"] is not None and values["gpu"] >= 99
            verdict = f"{'met' if met else 'SHORT'}: stall <= {result['target']}, GPU >= 99"
        rows.append(f"| {name} | {result['what']} | {values['speed']} | {times} | {values['stall_text']} | {gpu} "
                    f"| {values['loss']:.3f} | {100 * values['accuracy']:.1f} | {verdict} |")
    return rows


def budget_of(options):
    """A quarter of the data; but of few images that is less than a window needs."""
    return max(options.pictures * 2 // 5 * 218 * 178 * 3 // 4, 512 << 20)


def compare(options, trainings):
    make = options.build / "bench" / "gpu" / "training_files"
    files = {}
    num_celeba = options.pictures * 2 // 5
    for name, kind, count, first in [("cifar", "classes", options.pictures, 0),
                                     ("cifar-test", "classes", options.pictures // 5, 10**9 - options.pictures),
                                     ("celeba", "attributes", num_celeba, 0),
                                     ("celeba-test", "attributes", num_celeba // 10, 10**9 - num_celeba)]:
        files[name] = options.dir / f"{name}.h5"
        subprocess.run([make, kind, files[name], str(count), str(first)], check=True)

    def train(program, what, loader, epochs, *extra, target=None):
        if loader not in options.loaders:
            return None
        if program == "cifar":
            given = [[files["cifar"], files["cifar-test"]], epochs, *CIFAR]
        else:
            given = [[files["celeba"], files["celeba-test"]], epochs, *CELEBA, "--memory-budget",
                     str(budget_of(options)), "--resident", "off"]
        return trainings.run(f"chunkio-train-{program}", what, loader, *given, *extra, target=target)

    # What has a target comes first, if time runs out.
    for what, extra in [("device, resident", []), ("device, from the host", ["--resident", "off"])]:
        train("cifar", what, "device", 12, *extra, target=0.5)
    # CelebA's target is that of the echo factor which the statistics advise, 1 or more.
    last = train("celeba", "device", "device", 4, target=1)
    echo = last and last["echo_needed"]
    if echo and echo > 1:
        del trainings.results[-1]["target"]
        train("celeba", f"device, --echo {echo} as it advises", "device", 3, "--echo", str(echo), target=1)
    for loader, epochs in [("naive", 2), ("host", 4)]:
        for program in ["cifar", "celeba"]:
            train(program, loader, loader, epochs)


def write(options, results):
    text = "\n".join(
        ["# Figures of the trainers", "",
         "Written by `bench/gpu/compare_loaders.py`, which says what is measured and how. SHORT: a target is missed.", "",
         f"train_cifar: {options.pictures} images of 32x32x3, {' '.join(CIFAR)}. train_celeba: {options.pictures * 2 // 5} of "
         f"218x178x3, {' '.join(CELEBA)} --memory-budget {budget_of(options)}.", "", *table(results)]) + "\n"
    print(text, end="")
    if options.markdown:
        options.markdown.write_text(text, encoding="utf-8")
    if options.json:
        options.json.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")


def main():
    options = parse(sys.argv[1:])
    options.dir.mkdir(parents=True, exist_ok=True)
    # What ended until a time limit is kept, and no file left behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    trainings = Trainings(options)
    try:
        compare(options, trainings)
    finally:
        for file in options.dir.glob("*.h5"):
            file.unlink()
        (options.dir / "lines.json").unlink(missing_ok=True)
        results = [result for result in trainings.results if "error" in result or "lines" in result]
        if results:
            write(options, sorted(results, key=lambda result: "celeba" in result["trainer"]))  # else as they came
    return 1 if any("error" in result for result in results) else 0


if __name__ == "__main__":
    sys.exit(main())
