"""bench/tune_check.py with programs that only pretend: what it asks the sweep for, what it makes of the answers, and of wrong
usage before hours are spent.

    tune_check_test.py TUNE_CHECK_PY
"""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

CHECK = pathlib.Path(sys.argv[1]).resolve()
MEBIBYTE = 1 << 20
# Neither among the windows nor among the numbers of threads that are always measured.
WINDOW, THREADS = 100 * MEBIBYTE + 4096, 3

TUNE = '''#!{python}
import json
print(json.dumps({{"advice": {{"chunk_samples": {samples}, "window_bytes": {window}, "num_threads": {threads},
                           "first_epoch": {{"images_per_second": 900.0}}}}}}))
'''
# Cells as fast as it is told: those with the window and threads advised, and others. Command lines go to a file.
SWEEP = '''#!{python}
import itertools, json, pathlib, sys
arguments = sys.argv[1:]
value = lambda name: arguments[arguments.index(name) + 1]
with open(pathlib.Path(__file__).parent / "log", "a") as log:
    log.write(json.dumps(arguments) + "\\n")
count, *sides = map(int, value("--synthetic").split("x"))
sample = sides[0] * sides[1] * sides[2]
cells = []
numbers = lambda name: [int(text.removesuffix("B")) for text in value(name).split(",")]
for chunk, window, threads in itertools.product(*map(numbers, ("--chunk-bytes", "--cache-bytes", "--threads"))):
    samples = min(max(1, chunk // sample), count)
    advised = (samples, window, threads) == ({samples}, {window}, {threads})
    rate = {own} if advised else 1000.0
    cells.append({{"chunk_bytes": chunk, "chunk_samples": samples, "cache_bytes": window, "threads": threads,
                  "source": value("--sources"), "images_per_second": {{"median": rate, "min": rate, "max": rate}}}})
pathlib.Path(value("--output")).write_text(json.dumps({{"cells": cells}}))
'''


class TuneCheckTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.dir = pathlib.Path(scratch.name)
        (self.dir / "scratch").mkdir()

    def check(self, *options, own=950.0, code=0):
        """(its results if any, its standard error, the command lines of the sweeps)."""
        words = {"python": sys.executable, "samples": MEBIBYTE // (32 * 32 * 3), "window": WINDOW, "threads": THREADS,
                 "own": own}
        for name, text in {"tools/h5pack/h5pack": TUNE, "bench/chunkbench/chunkbench": SWEEP}.items():
            path = self.dir / "build" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text.format(**words))
            path.chmod(0o755)
        result = subprocess.run(
            [sys.executable, CHECK, "--build", "build", "--scratch", "scratch", "-o", "out.json", "--cpus", "8",
             "--bytes", str(64 * MEBIBYTE), *options], cwd=self.dir, capture_output=True, text=True, check=False,
            timeout=60)
        self.assertEqual(result.returncode, code, result.stdout + result.stderr)
        self.assertNotIn("Traceback", result.stderr)
        log = self.dir / "build/bench/chunkbench/log"
        commands = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
        out = self.dir / "out.json"
        return json.loads(out.read_text()) if out.exists() else None, result.stderr, commands

    def test_the_settings_advised_are_among_those_measured(self):
        results, _, commands = self.check("--cases", "0", "1", "--markdown", "out.md")
        self.assertTrue(results["complete"] and results["passed"])
        self.assertEqual([case["profile"] for case in results["cases"]], ["hdd", "sata-ssd"])
        for case in results["cases"]:
            self.assertEqual(case["tuned"]["cache_bytes"], WINDOW)
            self.assertEqual(case["tuned"]["threads"], THREADS)
            self.assertEqual(case["ratio"], 0.95)
        for command in commands:
            self.assertNotIn("--turn-images", command, "two windows, as the sweep does by itself")
            self.assertEqual(command[command.index("--threads") + 1], f"1,{THREADS},8")
        self.assertIn("2 of 2 cases: met", (self.dir / "out.md").read_text())
        self.assertEqual(list((self.dir / "scratch").iterdir()), [])

    def test_advice_that_is_not_good_enough(self):
        results, _, _ = self.check("--cases", "0", own=890.0, code=1)
        self.assertFalse(results["passed"])
        self.assertFalse(results["cases"][0]["within"])

    def test_wrong_usage_is_noticed_before_anything_is_measured(self):
        for options, part in ((("--cases", "0", "99"), "99"), (("--cases", "-1"), "-1"), (("--cases",), "--cases"),
                              (("-o", "absent/out.json"), "absent"), (("--markdown", "absent/out.md"), "absent"),
                              (("--sweeps", "absent"), "absent"), (("--scratch", "absent"), "absent"),
                              (("--build", "absent"), "absent")):
            with self.subTest(options=options):
                results, errors, commands = self.check(*options, code=2)
                self.assertIn(part, errors.splitlines()[-1])
                self.assertEqual((results, commands), (None, []))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
