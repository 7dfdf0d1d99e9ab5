"""Thousands of random resizes, other ones each time, compared with what the installed Pillow makes of them.

RESIZE_CASES names tests/programs/resize_cases.cpp. RESIZE_SEED repeats a run, and RESIZE_COUNT is how many it has.
"""

import json
import os
import random
import subprocess
import unittest

import numpy as np
from resize_reference import expected, random_case


class EqualsPillowTest(unittest.TestCase):
    def test_random_cases(self):
        seed = int(os.environ.get("RESIZE_SEED") or random.randrange(2**32))
        rng = random.Random(seed)
        with subprocess.Popen([os.environ["RESIZE_CASES"]], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as program:
            for number in range(int(os.environ.get("RESIZE_COUNT", 4000))):
                case = random_case(rng, most_pixels=60_000)
                wanted = expected(case)
                program.stdin.write(json.dumps(case).encode() + b"\n")
                program.stdin.flush()
                for instructions in ("the best instructions", "portable ones"):
                    got = np.frombuffer(program.stdout.read(wanted.size), np.uint8)
                    self.assertEqual(got.size, wanted.size, f"seed {seed}, case {number}: {case}")
                    different = np.flatnonzero(got != wanted.ravel())
                    self.assertEqual(len(different), 0, f"seed {seed}, case {number}, with {instructions}: {case}")
            program.stdin.close()
            self.assertEqual(program.wait(), 0)


if __name__ == "__main__":
    unittest.main()
