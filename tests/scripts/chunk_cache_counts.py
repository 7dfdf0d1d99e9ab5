"""What libhdf5 of any version asks of a file: tests/golden/chunk_cache/counts.json.

    python3 chunk_cache_counts.py make DIR CASES.json NUMBER SEED   # random files and reads, with h5py
    python3 chunk_cache_counts.py count DIR CASES.json              # adds what the libhdf5 of this h5py does
    python3 chunk_cache_counts.py compare DIR CASES.json NUMBER SEED

"make" once, then "count" with an h5py of each version of libhdf5. The unit tests of the simulated chunk
cache compare with the numbers, so that versions which are not installed are compared, too. They also "compare" with
new cases each time.
"""

import bisect
import io
import json
import os
import random
import sys

import h5py
import numpy


class CountingFile(io.FileIO):
    """A file for h5py's fileobj driver that notes what is read."""

    def __init__(self, path):
        super().__init__(path)
        self.reads = []

    def readinto(self, buffer):
        self.reads.append((self.tell(), len(buffer)))
        return super().readinto(buffer)


def random_box(rng, shape, first_count):
    """`first_count`: of the first axis, any if 0."""
    count = [size if axis > 0 and rng.random() < 0.3 else rng.randint(1, size) for axis, size in enumerate(shape)]
    count[0] = first_count or count[0]
    return [rng.randint(0, size - wanted) for size, wanted in zip(shape, count)] + count


def random_reads(rng, shape, chunk, most):
    """The name of an order, and boxes in it: where each begins, and its size."""
    n = shape[0]

    def rows(numbers, length=1):
        return [[row, *[0] * (len(shape) - 1), min(length, n - row), *shape[1:]] for row in numbers]

    def shuffled(numbers):
        return rng.sample(numbers, len(numbers))

    order = rng.choice(["sequential", "random", "chunk shuffled", "repeated", "strided", "parts of rows", "several rows",
                        "boxes"])
    if order == "sequential":
        reads = rows(range(n))
    elif order == "random":
        reads = rows(2 * shuffled(range(n)))
    elif order == "chunk shuffled":
        groups, window, reads = shuffled(range(0, n, chunk[0])), rng.randint(1, 6), []
        for first in range(0, len(groups), window):
            mixed = [row for group in groups[first:first + window] for row in range(group, min(n, group + chunk[0]))]
            reads += rows(shuffled(mixed))
    elif order == "repeated":
        few = rng.sample(range(n), rng.randint(1, min(n, 6)))
        reads = rows(rng.choices(few, k=most))
    elif order == "strided":
        stride = rng.randint(1, n)
        reads = rows(row for start in range(stride) for row in range(start, n, stride))
    elif order == "several rows":
        reads = [box for _ in range(most) for box in rows([rng.randrange(n)], rng.randint(1, 2 * chunk[0]))]
    else:
        reads = [random_box(rng, shape, 1 if order == "parts of rows" else 0) for _ in range(most)]
    # Some begin in the middle of what they go through, and end early.
    first = rng.randint(0, max(0, len(reads) - most))
    return order, reads[first:first + most]


