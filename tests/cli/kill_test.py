"""Packs that are killed 200 times at random, and once at every system call: resumed, each ends with the same file.

Takes half an hour. resume_test.py has the short version.
"""

import collections
import json
import os
import random
import re
import signal
import subprocess
import time
import unittest

import under_strace
from h5_contents import assert_contents, contents
from support import CliTest, H5PACK, SKIPPED, TIMEOUT_SECONDS, make_photos_with_bad_names

SEED = int(os.environ.get("CHUNKIO_TEST_SEED") or time.time_ns() % 2**32)
KILLS = 200


class KillTest(CliTest):
    def reference_of(self, pack):
        result = self.run_h5pack(*pack, "-o", "reference.h5", "--force")
        self.assertEqual(result.returncode, SKIPPED, result.stderr)
        return contents(self.dir / "reference.h5")

    def assert_resumes(self, pack, reference):
        """OUT is complete, or another run makes it so. Returns how many images that run found packed."""
        if (self.dir / "out.h5").exists():
            assert_contents(self, self.dir / "out.h5", reference)
        result = self.run_h5pack(*pack, "-o", "out.h5", "--resume", "--json")
        self.assertIn(result.returncode, (0, SKIPPED), result.stderr)
        assert_contents(self, self.dir / "out.h5", reference)
        self.assert_only_output()
        return json.loads(result.stdout)["outputs"][0].get("resumed_images", 0)

    def test_killed_at_random_moments(self):
        print(f"CHUNKIO_TEST_SEED={SEED}")
        chance = random.Random(SEED)
        make_photos_with_bad_names(self.dir, 10, 30, (64, 48))
        kills, resumed, published = 0, 0, 0
        while kills < KILLS:
            pack = ["folder", "photos", "--on-error", "skip", "--quiet", "--chunk", chance.choice((1, 3, 7, 64)),
                    "--seed", chance.randrange(1000), "--order", chance.choice(("source", "shuffled")),
                    "--out-layout", chance.choice(("nhwc", "nchw")), *chance.choice(([], ["--resize", "200x300"]))]
            began = time.monotonic()
            reference = self.reference_of(pack)
            usual = time.monotonic() - began
            for _ in range(10):
                (self.dir / "out.h5").unlink(missing_ok=True)
                process = subprocess.Popen(
                    [H5PACK, *map(str, pack), "-o", "out.h5", "--threads", str(chance.choice((1, 2, 5)))],
                    cwd=self.dir, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                time.sleep(chance.uniform(0, usual))
                process.kill()
                kills += process.wait(TIMEOUT_SECONDS) == -signal.SIGKILL
                published += (self.dir / "out.h5").exists()
                resumed += self.assert_resumes(pack, reference) > 0
        self.assertGreater(resumed, KILLS // 10)
        self.assertLess(published, kills)

    @under_strace.required
    def test_killed_at_every_call(self):
        make_photos_with_bad_names(self.dir, 10, 0, (64, 48))
        (self.dir / "photos" / "cat" / "bad.jpg").write_bytes(b"no image")
        pack = ["folder", "photos", "--on-error", "skip", "--quiet", "--chunk", 3]
        reference = self.reference_of(pack)

        traced = [*pack, "-o", "out.h5", "--threads", 2]
        result, trace = self.traced([], *traced)
        self.assertEqual(result.returncode, SKIPPED)
        lines = trace.splitlines()
        # Calls are counted by thread and name, and the first thread to come so far is the one that is killed. Before
        # the output is first named there are only libraries.
        begin = next(i for i, line in enumerate(lines) if '"out.h5' in line)
        counts, seen = collections.Counter(), {}
        for i, line in enumerate(lines):
            call = re.match(r"(\d+) +(\w+)\(", line)
            # Threads that wait for each other call two of these any number of times.
            if call and call[2] not in ("exit_group", "sched_yield", "futex"):
                counts[call[1], call[2]] += 1
                if i >= begin:
                    seen[call[2], counts[call[1], call[2]]] = None
        self.assertGreater(len(seen), 200)
        killed = 0
        for name, number in seen:
            with self.subTest(call=name, number=number):
                for path in self.dir.glob("out.h5*"):
                    path.unlink()
                result, _ = self.traced(["-e", f"inject={name}:signal=KILL:when={number}"], *traced)
                # With two threads not every run gets as far as the first one in each call.
                self.assertIn(result.returncode, (-signal.SIGKILL, SKIPPED))
                killed += result.returncode == -signal.SIGKILL
                self.assert_resumes(pack, reference)
        self.assertGreater(killed, 0.8 * len(seen))


if __name__ == "__main__":
    unittest.main()
