#!/usr/bin/env python3
"""The best that h5py and NumPy can do without one call for each image.

Chunks are visited in random order and read whole into a window of 256 MiB, the default of chunkio,
and batches are gathered from the window with numpy.take into arrays made before. Tried are: one
thread; a thread that reads the next window while this one is gathered; and processes that share
the windows and hand over batches in shared memory. Each with h5py's read_direct (chunk cache off,
so that nothing is copied twice) and with read_direct_chunk. The fastest is timed.
"""

import functools
import multiprocessing
import queue
import threading

import h5py
import numpy as np

import rounds

WINDOW_BYTES = 256 << 20
# Batches a process may have ready.
SLOTS = 8


class Chunks:
    """Reads whole chunks of one open file."""

    def __init__(self, path, raw):
        self.file = h5py.File(path, "r", rdcc_nbytes=0)
        self.images = self.file["images"]
        self.raw = raw
        self.shape = self.images.shape
        self.rows = self.images.chunks[0]
        self.count = -(-self.shape[0] // self.rows)
        self.window_chunks = max(1, WINDOW_BYTES // (self.rows * int(np.prod(self.shape[1:]))))

    def new_window(self):
        pictures = np.empty((self.window_chunks * self.rows,) + self.shape[1:], np.uint8)
        pictures.fill(0)  # backed by memory
        return pictures

    def read(self, chunks, window):
        """Reads `chunks` one after the other into `window`; returns the row numbers of the file."""
        rows = np.empty(len(chunks) * self.rows, np.int64)
        used = 0
        for chunk in chunks:
            first = int(chunk) * self.rows
            count = min(self.rows, self.shape[0] - first)
            if self.raw and count == self.rows:
                self.images.id.read_direct_chunk((first, 0, 0, 0),
                                                 out=memoryview(window[used:used + count]).cast("B"))
            else:
                self.images.read_direct(window, np.s_[first:first + count],
                                        np.s_[used:used + count])
            rows[used:used + count] = np.arange(first, first + count)
            used += count
        return rows[:used]

    def windows(self, random):
        order = random.permutation(self.count)
        return [order[i:i + self.window_chunks] for i in range(0, self.count, self.window_chunks)]


def gather(window, rows, random, batch, target):
    """Yields (images, rows) batch by batch; the images are those of `target(size)`."""
    order = random.permutation(len(rows))
    for first in range(0, len(order), batch):
        picked = order[first:first + batch]
        out = target(len(picked))
        # With mode "raise" NumPy would go through a copy of `out`.
        np.take(window, picked, axis=0, out=out, mode="clip")
        yield out, rows[picked]


class OneThread:
    def __init__(self, options, raw):
        self.chunks = Chunks(options.file, raw)
        self.window = self.chunks.new_window()
        self.batch = options.batch
        self.out = np.zeros((options.batch,) + self.chunks.shape[1:], np.uint8)
        self.random = np.random.default_rng(7)

    def __iter__(self):
        for chunks in self.chunks.windows(self.random):
            rows = self.chunks.read(chunks, self.window)
            yield from gather(self.window, rows, self.random, self.batch, lambda n: self.out[:n])


class ReadingThread:
    """Two windows: one is read by a thread while the other is gathered."""

    def __init__(self, options, raw):
        self.chunks = Chunks(options.file, raw)
        self.batch = options.batch
        self.out = np.zeros((options.batch,) + self.chunks.shape[1:], np.uint8)
        self.random = np.random.default_rng(7)
        self.free = queue.Queue()
        self.full = queue.Queue()
        self.wanted = queue.Queue()
        for _ in range(2):
            self.free.put(self.chunks.new_window())
        threading.Thread(target=self.work, daemon=True).start()

    def work(self):
        while True:
            chunks = self.wanted.get()
            window = self.free.get()
            self.full.put((window, self.chunks.read(chunks, window)))

    def __iter__(self):
        windows = self.chunks.windows(self.random)
        for chunks in windows:
            self.wanted.put(chunks)
        for _ in windows:
            window, rows = self.full.get()
            yield from gather(window, rows, self.random, self.batch, lambda n: self.out[:n])
            self.free.put(window)


class Processes:
    """Each process reads and gathers windows of its own into shared memory."""

    def __init__(self, options, raw):
        self.chunks = Chunks(options.file, raw)
        self.random = np.random.default_rng(7)
        context = multiprocessing.get_context("spawn")
        self.wanted = context.Queue()
        self.full = context.Queue()
        self.shared = []
        self.free = []
        shape = (SLOTS, options.batch, *self.chunks.shape[1:])
        for number in range(options.threads):
            memory = context.RawArray("B", int(np.prod(shape)))
            free = context.Queue()
            for slot in range(SLOTS):
                free.put(slot)
            self.shared.append(np.frombuffer(memory, np.uint8).reshape(shape))
            self.free.append(free)
            context.Process(target=work_on_windows, daemon=True,
                            args=(options.file, raw, shape, number, memory, self.wanted, self.full,
                                  free)).start()

    def __iter__(self):
        windows = self.chunks.windows(self.random)
        for chunks in windows:
            self.wanted.put(chunks)
        left = self.chunks.shape[0]
        while left > 0:
            number, slot, rows = self.full.get()
            yield self.shared[number][slot, :len(rows)], rows
            self.free[number].put(slot)
            left -= len(rows)


def work_on_windows(path, raw, shape, number, memory, wanted, full, free):
    chunks = Chunks(path, raw)
    window = chunks.new_window()
    slots = np.frombuffer(memory, np.uint8).reshape(shape)
    random = np.random.default_rng(number)
    while True:
        rows = chunks.read(wanted.get(), window)
        taken = []

        def target(size):
            taken.append(free.get())
            return slots[taken[-1], :size]

        for _, picked in gather(window, rows, random, shape[1], target):
            full.put((number, taken[-1], picked))


def main():
    options = rounds.parse_options(__doc__)
    ways = {}
    for raw in (False, True):
        how = "read_direct_chunk" if raw else "read_direct"
        ways[f"{how}, one thread"] = functools.partial(OneThread, options, raw)
        if options.threads > 1:
            ways[f"{how}, a reading thread"] = functools.partial(ReadingThread, options, raw)
            ways[f"{how}, {options.threads} processes"] = functools.partial(Processes, options, raw)
    rounds.compete("whole chunks + NumPy", {"h5py": h5py.__version__,
                                            "hdf5": h5py.version.hdf5_version},
                   {"window_bytes": WINDOW_BYTES, "batch": options.batch, "rdcc_nbytes": 0},
                   ways, options)


if __name__ == "__main__":
    main()
