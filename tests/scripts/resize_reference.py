#!/usr/bin/env python3
"""Resizes as Pillow does, and digests of what comes out: tests/golden/resize/digests.json.

    resize_reference.py --write FILE    write the digests of some hundred cases
    resize_reference.py --check FILE    fail if FILE does not hold exactly these

A case says what is resized and how; its image is made from a seed, here and in tests/support/resize_case.hpp.
Digests are CRC-32, which both sides have without another library.
"""

import json
import pathlib
import random
import sys
import zlib

import numpy as np
from PIL import Image

BILINEAR = 2  # under its name before Pillow 9.1, too
# In which Pillow began to resize columns first where that is less work.
COLUMNS_FIRST = 13
PILLOW = int(Image.__version__.partition(".")[0])


def image_of(case):
    """uint8 [H,W,C]: noise; of two values, the lowest and the highest, if the seed is odd; and of one in few cases."""
    shape, seed = case["source"], case["seed"]
    x = np.uint64(seed * 0x9E3779B97F4A7C15 % 2**64) + np.arange(np.prod(shape), dtype=np.uint64)
    x ^= x >> np.uint64(31)
    x *= np.uint64(0xBF58476D1CE4E5B9)
    x ^= x >> np.uint64(29)
    values = (x & np.uint64(0xFF)).astype(np.uint8)
    if seed % 2 == 1:
        values = np.where(values < 128, 0, 255).astype(np.uint8)
    if seed % 16 == 0:
        values[:] = 255
    return values.reshape(shape)


def columns_come_first(height, width, resized):
    return resized[0] < height and height - resized[0] > 2 * (width - resized[1])


def resized_channels(pixels, size):
    """[H,W] or [H,W,3] to `size`, (height, width): axis by axis, so that every Pillow does what version 13 does."""
    height, width = size
    image = Image.fromarray(pixels)
    steps = [(width, image.height), (width, height)]
    if columns_come_first(image.height, image.width, size):
        steps[0] = (image.width, height)
    result = image
    for step in steps:
        result = result.resize(step, BILINEAR)
    if PILLOW >= COLUMNS_FIRST:
        assert result.tobytes() == image.resize((width, height), BILINEAR).tobytes(), (image.size, size)
    return np.asarray(result)


def expected(case):
    """What Pillow makes of a case, uint8 [H,W,C]. Modes with alpha would be premultiplied, so those are planes."""
    top, left, height, width = case["box"]
    pixels = image_of(case)[top : top + height, left : left + width]
    if pixels.shape[2] == 3:
        result = resized_channels(np.ascontiguousarray(pixels), case["resized"])
    else:
        planes = [np.ascontiguousarray(pixels[:, :, c]) for c in range(pixels.shape[2])]
        result = np.stack([resized_channels(plane, case["resized"]) for plane in planes], axis=-1)
    top, left, height, width = case["window"]
    result = result[top : top + height, left : left + width]
    return np.ascontiguousarray(result[:, ::-1] if case["flipped"] else result)


def random_side(rng, largest):
    return rng.choice([rng.randint(1, 8), rng.randint(1, 100), rng.randint(1, min(largest, 600)), rng.randint(1, largest)])


def random_part(rng, height, width, chance):
    """A box within height x width, all of it but with this chance."""
    if rng.random() >= chance:
        return [0, 0, height, width]
    rows, columns = rng.randint(1, height), rng.randint(1, width)
    return [rng.randint(0, height - rows), rng.randint(0, width - columns), rows, columns]


def random_case(rng, largest=4096, most_pixels=200_000):
    """Sizes of 1 to `largest`, but no more than `most_pixels` of an image."""
    sides = [0, 0, 0, 0]
    while sides[0] * sides[1] > most_pixels or sides[2] * sides[3] > most_pixels or 0 in sides:
        sides = [random_side(rng, largest) for _ in range(4)]
    box = random_part(rng, *sides[:2], chance=0.7)
    # A side that stays is a pass that is skipped.
    resized = [box[2 + axis] if rng.random() < 0.1 else sides[2 + axis] for axis in (0, 1)]
    return {
        "source": [*sides[:2], rng.randint(1, 4)],
        "seed": rng.randrange(2**63),
        "box": box,
        "resized": resized,
        "window": random_part(rng, *resized, chance=0.3),
        "flipped": rng.random() < 0.4,
    }


def cases():
    whole = lambda height, width: [0, 0, height, width]  # noqa: E731
    # What training does, in all numbers of channels.
    for number, (source, box, size, flipped) in enumerate((
        ([375, 500], whole(375, 500), [224, 224], False),
        ([375, 500], [31, 77, 250, 333], [224, 224], True),
        ([500, 375], [31, 77, 340, 255], [224, 224], True),
        ([500, 375], [200, 100, 130, 160], [224, 224], False),
        ([28, 28], whole(28, 28), [32, 32], False),
        ([32, 32], [3, 5, 17, 23], [32, 32], True),
    )):
        for channels in (1, 2, 3, 4):
            yield {"source": [*source, channels], "seed": 1000 + 4 * number + channels, "box": box, "resized": size,
                   "window": whole(*size), "flipped": flipped}
    # Sides of 1, the largest, primes, and hardly any change.
    for number, (size, resized) in enumerate((
        ([1, 1], [1, 1]), ([1, 1], [4096, 1]), ([1, 1], [1, 4096]), ([4096, 1], [1, 1]), ([1, 4096], [1, 1]),
        ([4096, 3], [3, 4096]), ([3, 4096], [4096, 3]), ([4093, 7], [13, 11]), ([7, 4093], [11, 13]),
        ([97, 89], [89, 97]), ([101, 103], [102, 104]), ([101, 103], [100, 102]), ([300, 200], [300, 100]),
        ([300, 200], [100, 200]), ([64, 64], [32, 32]), ([64, 64], [21, 21]), ([4096, 40], [4095, 41]),
        # By which rule rows or columns come first: at, below and above it.
        ([300, 200], [200, 150]), ([300, 200], [199, 150]), ([300, 200], [201, 150]), ([300, 200], [299, 250]),
        ([300, 200], [301, 250]),
    )):
        yield {"source": [*size, 1 + number % 4], "seed": 2000 + number, "box": whole(*size), "resized": resized,
               "window": whole(*resized), "flipped": number % 3 == 0}
    rng = random.Random(12)
    for _ in range(250):
        yield random_case(rng)


def main():
    action, path = sys.argv[1], pathlib.Path(sys.argv[2])
    entries = [case | {"crc32": zlib.crc32(expected(case).tobytes())} for case in cases()]
    lines = ",\n".join(json.dumps(entry, separators=(",", ":")) for entry in entries)
    text = f"[\n{lines}\n]\n"
    if action == "--write":
        path.write_text(text)
    elif path.read_text() != text:
        sys.exit(f"{path} is not what this script makes; see --write")


if __name__ == "__main__":
    main()
