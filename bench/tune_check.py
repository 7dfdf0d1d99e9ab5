#!/usr/bin/env python3
"""Whether the advice of `h5pack tune` is as good as a sweep finds: 20 cases, small and large images on slow and fast
disks.

    python3 bench/tune_check.py --build build/release --scratch DIR -o tune_check.json [--markdown tune_check.md]

For each case `chunkbench sweep` interleaves all combinations of: chunks of 256 KiB, 1, 4, 16 and 64 MiB and those
advised; windows of 64 and 256 MiB and the one advised; one thread, all, and as many as advised. They are read by the
loader as it does by itself, from a disk of a published kind (--simulate-disk, so that the machine itself needs none of them),
for half a second a turn and at least an epoch of two of the largest windows.
`h5pack tune` is told the same: how many images of which size, the kind of disk, memory and processors. The cell with
its settings is compared with the best cell: medians, and within 10 % counts. Exit code 0 if that holds in 18 of 20
cases (or the same share of those chosen with --cases), 1 if not, 2 for wrong usage.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys

KIBIBYTE = 1024
MEBIBYTE = 1024 * KIBIBYTE
CHUNK_BYTES = [KIBIBYTE * 256 << shift for shift in range(0, 9, 2)]
WINDOW_BYTES = [64 * MEBIBYTE, 256 * MEBIBYTE]
SHAPES = ["32x32x3", "64x64x3", "218x178x3", "512x512x3"]
PROFILES = ["hdd", "sata-ssd", "nvme", "nfs", "cloud-volume"]
SOURCE = "mapped"  # what the loader takes by itself for unfiltered files
WITHIN = 0.9
SHARE = 18 / 20


def run(command):
    result = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if result.returncode != 0:
        raise SystemExit(result.returncode if result.returncode > 0 else 128 - result.returncode)
    return result.stdout


def numbers(values):
    return ",".join(f"{value}B" for value in sorted(set(values)))


def check(case, arguments):
    """One case: what tune says, what the sweep finds."""
    shape, profile = case
    sides = [int(side) for side in shape.split("x")]
    sample_bytes = sides[0] * sides[1] * sides[2]
    pictures = max(1, arguments.bytes // sample_bytes)
    tuned = json.loads(run([arguments.h5pack, "tune", f"{pictures}x{shape}", "--disk", profile, "--threads",
                            str(arguments.cpus), "--memory-budget", "2GiB", "--page-cache", "1TiB", "--json"]))["advice"]
    # The size in a power of two that has so many images.
    advised = next((size for size in (KIBIBYTE * 256 << shift for shift in range(9))
                    if min(max(1, size // sample_bytes), pictures) == tuned["chunk_samples"]), None)
    if advised is None:
        raise SystemExit(f"tune_check: {shape} on {profile}: no chunk size has {tuned['chunk_samples']} images")
    windows = [*WINDOW_BYTES, tuned["window_bytes"]]
    threads = sorted({1, arguments.cpus, tuned["num_threads"]})
    output = pathlib.Path(arguments.sweeps or arguments.scratch) / f"tune_check-{shape}-{profile}.json"
    run([arguments.chunkbench, "sweep", "--synthetic", f"{pictures}x{shape}", "--simulate-disk", profile, "--warm",
         "--chunk-bytes", numbers([*CHUNK_BYTES, advised]), "--cache-bytes", numbers(windows),
         "--orders", "chunk_shuffled", "--sources", SOURCE, "--threads", ",".join(map(str, threads)),
         "--rounds", str(arguments.rounds), "--turn-seconds", "0.5",
         "--scratch", arguments.scratch, "--output", str(output), "--force",
         "--quiet"])
    cells = [cell for cell in json.loads(output.read_text(encoding="utf-8"))["cells"] if cell["images_per_second"]]
    best = max(cells, key=lambda cell: cell["images_per_second"]["median"])
    own = [cell for cell in cells
           if (cell["chunk_samples"], cell["cache_bytes"], cell["threads"], cell["source"])
           == (tuned["chunk_samples"], tuned["window_bytes"], tuned["num_threads"], SOURCE)]
    if len(own) != 1:
        raise SystemExit(f"tune_check: {shape} on {profile}: no cell with the settings advised "
                         f"({tuned['chunk_samples']} images a chunk, a window of {tuned['window_bytes']} bytes, "
                         f"{tuned['num_threads']} threads)")
    own = own[0]
    if not arguments.sweeps:
        output.unlink()
    ratio = own["images_per_second"]["median"] / best["images_per_second"]["median"]
    return {
        "pictures": f"{pictures}x{shape}", "profile": profile, "tuned": settings(own), "best": settings(best),
        "tuned_images_per_second": own["images_per_second"], "best_images_per_second": best["images_per_second"],
        "predicted_images_per_second": tuned["first_epoch"]["images_per_second"],
        "ratio": ratio, "within": ratio >= WITHIN, "cells": len(cells),
    }


def settings(cell):
    return {key: cell[key] for key in ("chunk_bytes", "chunk_samples", "cache_bytes", "threads", "source")}


def write(path, text):
    partial = f"{path}.partial"
    pathlib.Path(partial).write_text(text, encoding="utf-8")
    os.replace(partial, path)


def markdown(results, passed):
    lines = ["| images | disk | advised | best | images/s, advised | images/s, best | ratio | predicted / measured |",
             "|---|---|---|---|---|---|---|---|"]
    for result in results:
        def cell(which):
            found = result[which]
            return f"{found['chunk_bytes'] / MEBIBYTE:.2f} MiB, {found['threads']} threads, {found['source']}"

        def spread(which):
            found = result[which]
            return f"{found['median']:.0f} ({found['min']:.0f} to {found['max']:.0f})"
        lines.append(f"| {result['pictures']} | {result['profile']} | {cell('tuned')} | {cell('best')} | "
                     f"{spread('tuned_images_per_second')} | {spread('best_images_per_second')} | "
                     f"{result['ratio']:.2f}{'' if result['within'] else ' SHORT'} | "
                     f"{result['predicted_images_per_second'] / result['tuned_images_per_second']['median']:.2f} |")
    within = sum(result["within"] for result in results)
    lines.append("")
    lines.append(f"Within 10 % of the best cell in {within} of {len(results)} cases: {'met' if passed else 'SHORT'}.")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True, help="build tree with h5pack and chunkbench")
    parser.add_argument("--h5pack", help="default: in the build tree")
    parser.add_argument("--chunkbench", help="default: in the build tree")
    parser.add_argument("--scratch", required=True, help="folder for the files that are measured")
    parser.add_argument("-o", "--output", required=True, help="results, as JSON")
    parser.add_argument("--markdown", help="and as a table")
    parser.add_argument("--sweeps", help="folder in which the results of the sweeps are kept")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--bytes", type=int, default=1 << 30, help="pixels of a case (default: 1 GiB)")
    parser.add_argument("--cpus", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--cases", type=int, nargs="+", choices=range(len(SHAPES) * len(PROFILES)), metavar="N",
                        help=f"only these, from 0 to {len(SHAPES) * len(PROFILES) - 1}")
    arguments = parser.parse_args()
    build = pathlib.Path(arguments.build)
    arguments.h5pack = arguments.h5pack or str(build / "tools/h5pack/h5pack")
    arguments.chunkbench = arguments.chunkbench or str(build / "bench/chunkbench/chunkbench")
    arguments.cpus = min(arguments.cpus, 8)
    cases = [(shape, profile) for shape in SHAPES for profile in PROFILES]
    for program in (arguments.h5pack, arguments.chunkbench):
        if not os.access(program, os.X_OK):
            parser.error(f"there is no program {program}: build it, or name another build tree")
    for folder in (arguments.scratch, arguments.sweeps):
        if folder and not os.path.isdir(folder):
            parser.error(f"there is no folder {folder}: make it first, or name another")
    for path in (arguments.output, arguments.markdown):
        if path and not os.access(os.path.dirname(path) or ".", os.W_OK | os.X_OK):
            parser.error(f"cannot write {path}: its folder is missing or not writable")
    chosen = cases if arguments.cases is None else [cases[i] for i in dict.fromkeys(arguments.cases)]

    results = []
    passed = False
    for case in chosen:
        results.append(check(case, arguments))
        passed = sum(result["within"] for result in results) >= SHARE * len(chosen)
        write(arguments.output, json.dumps({"complete": len(results) == len(chosen), "cpus": arguments.cpus,
                                            "rounds": arguments.rounds, "passed": passed, "cases": results}, indent=1))
        print(markdown(results[-1:], passed).splitlines()[2], flush=True)
    if arguments.markdown:
        write(arguments.markdown, markdown(results, passed))
    print(markdown(results, passed).splitlines()[-1])
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
