"""What libhdf5 of any version asks of a file: tests/golden/chunk_cache/counts.json.

    python3 chunk_cache_counts.py make DIR CASES.json     # random files and reads, with h5py
    python3 chunk_cache_counts.py count DIR CASES.json    # adds what the libhdf5 of this h5py does

"make" once, then "count" with an h5py of each version of libhdf5. The unit tests of the simulated chunk
cache compare with the numbers, so that versions which are not installed are compared, too.
"""

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


def random_case(rng):
    rank = rng.randint(1, 4)
    shape, chunk = [], []
    for axis in range(rank):
        size = rng.randint(1, 50) if axis == 0 else rng.randint(1, 9)
        shape.append(size)
        chunk.append(size if axis > 0 and rng.random() < 0.5 else rng.randint(1, size))
    element_bytes = rng.choice([1, 2, 4, 8])
    chunk_bytes = element_bytes * int(numpy.prod(chunk))
    chunks = int(numpy.prod([-(-n // k) for n, k in zip(shape, chunk)]))
    reads = []
    kind = rng.choice(["rows", "rows", "ordered", "several", "boxes"])
    for i in range(rng.randint(10, 40)):
        first, count = [0] * rank, list(shape)
        count[0] = 1
        first[0] = i % shape[0] if kind == "ordered" else rng.randrange(shape[0])
        if kind == "several":
            count[0] = rng.randint(1, shape[0] - first[0])
        if kind == "boxes":
            count = [rng.randint(1, n) for n in shape]
            first = [rng.randint(0, n - c) for n, c in zip(shape, count)]
        reads.append(first + count)
    return {
        "shape": shape,
        "chunk": chunk,
        "element_bytes": element_bytes,
        "filter": rng.choice(["none", "none", "deflate", "shuffle+deflate", "fletcher32"]),
        "rdcc_nslots": rng.choice([0, 1, 2, 5, 7, 521, 8191, rng.randint(1, 2 * chunks)]),
        "rdcc_nbytes": rng.choice([0, chunk_bytes - 1, chunk_bytes, 3 * chunk_bytes, 1 << 20,
                                   rng.randint(chunk_bytes, 10 * chunk_bytes),
                                   rng.randint(chunk_bytes, 10 * chunk_bytes)]),
        "rdcc_w0": rng.choice([0.0, 0.5, 0.75, 1.0, rng.randint(0, 100) / 100]),
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


def make(folder, path, cases):
    rng = random.Random(20261122)
    made = []
    for i in range(cases):
        case = random_case(rng)
        name = case["filter"]
        with h5py.File(os.path.join(folder, f"{i}.h5"), "w", libver=rng.choice(["earliest", "latest"])) as file:
            values = numpy.array([rng.randint(0, 3) for _ in range(int(numpy.prod(case["shape"])))])
            dataset = file.create_dataset(
                "images", data=values.reshape(case["shape"]).astype(f"u{case['element_bytes']}"),
                chunks=tuple(case["chunk"]), shuffle=name.startswith("shuffle"),
                compression="gzip" if name.endswith("deflate") else None, fletcher32=name == "fletcher32")
            if name != "none":
                case["stored_bytes"] = [size for _, size in chunk_places(dataset)]
        made.append(case)
    write(path, made)


def count(folder, path):
    with open(path, encoding="utf-8") as file:
        cases = json.load(file)
    for i, case in enumerate(cases):
        counted = CountingFile(os.path.join(folder, f"{i}.h5"))
        with h5py.File(counted, "r", rdcc_nslots=case["rdcc_nslots"], rdcc_nbytes=case["rdcc_nbytes"],
                       rdcc_w0=case["rdcc_w0"]) as file:
            dataset = file["images"]
            rank = len(case["shape"])
            places = chunk_places(dataset)
            counted.reads.clear()
            for box in case["reads"]:
                first, size = tuple(box[:rank]), tuple(box[rank:])
                space = dataset.id.get_space()
                space.select_hyperslab(first, size)
                dataset.id.read(h5py.h5s.create_simple(size), space, numpy.empty(size, dataset.dtype))
            raw = [(offset, size) for offset, size in counted.reads
                   if any(begin <= offset < begin + stored for begin, stored in places)]
            case["counts"][h5py.version.hdf5_version] = [len(raw), sum(size for _, size in raw)]
    write(path, cases)
    print(h5py.version.hdf5_version, sum(case["counts"][h5py.version.hdf5_version][0] for case in cases))


def write(path, cases):
    with open(path, "w", encoding="utf-8") as file:
        file.write("[\n" + ",\n".join(json.dumps(case, separators=(",", ":")) for case in cases) + "\n]\n")


if __name__ == "__main__":
    if sys.argv[1] == "make":
        make(sys.argv[2], sys.argv[3], int(sys.argv[4]) if len(sys.argv) > 4 else 100)
    else:
        count(sys.argv[2], sys.argv[3])
