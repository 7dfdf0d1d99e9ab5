"""Random images, other ones each time, decoded, cut and resized, compared with what Pillow makes of them.

DECODE_CASES names tests/programs/decode_cases.cpp. DECODE_SEED repeats a run, and DECODE_COUNT is how many it has.
"""

import json
import os
import pathlib
import random
import subprocess
import tempfile
import unittest

import numpy as np
from epoch_order_reference import box_of, lo_hi, philox, stream_key
from PIL import Image
from resize_reference import resized_channels

# How stored pixels are turned to stand upright, by EXIF orientation.
TURNS = {
    2: Image.FLIP_LEFT_RIGHT, 3: Image.ROTATE_180, 4: Image.FLIP_TOP_BOTTOM, 5: Image.TRANSPOSE, 6: Image.ROTATE_270,
    7: Image.TRANSVERSE, 8: Image.ROTATE_90,
}
RANGES = [round(0.08 * 2**32), 2**32, round(3 / 4 * 2**24), int(4 / 3 * 2**24 + 0.5)]


def picture(rng, most=150):
    """Smooth colours with some noise, so that chroma differs from pixel to pixel."""
    height, width = rng.randrange(1, most), rng.randrange(1, most)
    noise = np.random.default_rng(rng.randrange(2**32))
    y, x = np.mgrid[:height, :width]
    waves = [np.sin(x / noise.uniform(2, 30) + y / noise.uniform(2, 30)) for _ in range(3)]
    pixels = 127 + 100 * np.stack(waves, -1) + noise.normal(0, noise.uniform(0, 40), (height, width, 3))
    return Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8))


def write(rng, path):
    image = picture(rng)
    kind = rng.choice(["jpeg", "jpeg", "jpeg", "png", "webp"])
    if kind == "jpeg":
        image = image.convert(rng.choice(["RGB", "RGB", "RGB", "L", "CMYK"]))
        image.save(path, "JPEG", quality=rng.randrange(20, 98), subsampling=rng.choice([0, 1, 2]),
                   progressive=rng.random() < 0.3)
    elif kind == "png":
        image = image.convert(rng.choice(["RGB", "L", "RGBA", "LA", "P", "1"]))
        image.save(path, "PNG")
    else:
        image.save(path, "WEBP", lossless=rng.random() < 0.5, quality=rng.randrange(20, 98))
    return kind


def random_box(height, width, seed, epoch, sample_id):
    key = stream_key(seed, epoch, 0, 4)
    return box_of((height, width), RANGES, lambda number: philox((*lo_hi(sample_id), 0, number), key))


def sample(image, case):
    """uint8 [H,W,C] as Pillow makes it of the whole image."""
    wanted = case["decode"]
    image = image.convert("L" if wanted["gray"] else "RGB")
    if case["orientation"] > 1:
        image = image.transpose(TURNS[case["orientation"]])
    size = (wanted["height"], wanted["width"])
    if wanted["crop"] == "center":
        side = (max(size) * 8 + 6) // 7
        longer = side * max(image.size) // min(image.size)
        resized = (longer, side) if image.height >= image.width else (side, longer)
        top, left = (round((whole - part) / 2) for whole, part in zip(resized, size))
        return resized_channels(np.asarray(image), resized)[top : top + size[0], left : left + size[1]]
    if wanted["crop"] == "random_resized":
        top, left, height, width = random_box(image.height, image.width, case["seed"], case["epoch"], case["sample_id"])
        image = image.crop((left, top, left + width, top + height))
    return resized_channels(np.asarray(image), size)


class EqualsPillowTest(unittest.TestCase):
    def test_random_cases(self):
        seed = int(os.environ.get("DECODE_SEED") or random.randrange(2**32))
        rng = random.Random(seed)
        with tempfile.TemporaryDirectory() as folder, subprocess.Popen(
            [os.environ["DECODE_CASES"]], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as program:
            for number in range(int(os.environ.get("DECODE_COUNT", 1500))):
                path = pathlib.Path(folder) / f"{number}"
                kind = write(rng, path)
                with Image.open(path) as opened:
                    opened.load()
                case, wanted = self.case(rng, path, opened)
                program.stdin.write(json.dumps(case).encode() + b"\n")
                program.stdin.flush()
                got = np.frombuffer(program.stdout.read(wanted.size), np.uint8)
                about = f"seed {seed}, case {number}, {kind} {opened.mode} {opened.size}: {case}"
                self.assertEqual(got.size, wanted.size, about)
                self.assertEqual(np.count_nonzero(got != wanted.ravel()), 0, about)
                path.unlink()
            program.stdin.close()
            self.assertEqual(program.wait(), 0)

    @staticmethod
    def case(rng, path, image):
        """A case, and its pixels."""
        if rng.random() < 0.5:
            height, width = rng.randrange(1, image.height + 1), rng.randrange(1, image.width + 1)
            top, left = rng.randrange(image.height - height + 1), rng.randrange(image.width - width + 1)
            channels = rng.choice([1, 3])
            pixels = np.asarray(image.convert("L" if channels == 1 else "RGB"))
            case = {"path": str(path), "box": [top, left, height, width], "channels": channels}
            return case, pixels[top : top + height, left : left + width]
        crop = rng.choice(["center", "random_resized", "whole"])
        decode = {"height": rng.randrange(1, 100), "width": rng.randrange(1, 100), "crop": crop,
                  "gray": rng.random() < 0.2, "exact": True}
        case = {"path": str(path), "decode": decode, "orientation": rng.choice([1, 1, 1, *range(2, 9)]),
                "seed": rng.randrange(2**64), "epoch": rng.randrange(1000), "sample_id": rng.randrange(2**40)}
        return case, sample(image, case)


if __name__ == "__main__":
    unittest.main()
