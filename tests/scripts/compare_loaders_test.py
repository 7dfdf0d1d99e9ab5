"""bench/gpu/compare_loaders.py with programs that only pretend to train: which trainings it asks for, what it makes of their
answers, and of those that fail. No GPU is needed, and no LibTorch."""

import json
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

COMPARE = pathlib.Path(__file__).parents[2] / "bench/gpu/compare_loaders.py"

# Takes what a trainer takes, appends its command line to a file beside it, and writes JSON as a trainer does: CelebA
# from the GPU stalls a third of the time without echoing.
TRAINER = '''#!{python}
import json, pathlib, sys, time
arguments = sys.argv[1:]
value = lambda name: arguments[arguments.index(name) + 1] if name in arguments else None
with open(pathlib.Path(__file__).parent / "log", "a") as log:
    log.write(pathlib.Path(__file__).name + " " + " ".join(arguments) + "\\n")
if {broken!r} and value("--loader") == {broken!r}:
    sys.exit("chunkio-train: the GPU is on fire")
if {hanging!r} and value("--loader") == {hanging!r}:
    time.sleep(600)
if not all(pathlib.Path(path).exists() for path in arguments[:2]):
    sys.exit("no files")
epochs, loader = int(value("--epochs")), value("--loader")
stall = 33.3 if "celeba" in __file__ and loader == "device" and not value("--echo") else 0.1
speed = {{"device": 1000, "host": 100, "naive": 10}}[loader]
line = {{"images_per_second": speed, "stall_percent": stall, "gpu_percent": 99.5 if loader == "device" else 20.0, "loss": 0.5,
        "accuracy": 0.9, "held_out_accuracy": 0.75, "echo_needed": None}}
with open(value("--json"), "w") as out:
    for epoch in range(epochs):
        # The first is slow, and counts nowhere.
        out.write(json.dumps({{**line, "kind": "epoch", "images_per_second": 1 if epoch == 0 else speed + epoch}}) + "\\n")
    out.write(json.dumps({{**line, "kind": "all", "echo_needed": 2 if stall > 1 else 1}}) + "\\n")
'''
FILES = '''#!{python}
import pathlib, sys
pathlib.Path(sys.argv[2]).write_text("pictures")
'''


class CompareLoadersTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.dir = pathlib.Path(scratch.name)

    def start(self, *options, broken=None, hanging=None):
        build = self.dir / "build"
        programs = {"samples/torch/chunkio-train-cifar": TRAINER, "samples/torch/chunkio-train-celeba": TRAINER,
                    "bench/gpu/training_files": FILES}
        for name, text in programs.items():
            path = build / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text.format(python=sys.executable, broken=broken, hanging=hanging))
            path.chmod(0o755)
        return subprocess.Popen(
            [sys.executable, COMPARE, "--build", build, "--dir", self.dir / "files", "--markdown", self.dir / "out.md",
             "--json", self.dir / "out.json", *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def end(self, process, code):
        """(rows of its table, the command lines of the trainers, what is left in its folder)."""
        output, errors = process.communicate(timeout=60)
        self.assertEqual(process.returncode, code, output + errors)
        rows = [[cell.strip() for cell in line.strip("|").split("|")]
                for line in (self.dir / "out.md").read_text().splitlines() if line.startswith("| train_")]
        return rows, self.log(), list((self.dir / "files").iterdir())

    def log(self):
        log = self.dir / "build" / "samples" / "torch" / "log"
        return log.read_text().splitlines() if log.exists() else []

    def compare(self, *options, broken=None, code=0):
        return self.end(self.start(*options, broken=broken), code)

    def test_the_table(self):
        rows, commands, left = self.compare()
        self.assertEqual(
            [row[:2] for row in rows],
            [["train_cifar", "device, resident"], ["train_cifar", "device, from the host"], ["train_cifar", "naive"],
             ["train_cifar", "host"], ["train_celeba", "device"], ["train_celeba", "device, --echo 2 as it advises"],
             ["train_celeba", "naive"], ["train_celeba", "host"]])
        # Without the first epoch; against the naive loader's 11.
        self.assertEqual(rows[0][2:4], ["1,006 (1,001 to 1,011)", "91.5"])
        self.assertEqual(rows[2][2:4], ["11 (11 to 11)", "1.0"])
        self.assertRegex(rows[0][-1], "^met: ")
        # Of the two, the target is that of the training with the echo factor.
        self.assertEqual(rows[4][-1], "")
        self.assertRegex(rows[5][-1], "^met: ")
        self.assertEqual(rows[7][-1], "")
        self.assertEqual(left, [])
        self.assertEqual(len(json.loads((self.dir / "out.json").read_text())), 8)
        self.assertEqual(sum("--resident off" in command for command in commands), 5)
        budgets = {match[1] for command in commands if (match := re.search(r"--memory-budget (\d+)", command))}
        self.assertEqual(budgets, {str(20_000 * 218 * 178 * 3 // 4)})

    def test_a_training_that_fails(self):
        rows, _, left = self.compare(broken="device", code=1)
        self.assertEqual([row[-1] for row in rows if row[1].startswith("device")],
                         ["FAILED: chunkio-train: the GPU is on fire"] * 3)
        self.assertEqual(rows[2][2:4], ["11 (11 to 11)", "1.0"])
        self.assertEqual(left, [])

    def test_a_time_limit_from_outside_leaves_what_has_ended(self):
        process = self.start(hanging="naive")
        while not any("--loader naive" in command for command in self.log()):
            self.assertIsNone(process.poll())
            time.sleep(0.01)
        process.terminate()
        rows, _, left = self.end(process, 128 + signal.SIGTERM)
        self.assertEqual([row[:2] for row in rows],
                         [["train_cifar", "device, resident"], ["train_cifar", "device, from the host"],
                          ["train_celeba", "device"], ["train_celeba", "device, --echo 2 as it advises"]])
        self.assertEqual(left, [])
