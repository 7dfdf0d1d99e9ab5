"""Results as `chunkbench sweep` writes them, made up: for tests of the report, and to look at it.

    make_sweep_results.py OUT.json [--incomplete]

200 cells of a simple model of a disk (bandwidth, time of a request) and of caches, with a little noise. The
numbers are plausible and mean nothing.
"""

import json
import random
import statistics
import sys

MIB = 1 << 20
SAMPLE_BYTES = 96 * 96 * 3
SAMPLES = 160_000
DISK_BYTES_PER_SECOND = 1.94e9
REQUEST_SECONDS = 140e-6
MEMORY_BYTES_PER_SECOND = 11.2e9
CHUNKS = [chunk // SAMPLE_BYTES for chunk in (256 << 10, MIB, 4 * MIB, 16 * MIB, 64 * MIB)]  # in whole images
CACHES = [16 * MIB, 64 * MIB, 256 * MIB, 1024 * MIB, 4096 * MIB]
READERS = [("mapped", 1), ("mapped", 2), ("scatter", 2), ("h5dread", 1)]
ROUNDS = 5
IMAGES = 40_000


def spread(values):
    return {"median": statistics.median(values), "min": min(values), "max": max(values), "n": len(values)}


def modelled(order, source, threads, chunk_samples, cache_bytes):
    """Images/s, hit rate and read amplification of one cell."""
    chunk_bytes = chunk_samples * SAMPLE_BYTES
    fits = cache_bytes >= 2 * chunk_bytes
    if order == "chunk_shuffled" and (fits or source != "h5dread"):
        loads, request_bytes = (1 if fits else 1.4) / chunk_samples, chunk_bytes
    elif source == "h5dread":
        loads, request_bytes = 1 - (min(1.0, cache_bytes / (SAMPLES * SAMPLE_BYTES)) if fits else 0), chunk_bytes
    else:
        loads, request_bytes = 1, 32 << 10
    queue, slower = (1, 1.25) if source == "h5dread" else (4 * threads, 1)
    disk = slower * loads * (request_bytes / DISK_BYTES_PER_SECOND + REQUEST_SECONDS / queue)
    copy = SAMPLE_BYTES / MEMORY_BYTES_PER_SECOND / threads
    # Large chunks and few of them in the window leave the disk idle between windows.
    idle = 1 + 0.35 * min(1.0, 2 * chunk_bytes / cache_bytes) + (0.06 if source == "scatter" else 0)
    seconds = (disk + copy + 14e-6 if source == "h5dread" else max(disk, copy)) * idle
    return 1 / seconds, 1 - loads, loads * request_bytes / SAMPLE_BYTES


def make_cell(noise, order, source, threads, chunk_samples, cache_bytes):
    speed, hits, amplification = modelled(order, source, threads, chunk_samples, cache_bytes)
    loads = round((1 - hits) * IMAGES)
    rounds = []
    for _ in range(ROUNDS):
        seconds = IMAGES / (speed * noise.gauss(1, 0.02))
        rounds.append({"images": IMAGES, "seconds": seconds,
                       "stall_seconds": seconds * min(0.97, max(0.01, 1 - speed / 60_000)),
                       "bytes_read": round(IMAGES * SAMPLE_BYTES * amplification), "chunk_loads": loads})
    busy = seconds * threads
    stages = {"plan": 0.003 * busy, "read": 0.9 * busy, "decode": 0.0, "copy": 0.04 * busy, "input_wait": 0.02 * busy,
              "output_wait": 0.037 * busy}
    return with_spreads({
        "chunk_bytes": chunk_samples * SAMPLE_BYTES, "chunk_samples": chunk_samples, "cache_bytes": cache_bytes,
        "order": order, "source": source, "threads": threads, "status": "measured", "reason": "", "rounds": rounds,
        "hit_rate": {"predicted": hits, "measured": hits * noise.uniform(0.99, 1)},
        "read_amplification": {"predicted": amplification, "measured": amplification * noise.uniform(1, 1.02)},
        "chunk_loads": {"predicted": loads, "measured": loads}, "stages": None if source == "h5dread" else stages})


def with_spreads(cell):
    """The spreads that belong to the rounds of a cell."""
    rounds = cell["rounds"]
    cell["images_per_second"] = spread([r["images"] / r["seconds"] for r in rounds]) if rounds else None
    cell["bytes_per_second"] = spread([r["bytes_read"] / r["seconds"] for r in rounds]) if rounds else None
    return cell


def without_numbers(cell, status, reason):
    """Not measured; what is predicted stays, unless nothing was to be measured."""
    for name in ("hit_rate", "read_amplification", "chunk_loads"):
        cell[name] = {"predicted": None if status == "skipped" else cell[name]["predicted"], "measured": None}
    cell.update(status=status, reason=reason, rounds=[], images_per_second=None, bytes_per_second=None, stages=None)


def prune(cells):
    """Cells far behind the best of their kind stop after three rounds, as the sweep stops them."""
    best = max(cell["images_per_second"]["median"] for cell in cells)
    for cell in cells:
        if cell["images_per_second"]["max"] < 0.5 * best:
            cell.update(rounds=cell["rounds"][:3], status="pruned", reason="its best round is slower than the worst of the best")
            with_spreads(cell)


def shuffle_points():
    points = []
    for samples in CHUNKS:
        for window in CACHES:
            mixed = max(1, window // (samples * SAMPLE_BYTES))
            points.append({"order": "chunk_shuffled", "chunk_bytes": samples * SAMPLE_BYTES, "window_bytes": window,
                           "label_entropy": 1 - 0.42 / mixed**0.7,
                           "same_chunk_pairs": 1 + (SAMPLES / samples / mixed)**1.1 / (1 + samples / 400),
                           "chosen": samples == CHUNKS[2] and window == 256 * MIB})
    return points


LADDER = [("one file per image, read on demand, float32", 2_900, 0.86, None),
          ("all images in memory", 23_500, 0.02, None),
          ("chunked HDF5, default cache, random reads", 210, 0.99, 143.0),
          ("chunk-ordered shuffle, scatter reads", 21_400, 0.03, 1.0),
          ("echo factor 2", 23_300, 0.006, 0.5)]


def make_results(complete=True):
    noise = random.Random(6)
    cells = []
    for order in ("chunk_shuffled", "random"):
        for source, threads in READERS:
            group = [make_cell(noise, order, source, threads, chunk, cache) for cache in CACHES for chunk in CHUNKS]
            prune(group)
            for cell in group:
                if order == "random" and source != "h5dread" and cell["cache_bytes"] != CACHES[0]:
                    without_numbers(cell, "skipped", "in this order the window has no effect")
            cells += group
    without_numbers(cells[4], "failed", "12 % of the file stayed in the page cache, so the trial was not cold")
    for number, cell in enumerate([] if complete else cells):
        if number % 9 == 5 and cell["images_per_second"]:
            cell.update(rounds=cell["rounds"][:2], status="measuring", reason="")
            with_spreads(cell)
        elif number % 5 == 2:
            without_numbers(cell, "pending", "")
    return {
        "format": "chunkbench", "version": 1, "created": "2026-11-22T10:00:00Z", "complete": complete,
        "versions": {"chunkio": "0.1.0", "hdf5": "1.10.8", "h5pack": "0.1.0"},
        "machine": {"cpu": "AMD EPYC 7B13", "cpus": 2, "memory_bytes": 8 << 30, "kernel": "Linux 6.1.0"},
        "dataset": {"name": "train.h5", "shape": [SAMPLES, 96, 96, 3], "bytes": SAMPLES * SAMPLE_BYTES, "filters": []},
        "options": {"rounds": ROUNDS, "cold": True, "batch_size": 256, "seed": 7, "images_per_trial": IMAGES,
                    "limit": None, "memory_limit": None, "throttled_device": None,
                    "notes": ["64 MiB chunks hold 2427 images", "no memory limit"]},
        "ceilings": [
            {"name": "storage, large reads", "bytes_per_second": spread([1.9e9, 1.94e9, 1.93e9, 1.96e9, 1.88e9])},
            {"name": "memory, copy of the same rows", "bytes_per_second": spread([10.9e9, 11.2e9, 11.4e9])}],
        "cells": cells,
        "shuffle": shuffle_points(),
        "ladder": [{"variant": variant, "images_per_second": spread([speed * f for f in (0.97, 0.99, 1, 1.02, 1.03)]),
                    "stall": stall, "read_amplification": amplification}
                   for variant, speed, stall, amplification in LADDER],
        "time": {"seconds_preparing": 150.0, "seconds_total": 2710.0, "seconds_measured": 2512.0},
    }


if __name__ == "__main__":
    with open(sys.argv[1], "w", encoding="utf-8") as file:
        json.dump(make_results("--incomplete" not in sys.argv), file)
