"""A pack that is killed once at every system call: resumed, each run ends with the same file.

Takes half an hour. interrupted_test.py kills at random.
"""

import collections
import re
import signal

import under_strace
from h5_contents import assert_contents, contents
from support import SKIPPED, CliTest, make_photos_with_bad_names


class KillTest(CliTest):
    def setUp(self):
        super().setUp()
        make_photos_with_bad_names(self.dir, 10, 0, (64, 48))
        (self.dir / "photos" / "cat" / "bad.jpg").write_bytes(b"no image")

    @under_strace.required
    def test_killed_at_every_call(self):
        self.killed_at_every_call("--chunk", 3)

    @under_strace.required
    def test_a_pack_of_encoded_images(self):
        self.killed_at_every_call("--store", "encoded", "--max-side", 50)

    def killed_at_every_call(self, *options):
        pack = ["folder", "photos", "--on-error", "skip", "--quiet", *options]
        self.h5pack_json(*pack, "-o", "reference.h5", code=SKIPPED)
        reference = contents(self.dir / "reference.h5")

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
                if (self.dir / "out.h5").exists():
                    assert_contents(self, self.dir / "out.h5", reference)
                result = self.run_h5pack(*pack, "-o", "out.h5", "--resume")
                self.assertIn(result.returncode, (0, SKIPPED), result.stderr)
                assert_contents(self, self.dir / "out.h5", reference)
                self.assert_only_output()
        self.assertGreater(killed, 0.8 * len(seen))
