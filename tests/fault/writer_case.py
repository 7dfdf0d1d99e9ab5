"""A writer that may be killed and hindered at any call, and what it must leave.

WRITER_CHILD is the program of writer_child.cpp.
"""
import collections
import os
import re
import resource
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

import numpy as np

import under_strace
from h5_contents import assert_contents, contents

CHILD = os.environ.get("WRITER_CHILD", "writer_child")
# Calls that change what a next run finds. Between two of them a kill leaves the same as at the second.
CHANGES = {"openat", "flock", "fallocate", "ftruncate", "pwrite64", "fsync", "fdatasync", "rename", "renameat2", "link",
           "unlink"}


# ThreadSanitizer writes a file of its own, and dies of a limit of nothing.
SIZE_LIMITS = ([] if os.environ.get("CHUNKIO_SANITIZE") else [0]) + [1, 3000, 1 << 14, 1 << 20, 1100000, 1 << 21]


def joined(trace):
    """A line for each call, where it ended: a call during which another thread made one has two lines."""
    begun = {}
    for line in trace:
        thread = line.split()[0]
        resumed = re.match(r"\d+ +<\.\.\. \w+ resumed>(.*)", line)
        if line.endswith("<unfinished ...>"):
            begun[thread] = line.removesuffix("<unfinished ...>").rstrip()
        elif resumed:
            yield begun.pop(thread) + resumed[1]
        else:
            yield line


class WriterTest(unittest.TestCase):
    PLANNED, ROWS = 26, 26
    SAMPLE, OPTIONS = (6, 5, 3), ()

    def setUp(self):
        self.dir = Path(tempfile.mkdtemp(prefix="chunkio-test-"))
        self.addCleanup(shutil.rmtree, self.dir)
        self.out = self.dir / "out" / "file.h5"
        self.clear()
        reference = self.dir / "reference.h5"
        self.assertEqual(self.run_child("force", out=reference).returncode, 0)
        self.reference = contents(reference)
        self.check_reference()

    def check_reference(self):
        """What all others are compared with is right itself."""
        count = self.ROWS * int(np.prod(self.SAMPLE))
        pixels = (np.arange(count) % 251).astype(np.uint8).tobytes()
        self.assertEqual(self.reference["images"], ("uint8", (self.ROWS, *self.SAMPLE), (4, *self.SAMPLE), pixels))
        rows = np.arange(self.ROWS)
        self.assertEqual(self.reference["labels"][3], (rows % 3).tobytes())
        self.assertEqual(self.reference["further/ids"][3], (rows * 2 % 3).tobytes())

    def clear(self):
        shutil.rmtree(self.out.parent, ignore_errors=True)
        self.out.parent.mkdir()

    def names(self):
        return sorted(path.name for path in self.out.parent.iterdir())

    def run_child(self, *arguments, out=None, before=(), **options):
        return subprocess.run([*before, CHILD, out or self.out, str(self.PLANNED), str(self.ROWS), *self.OPTIONS,
                               *arguments], capture_output=True, text=True, timeout=60, **options)

    def run_traced(self, injection, *arguments, everything=False, options=()):
        """The child under strace; `injection` as strace wants it. Returns the run and its trace."""
        trace = self.dir / "trace.txt"
        paths = [self.out, f"{self.out}.partial", f"{self.out}.partial.journal", self.out.parent]
        filters = [] if everything else [part for path in paths for part in ("-P", path)]
        inject = ["-e", f"inject={injection}"] if injection else []
        run = self.run_child(*arguments, before=["strace", "-f", "-o", trace, *options, *filters, *inject],
                             env=under_strace.environment())
        return run, list(joined(trace.read_text().splitlines()))

    @staticmethod
    def has_fired(trace):
        """Whether what was injected came to pass: else the run shows nothing."""
        return any("(INJECTED)" in line or "killed by SIGKILL" in line for line in trace)

    def assert_fired(self, trace):
        self.assertTrue(self.has_fired(trace), trace[-3:])

    def run_with_file_size_limit(self, size):
        """A run that may fail well, and then leaves nothing."""
        self.clear()
        run = self.run_child(preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size)))
        if run.returncode != 0:
            self.assert_failed_well(run)
            self.assertIn("no_space", run.stderr)
            self.assertEqual(self.names(), [])
        self.assert_absent_or_perfect()
        return run

    def calls(self, *arguments, everything=False):
        """(name, which of that name, result) for each call of an undisturbed run that touches its files.

        Injections are counted by thread and name; those of other threads than the first are left out.
        """
        run, trace = self.run_traced("", *arguments, everything=everything)
        self.assertEqual(run.returncode, 0, run.stderr)
        first, counts, found = trace[0].split()[0], collections.Counter(), []
        for line in trace:
            call = re.match(r"(\d+) +(\w+)\(.* = (-?\d+)?", line)
            if call and call[1] == first:
                counts[call[2]] += 1
                found.append((call[2], counts[call[2]], call[3]))
        return found

    def assert_perfect(self):
        assert_contents(self, self.out, self.reference)

    def assert_absent_or_perfect(self):
        if self.out.exists():
            self.assert_perfect()

    def assert_failed_well(self, run):
        self.assertEqual(run.returncode, 1, run.stderr)
        self.assertRegex(run.stderr, r"\A\w+: [^\n]+\n\Z")

    def assert_resumes(self, earlier, *arguments):
        """Another run makes it good, and writes nothing again that `earlier` had committed."""
        acknowledged = earlier.stdout.count("wrote ") // 2 * 2 + earlier.stdout.count("resumed ")
        published = self.out.exists()
        run = self.run_child("resume", *arguments)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(run.stderr, "")
        if not published:
            self.assertGreaterEqual(run.stdout.count("resumed "), acknowledged)
        self.assert_perfect()
        self.assertEqual(self.names(), ["file.h5"])

    def leave(self, injection):
        """A run that is killed there, in a fresh folder. Returns it."""
        self.clear()
        name, when = injection.split(":")
        run, _ = self.run_traced(f"{name}:signal=KILL:{when}")
        self.assertEqual(run.returncode, -9)
        return run

    def killed_at(self, calls, *arguments, prepare=None, everything=False):
        """Kills a run at each of `calls`. Returns how many runs left OUT complete."""
        complete = 0
        for name, number, _ in calls:
            with self.subTest(call=name, number=number):
                if prepare:
                    prepare()
                else:
                    self.clear()
                run, trace = self.run_traced(f"{name}:signal=KILL:when={number}", *arguments, everything=everything)
                if name == "futex" and run.returncode == 0:  # Threads wait for each other now and then.
                    self.assert_perfect()
                    continue
                self.assertEqual(run.returncode, -9, trace[-1])
                self.assert_absent_or_perfect()
                complete += self.out.exists()
                self.assert_resumes(run)
        return complete

    def lied_to(self, after_a_failure):
        """Each write, in turn, is said to be done and is not: noticed, or without effect. Returns how many were not."""
        unnoticed = 0
        for name, number, result in self.calls():
            if name != "pwrite64":
                continue
            with self.subTest(number=number):
                self.clear()
                run, _ = self.run_traced(f"pwrite64:retval={result}:when={number}")
                if run.returncode == 0:
                    unnoticed += 1
                    self.assert_perfect()
                else:
                    self.assert_failed_well(run)
                    after_a_failure()
        return unnoticed


def changes(calls):
    return [call for call in calls if call[0] in CHANGES]
