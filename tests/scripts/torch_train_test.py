"""The trainers with LibTorch, on the CPU and on drawn images: they learn, what they print can be read, and what they cannot do
is one line and the right exit code.

    torch_train_test.py MAKE_PICTURES H5PACK TRAIN_CIFAR TRAIN_CELEBA TRAIN_VAE ACCURACY_PY
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import numpy as np
from make_ratings import ratings
from PIL import Image

MAKE_PICTURES, H5PACK, TRAIN_CIFAR, TRAIN_CELEBA, TRAIN_VAE, ACCURACY = sys.argv[1:7]
# A GPU that there may be is left alone: these are tests of the CPU's part.
ENVIRONMENT = {**os.environ, "CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1"}

CLASS_COUNT = 600  # a fifth of them held out
ATTRIBUTE_COUNT = 260
CIFAR = ["--width", "8", "--batch", "32", "--lr", "0.4"]
CELEBA = ["--width", "8", "--batch", "16", "--lr", "0.4"]


def run(*command, code=0):
    result = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False,
                            env=ENVIRONMENT, timeout=250)
    if result.returncode != code:
        raise AssertionError(f"{command}: exit code {result.returncode} instead of {code}\n{result.stdout}\n{result.stderr}")
    return result


class TrainersTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.scratch.cleanup)
        cls.dir = pathlib.Path(cls.scratch.name)
        pictures = cls.dir / "pictures"
        run(MAKE_PICTURES, pictures, "--count", CLASS_COUNT, "--size", "32x32")
        run(H5PACK, "folder", pictures, "-o", cls.dir / "classes")
        cls.classes = [cls.dir / "classes" / "train.h5", cls.dir / "classes" / "test.h5"]

        # CelebA's own format, with attributes that are in the pixels: each holds for half of the images.
        large = cls.dir / "large"
        run(MAKE_PICTURES, large, "--count", ATTRIBUTE_COUNT, "--size", "218x178")
        celeba = cls.dir / "celeba"
        (celeba / "img_align_celeba").mkdir(parents=True)
        names = []
        for i, path in enumerate(sorted(large.glob("*/*/*.jpg"))):
            names.append(f"{i + 1:06d}.jpg")
            path.rename(celeba / "img_align_celeba" / names[-1])
        means = np.array([np.asarray(Image.open(celeba / "img_align_celeba" / name), dtype=float).mean(axis=(0, 1))
                          for name in names])
        values = np.stack([means.sum(axis=1), means[:, 0] - means[:, 2]], axis=1)
        attributes = np.where(values > np.median(values, axis=0), 1, -1)
        lines = [str(len(names)), "Bright Reddish"]
        lines += [f"{name} {a} {b}" for name, (a, b) in zip(names, attributes, strict=True)]
        (celeba / "list_attr_celeba.txt").write_text("\n".join(lines) + "\n")
        # Every fifth is held out.
        lines = [f"{name} {2 if i % 5 == 0 else 0}" for i, name in enumerate(names)]
        (celeba / "list_eval_partition.txt").write_text("\n".join(lines) + "\n")
        run(H5PACK, "celeba", celeba, "-o", cls.dir / "attributes", "--chunk-bytes", "512KiB")
        cls.attributes = [cls.dir / "attributes" / "train.h5", cls.dir / "attributes" / "test.h5"]

    def train(self, trainer, files, *options):
        """Its JSON: the epochs, and all of them. That of an epoch says what its line says (epoch_report_test.cpp)."""
        lines = self.dir / "lines.json"
        text = run(trainer, *files, "--json", lines, *options).stdout
        records = [json.loads(line) for line in lines.read_text().splitlines()]
        shown = re.findall(r"^epoch \d+: (\d+) images/s, stalled .*, GPU n/a, loss .*$", text, re.MULTILINE)
        self.assertEqual([record["kind"] for record in records], ["epoch"] * len(shown) + ["all"], text)
        for speed, record in zip(shown, records):
            self.assertAlmostEqual(record["images_per_second"], float(speed), delta=0.51)
            self.assertAlmostEqual(record["images"] / record["seconds"], float(speed), delta=0.01 * float(speed))
            self.assertAlmostEqual(record["stall_ms"] / 10 / record["seconds"], record["stall_percent"], delta=0.01)
            self.assertTrue(0 < record["stall_percent"] < 100, text)
            self.assertIsNone(record["gpu_percent"])
        return records[:-1], records[-1]

    def refuse(self, code, pattern, *command):
        result = run(*command, code=code)
        self.assertRegex(result.stderr, pattern)
        self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)

    def test_classes_are_learned(self):
        epochs, everything = self.train(TRAIN_CIFAR, self.classes, "--epochs", 8, *CIFAR)
        self.assertEqual(len(epochs), 8)
        self.assertLess(epochs[-1]["loss"], 0.7 * epochs[0]["loss"])
        # Ten classes; 120 images held out, so chance is above 0.22 one time in 50,000.
        self.assertGreater(epochs[-1]["held_out_accuracy"], 0.35)
        # The last batch is left out: it is a short one, and batch normalisation would see too little.
        self.assertEqual([epoch["images"] for epoch in epochs], [480] * 8)
        self.assertEqual(everything["images"], 480 * 7)
        self.assertEqual(everything["loader"], "host")

    def test_attributes_are_learned(self):
        epochs, _ = self.train(TRAIN_CELEBA, self.attributes, "--epochs", 4, "--no-augment", *CELEBA)
        self.assertLess(epochs[-1]["loss"], epochs[0]["loss"])
        # Each attribute holds for half of the images.
        self.assertGreater(epochs[-1]["accuracy"], 0.75)
        self.assertGreater(epochs[-1]["held_out_accuracy"], 0.7)

    def test_attributes_from_less_memory_than_the_pictures_take(self):
        # 208 images have 23 MiB.
        epochs, _ = self.train(TRAIN_CELEBA, self.attributes[:1], "--epochs", 1, "--memory-budget", "20MiB",
                               "--window-bytes", "1", "--direct-io", "--echo", 2, *CELEBA, "--batch", 8, "--threads", 1)
        self.assertEqual(epochs[0]["images"], 2 * 208)
        self.assertIsNone(epochs[0]["held_out_accuracy"])

    def test_the_naive_loader_delivers_the_same_pictures(self):
        # Without crops and flips, in the same order: the network sees the same numbers, up to their rounding.
        options = ["--epochs", 2, "--no-augment", "--seed", 5, *CIFAR]
        naive, _ = self.train(TRAIN_CIFAR, self.classes, "--loader", "naive", "--order", "random", *options)
        host, _ = self.train(TRAIN_CIFAR, self.classes, "--loader", "host", "--order", "random", *options)
        self.assertEqual(naive[0]["loader"], "naive")
        self.assertAlmostEqual(naive[0]["loss"], host[0]["loss"], delta=0.05)
        augmented, _ = self.train(TRAIN_CIFAR, self.classes, "--loader", "naive", "--epochs", 5, *CIFAR)
        self.assertLess(augmented[-1]["loss"], 0.9 * augmented[0]["loss"])

    def test_echoing_uses_every_picture_again(self):
        once, _ = self.train(TRAIN_CIFAR, self.classes[:1], "--epochs", 1, *CIFAR)
        thrice, _ = self.train(TRAIN_CIFAR, self.classes[:1], "--epochs", 1, "--echo", 3, *CIFAR)
        self.assertEqual(thrice[0]["images"], 3 * once[0]["images"])
        self.assertLess(thrice[0]["loss"], once[0]["loss"])

    def test_the_seed_decides(self):
        def loss(*options):
            return self.train(TRAIN_CIFAR, self.classes[:1], "--epochs", 1, *CIFAR, *options)[0][0]["loss"]

        self.assertAlmostEqual(loss("--seed", 3), loss("--seed", 3, "--threads", 1), delta=1e-4)
        self.assertNotAlmostEqual(loss("--seed", 3), loss("--seed", 4), delta=1e-4)

    def test_some_pictures_of_the_file(self):
        epochs, _ = self.train(TRAIN_CIFAR, self.classes, "--epochs", 2, "--limit-images", 100, "--eval", "last", *CIFAR)
        self.assertEqual([epoch["images"] for epoch in epochs], [96, 96])
        self.assertIsNone(epochs[0]["held_out_accuracy"])
        self.assertIsNotNone(epochs[1]["held_out_accuracy"])
        # Fewer than a batch.
        epochs, _ = self.train(TRAIN_CIFAR, self.classes[:1], "--epochs", 1, "--limit-images", 20, *CIFAR)
        self.assertEqual(epochs[0]["images"], 20)

    def test_items_are_recommended(self):
        output = run(TRAIN_VAE, ratings(self.dir / "users.h5ad", 6000, 1), ratings(self.dir / "others.h5ad", 300, 2)).stdout
        self.assertRegex(output, r"epoch 7: loss \S+, \d+ users/s, stall \S+ s\n")
        # Ranked by chance it is about 0.1.
        self.assertGreater(float(re.search(r"NDCG@100 (\S+) of 300 users", output)[1]), 0.45)

    def test_bad_input_is_one_line(self):
        self.refuse(1, "none.h5", TRAIN_VAE, self.dir / "none.h5")
        self.refuse(1, "no sparse matrix; h5pack csr", TRAIN_VAE, self.classes[0])
        self.refuse(2, "usage: chunkio-train-vae RATINGS", TRAIN_VAE)
        self.refuse(1, "none.h5", TRAIN_CIFAR, self.dir / "none.h5")
        self.refuse(1, "none.h5", TRAIN_CIFAR, self.classes[0], self.dir / "none.h5")
        self.refuse(1, "has no class labels.*chunkio-train-celeba", TRAIN_CIFAR, self.attributes[0])
        self.refuse(1, "has no attribute table.*chunkio-train-cifar", TRAIN_CELEBA, self.classes[0])
        self.refuse(1, "another shape", TRAIN_CIFAR, self.classes[0], self.attributes[0])
        self.refuse(1, "--loader device needs a GPU", TRAIN_CIFAR, self.classes[0], "--loader", "device")
        self.refuse(1, "--echo-buffer-batches needs --loader device", TRAIN_CIFAR, self.classes[0], "--echo-buffer-batches", 4)
        self.refuse(1, "64 pixels a side", TRAIN_CIFAR, self.classes[0], "--stem-stride", 8)
        self.refuse(1, "memory", TRAIN_CIFAR, self.classes[0], "--memory-budget", "4KiB")
        self.refuse(1, "cannot write", TRAIN_CIFAR, self.classes[0], "--json", self.dir / "none" / "x.json")
        broken = self.dir / "broken.h5"
        broken.write_bytes(self.classes[0].read_bytes()[:5000])
        self.refuse(1, "broken.h5", TRAIN_CIFAR, broken)

    def test_wrong_usage_is_one_line(self):
        """Which command lines are wrong is told by options_test.cpp."""
        self.refuse(2, "TRAIN.h5.*--help", TRAIN_CIFAR)
        self.refuse(2, "--echo: needs", TRAIN_CIFAR, "a", "--loader", "naive", "--echo", "2")
        self.assertIn("chunkio-train-celeba [OPTIONS] TRAIN.h5", run(TRAIN_CELEBA, "--help").stdout)

    def test_the_accuracy_experiment_goes_on_where_it_stopped(self):
        out = self.dir / "accuracy"
        command = [sys.executable, ACCURACY, "--trainer", TRAIN_CIFAR, "--train", f"drawn={self.classes[0]}",
                   "--test", self.classes[1], "--windows", "256KiB,1MiB", "--seeds", "2", "--out", out,
                   "--", "--epochs", "1", *CIFAR]
        first = run(*command).stdout
        self.assertEqual(len(re.findall(r"^\d/6: drawn-", first, re.MULTILINE)), 6)
        stamps = {path.name: path.stat().st_mtime_ns for path in out.glob("*.json")}
        self.assertEqual(len(stamps), 6)
        rows = re.findall(r"^\| drawn \| (\w+) \|.*\| ([+-][\d.]+) \(([+-][\d.]+) to ([+-][\d.]+)\) \| (yes|no) \|$",
                          (out / "accuracy.md").read_text(), re.MULTILINE)
        self.assertEqual([row[0] for row in rows], ["256KiB", "1MiB"])
        for _, mean, low, high, holds_zero in rows:
            self.assertTrue(float(low) <= float(mean) <= float(high))
            self.assertEqual(holds_zero == "yes", float(low) <= 0 <= float(high))
        # Again: nothing runs but the one that is gone.
        (out / "drawn-random-1.json").unlink()
        run(*command)
        again = {path.name: path.stat().st_mtime_ns for path in out.glob("*.json")}
        self.assertEqual({name for name in again if again[name] != stamps[name]}, {"drawn-random-1.json"})


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[7:], verbosity=2)