def random_case(rng):
    rank, resizable = rng.randint(1, 4), rng.random() < 0.2
    shape, chunk = [], []
    for axis in range(rank):
        size = rng.randint(1, 50) if axis == 0 else rng.randint(1, 9)
        shape.append(size)
        larger = resizable and rng.random() < 0.25  # than the dataset
        chunk.append(rng.randint(size, 2 * size) if larger else
                     size if axis > 0 and rng.random() < 0.5 else rng.randint(1, size))
    element_bytes = rng.choice([1, 2, 4, 8])
    chunk_bytes = element_bytes * int(numpy.prod(chunk))
    chunks = int(numpy.prod([-(-n // k) for n, k in zip(shape, chunk)]))
    order, reads = random_reads(rng, shape, chunk, rng.randint(10, 100))
    return {
        "shape": shape,
        "chunk": chunk,
        "resizable": resizable,
        "element_bytes": element_bytes,
        "filter": rng.choice(["none", "none", "deflate", "shuffle+deflate", "fletcher32"]),
        "rdcc_nslots": rng.choice([0, 1, 2, 3, 7, 16, 101, 521, 521, 11213, rng.randint(1, 2 * chunks + 1),
                                   rng.randint(1, chunks), rng.randint(1, chunks)]),
        "rdcc_nbytes": rng.choice([0, 1, chunk_bytes - 1, chunk_bytes, 2 * chunk_bytes, 3 * chunk_bytes + 1, 1 << 20,
                                   rng.randint(0, chunks * chunk_bytes), rng.randint(chunk_bytes, 6 * chunk_bytes),
                                   *(rng.randint(chunk_bytes, 20 * chunk_bytes) for _ in range(2))]),
        "rdcc_w0": rng.choice([0.0, 0.25, 0.5, 0.75, 0.75, 1.0, 1.0, rng.randint(0, 1000) / 1000]),
        "order": order,
        "reads": reads,
        "counts": {},
    }


def chunk_places(dataset):
    """Offset and stored bytes of each chunk, row-major."""
    counts = [-(-n // k) for n, k in zip(dataset.shape, dataset.chunks)]
    places = []
    for position in numpy.ndindex(*counts):
        origin = tuple(p * k for p, k in zip(position, dataset.chunks))
        info = dataset.id.get_chunk_info_by_coord(origin)
        places.append((info.byte_offset, info.size))
    return places


def make(folder, path, cases, seed):
    rng = random.Random(seed)
    made = []
    for i in range(cases):
        case = random_case(rng)
        name = case["filter"]
        with h5py.File(os.path.join(folder, f"{i}.h5"), "w", libver=rng.choice(["earliest", "latest"])) as file:
            # Of few bits, so that filters make chunks of different sizes.
            values = numpy.random.default_rng(rng.getrandbits(64)).integers(0, 4, case["shape"])
            dataset = file.create_dataset(
                "images", data=values.astype(f"u{case['element_bytes']}"), chunks=tuple(case["chunk"]),
                maxshape=(None,) * values.ndim if case["resizable"] else None, shuffle=name.startswith("shuffle"),
                compression="gzip" if name.endswith("deflate") else None, fletcher32=name == "fletcher32")
            if name != "none":
                case["stored_bytes"] = [size for _, size in chunk_places(dataset)]
        made.append(case)
    write(path, made)


def counts_of(case, path):
    """After each read: requests, their bytes, and how many of them were for a whole chunk."""
    counted = CountingFile(path)
    found = []
    with h5py.File(counted, "r", rdcc_nslots=case["rdcc_nslots"], rdcc_nbytes=case["rdcc_nbytes"],
                   rdcc_w0=case["rdcc_w0"]) as file:
        dataset = file["images"]
        rank = len(case["shape"])
        places = sorted(chunk_places(dataset))
        begins = [begin for begin, _ in places]
        requests = total = whole = 0
        for box in case["reads"]:
            first, size = tuple(box[:rank]), tuple(box[rank:])
            space = dataset.id.get_space()
            space.select_hyperslab(first, size)
            counted.reads.clear()
            dataset.id.read(h5py.h5s.create_simple(size), space, numpy.empty(size, dataset.dtype))
            for offset, length in counted.reads:
                begin, stored = places[max(0, bisect.bisect(begins, offset) - 1)]
                if begin <= offset < begin + stored:
                    requests, total, whole = requests + 1, total + length, whole + ((begin, stored) == (offset, length))
            found.append([requests, total, whole])
    return found


def count(folder, path):
    """For versions: what all reads together came to."""
    with open(path, encoding="utf-8") as file:
        cases = json.load(file)
    version = h5py.version.hdf5_version
    for i, case in enumerate(cases):
        case["counts"][version] = counts_of(case, os.path.join(folder, f"{i}.h5"))[-1][:2]
    write(path, cases)
    print(version, sum(case["counts"][version][0] for case in cases))


def compare(folder, path, cases, seed):
    """For one test: new cases, with what this h5py counts after each read."""
    make(folder, path, cases, seed)
    with open(path, encoding="utf-8") as file:
        made = json.load(file)
    for i, case in enumerate(made):
        case["after_each"] = counts_of(case, os.path.join(folder, f"{i}.h5"))
    write(path, made)


def write(path, cases):
    with open(path, "w", encoding="utf-8") as file:
        file.write("[\n" + ",\n".join(json.dumps(case, separators=(",", ":")) for case in cases) + "\n]\n")


if __name__ == "__main__":
    command, folder, path, *numbers = sys.argv[1:]
    {"make": make, "count": count, "compare": compare}[command](folder, path, *map(int, numbers))
