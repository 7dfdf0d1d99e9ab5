"""What all peers share: options, the check before the clock, and rounds on request.

A peer first checks that an epoch delivers every image once with the right pixels, and finds out
which of its settings is fastest. Then it prints one JSON line about itself. With --rounds N it
times N epochs; without, it times one for each line on its standard input, so that a program can
interleave rounds of several peers. Each epoch is one more JSON line.
"""

import argparse
import ctypes
import json
import mmap
import multiprocessing
import os
import platform
import shutil
import sys
import time

import h5py
import numpy as np


def make_parser(description):
    return argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)


def add_options(parser):
    """What every program that reads has."""
    parser.add_argument("file", help="HDF5 file with a dataset 'images' [N,H,W,C] of uint8")
    parser.add_argument("--batch", type=int, default=256, help="images a batch")
    parser.add_argument("--threads", type=int, default=2, help="threads or processes that read")
    parser.add_argument("--dir", default=".", help="where files may be put that the caller removes")


def parse_options(description):
    parser = make_parser(description)
    add_options(parser)
    parser.add_argument("--rounds", type=int, default=0,
                        help="epochs to time; 0: one for each line on standard input")
    parser.add_argument("--cold", action="store_true",
                        help="put the file out of the page cache before each epoch that is timed")
    options = parser.parse_args()
    options.cold_files = [options.file] if options.cold else []
    return options


def put_out_of_page_cache(path):
    """Ends the program if more than 1 % of the file stay, as of one that somebody has mapped."""
    file = os.open(path, os.O_RDONLY)
    os.fsync(file)
    os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
    with mmap.mmap(file, 0, prot=mmap.PROT_READ) as mapping:
        bytes_of = np.frombuffer(mapping, np.uint8)
        cached = (ctypes.c_ubyte * -(-len(bytes_of) // mmap.PAGESIZE))()
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.mincore(ctypes.c_void_p(bytes_of.ctypes.data), ctypes.c_size_t(len(bytes_of)), cached) != 0:
            raise SystemExit(f"{path}: mincore: {os.strerror(ctypes.get_errno())}")
        stays = np.mean(np.frombuffer(cached, np.uint8) & 1)
        del bytes_of  # before the mapping that it shows
    os.close(file)
    if stays > 0.01:
        raise SystemExit(f"{path}: {stays:.0%} stays in the page cache, so there is no cold figure; leave --cold out")


def image_shape(path):
    """(H, W, C)."""
    with h5py.File(path, "r") as file:
        return file["images"].shape[1:]


def rows_of(images, block=256):
    """Yields (row number, image [H,W,C]) of a dataset, which is read in blocks."""
    for first in range(0, len(images), block):
        yield from enumerate(images[first:first + block], first)


def load_reference(path):
    """All images, as the check compares with them. [N,H,W,C] uint8."""
    with h5py.File(path, "r") as file:
        return file["images"][:]


def check_epoch(batches, reference, what):
    """`batches` yields (images [B,H,W,C] uint8, their row numbers [B])."""
    seen = np.zeros(len(reference), dtype=bool)
    in_file_order = True
    previous = -1
    for pictures, rows in batches:
        pictures = np.asarray(pictures)
        rows = np.asarray(rows).reshape(-1)
        if pictures.dtype != np.uint8 or pictures.shape != (len(rows),) + reference.shape[1:]:
            raise SystemExit(f"{what} delivered {pictures.dtype} {pictures.shape}")
        if len(np.unique(rows)) != len(rows) or seen[rows].any():
            raise SystemExit(f"{what} delivered an image twice")
        seen[rows] = True
        if not np.array_equal(pictures, reference[rows]):
            raise SystemExit(f"{what} delivered wrong pixels")
        in_file_order &= bool((np.diff(rows, prepend=previous) == 1).all())
        previous = rows[-1]
    if not seen.all():
        raise SystemExit(f"{what} left out images")
    if in_file_order:
        raise SystemExit(f"{what} did not shuffle")


def timed(run_epoch, cold_files=()):
    for path in cold_files:
        put_out_of_page_cache(path)
    start = time.perf_counter()
    images = run_epoch()
    return images, time.perf_counter() - start


def fastest(candidates, num_images, cold_files=()):
    """Times each of {name: run_epoch} once. Returns the best name and all rates in images/s."""
    rates = {}
    for name, run_epoch in candidates.items():
        images, seconds = timed(run_epoch, cold_files)
        if images != num_images:
            raise SystemExit(f"{name} delivered {images} of {num_images} images")
        rates[name] = images / seconds
    return max(rates, key=rates.get), rates


def packed(options, suffix, write):
    """The folder with a peer's own copy of the file. `write(folder)` fills it if it is missing.

    A copy of other images fails the check; remove it then.
    """
    folder = os.path.join(options.dir, os.path.basename(options.file) + suffix)
    if not os.path.isdir(folder):
        partial = folder + ".partial"
        shutil.rmtree(partial, ignore_errors=True)
        os.makedirs(partial)
        write(partial)
        os.rename(partial, folder)
    if options.cold:
        options.cold_files = [os.path.join(parent, name)
                              for parent, _, names in os.walk(folder) for name in names]
    return folder


def compete(peer, versions, settings, ways, options, check=check_epoch, load=load_reference):
    """Serves the fastest of `ways`, {name: function that makes an iterable of batches}.

    Of each way one epoch is checked against what `load` finds in the file, and the next one timed.
    """
    reference = load(options.file)

    def epoch_of(batches):
        def run():
            return sum(len(rows) for _, rows in batches)
        return run

    rates = {}
    for name, make in ways.items():
        batches = make()
        check(batches, reference, name)
        rates |= fastest({name: epoch_of(batches)}, reference.shape[0], options.cold_files)[1]
        if rates[name] == max(rates.values()):
            best, kept = name, batches  # the workers of the one before end
        del batches
    del reference
    serve(peer, versions, settings, best, rates, epoch_of(kept), options)


def serve(peer, versions, settings, best, rates, run_epoch, options):
    def say(line):
        print(json.dumps(line), flush=True)

    cold_files = getattr(options, "cold_files", ())  # those that write have none
    say({"peer": peer,
         "versions": {"python": platform.python_version(), "numpy": np.__version__, **versions},
         "settings": settings if not cold_files else {**settings, "page_cache": "cold"},
         "best": best,
         "tried_images_per_second": rates})
    if options.rounds > 0:
        for _ in range(options.rounds):
            images, seconds = timed(run_epoch, cold_files)
            say({"images": images, "seconds": seconds, "images_per_second": images / seconds})
    else:
        for _ in sys.stdin:
            images, seconds = timed(run_epoch, cold_files)
            say({"images": images, "seconds": seconds})
    leave()


def leave():
    """Ends the program without waiting for the threads of the libraries, some of which never end."""
    sys.stdout.flush()
    for process in multiprocessing.active_children():
        process.kill()
    os._exit(0)
