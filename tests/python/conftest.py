"""Files that tests read: written by h5py, so that nothing of chunkio is needed to know what is in them."""

from __future__ import annotations

import gc
import os
import pathlib
import subprocess
import sys
import textwrap
import threading

import h5py
import numpy as np
import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "scripts"))
sys.dont_write_bytecode = True

# PyTorch is not instrumented: its threads hand over data in ways that ThreadSanitizer does not see.
if os.environ.get("CHUNKIO_SANITIZE") == "thread":
    sys.modules["torch"] = None


def pytest_addoption(parser):
    parser.addoption("--h5pack", help="the program h5pack")


def pytest_configure(config):
    config.addinivalue_line("markers", "long: takes minutes, or needs a large package; of ctest's label `long`")


HEIGHT, WIDTH, CHANNELS = 6, 5, 3
SAMPLE_BYTES = HEIGHT * WIDTH * CHANNELS


def images_of(rows):
    """The images of these row numbers: no two are alike."""
    rows = np.asarray(rows, np.int64)
    pixels = rows[:, None] * 7919 + np.arange(HEIGHT * WIDTH * CHANNELS)[None] * 31
    return (pixels % 251).astype(np.uint8).reshape(len(rows), HEIGHT, WIDTH, CHANNELS)


def labels_of(rows):
    return np.asarray(rows, np.int64) * 3 % 11


def write(path, first, count, chunk, filtered=False):
    rows = np.arange(first, first + count)
    with h5py.File(path, "w") as file:
        how = {"chunks": (min(chunk, count), HEIGHT, WIDTH, CHANNELS)}
        if filtered:
            how["compression"] = "gzip"
        file.create_dataset("images", data=images_of(rows), **how)
        file["labels"] = labels_of(rows)
        file["weights"] = np.stack([rows * 0.5, rows * 2.0], axis=1).astype(np.float32)


@pytest.fixture
def make_file(tmp_path):
    """Writes a file of `count` samples, or several, and returns the name that opens them."""

    def make(count=230, chunk=9, filtered=False):
        if isinstance(count, int):
            path = tmp_path / f"train-{count}-{chunk}-{filtered}.h5"
            write(path, 0, count, chunk, filtered)
            return str(path)
        first = 0
        for index, samples in enumerate(count):
            write(tmp_path / f"part-{index:05}-of-{len(count):05}.h5", first, samples, chunk, filtered)
            first += samples
        return str(tmp_path / f"part-*-of-{len(count):05}.h5")

    return make


@pytest.fixture
def data(make_file):
    import chunkio

    return chunkio.Dataset(make_file())


@pytest.fixture(autouse=True)
def no_thread_is_left():
    """Loaders that are gone have no threads: what is counted are those of the system."""
    gc.collect()
    before = num_threads()
    yield
    gc.collect()
    assert num_threads() <= max(before, threading.active_count() + 8), "threads are left over"


def num_threads():
    return len(list(pathlib.Path("/proc/self/task").iterdir()))


def skip_batches(loader, count):
    """Begins a loop and leaves it behind so many batches."""
    for _ in zip(range(count), loader):
        pass


def run_program(program):
    """What an interpreter of its own prints that runs this program, and nothing on stderr."""
    command = [sys.executable, "-c", textwrap.dedent(program)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def ids(batch):
    return np.asarray(batch.sample_ids).tolist()


def check_contents(batch):
    rows = ids(batch)
    np.testing.assert_array_equal(np.asarray(batch.images), images_of(rows))
    np.testing.assert_array_equal(np.asarray(batch.labels), labels_of(rows))
    return rows
