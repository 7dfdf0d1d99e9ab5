"""chunkbench confine: any program under a limit of the kernel, or a clear refusal where there is none."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest

from support import CliTest

CHUNKBENCH = os.environ["CHUNKBENCH"]
MEBIBYTE = 1 << 20
READ_COLD = """
import os, sys, time
file = os.open(sys.argv[1], os.O_RDONLY)
os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
start = time.monotonic()
while os.read(file, 1 << 20):
    pass
print(time.monotonic() - start)
"""


class ConfineTest(CliTest):
    def confine(self, *arguments):
        return subprocess.run([CHUNKBENCH, "confine", *map(str, arguments)], cwd=self.dir, text=True, capture_output=True,
                              timeout=120)

    def need_groups(self, *options):
        """Where there are no control groups, nothing is run, and one line says why."""
        result = self.confine(*options, "--", "touch", "ran")
        if result.returncode == 0:
            self.assertTrue((self.dir / "ran").exists())
            return
        self.assert_one_line(result, 1, "'touch' was not run")
        self.assertFalse((self.dir / "ran").exists())
        self.skipTest(result.stderr)

    def test_arguments_and_exit_code_are_those_of_the_program(self):
        self.need_groups("--memory-limit", "1GiB")
        arguments = ["-x", "--memory-limit", "[1,2]", "", "report", "--", "--help"]
        show = "import json, sys; print(json.dumps(sys.argv[1:])); sys.exit(42)"
        result = self.confine("--memory-limit", "1GiB", "--", sys.executable, "-c", show, *arguments)
        self.assertEqual((result.returncode, result.stderr), (42, ""))
        self.assertEqual(json.loads(result.stdout), arguments)
        # As a shell starts it: who writes to a closed pipe ends.
        status = self.confine("--memory-limit", "1GiB", "--", "grep", "SigIgn", "/proc/self/status").stdout
        self.assertEqual(int(status.split()[1], 16) & 1 << (signal.SIGPIPE - 1), 0)
        (self.dir / "no program").write_text("text")
        self.assertEqual(self.confine("--memory-limit", "1GiB", "--", "./absent").returncode, 127)
        result = self.confine("--memory-limit", "1GiB", "--", "./no program")
        self.assertEqual(result.returncode, 126)
        self.assertIn("./no program", result.stderr)

    def test_memory_is_limited(self):
        self.need_groups("--memory-limit", "64MiB")
        allocate = "import mmap, sys; mmap.mmap(-1, int(sys.argv[1])).write(bytes(int(sys.argv[1])))"
        self.assertEqual(self.confine("--memory-limit", "64MiB", "--", sys.executable, "-c", allocate, 4096).returncode, 0)
        with open("/proc/swaps", encoding="utf-8") as swaps:
            if len(swaps.readlines()) > 1:
                self.skipTest("what is too much may go to swap")
        result = self.confine("--memory-limit", "64MiB", "--", sys.executable, "-c", allocate, 256 * MEBIBYTE)
        self.assertEqual(result.returncode, 128 + signal.SIGKILL)

    def test_a_throttled_disk_is_slow_for_any_program(self):
        self.need_groups("--throttle-device", "4MB/s")
        path = self.dir / "file"
        path.write_bytes(os.urandom(12 * MEBIBYTE))
        with open(path, "rb") as file:
            os.fsync(file.fileno())
        result = self.confine("--throttle-device", "4MB/s", "--disk-of", path, "--", sys.executable, "-c", READ_COLD, path)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("4000000 bytes a second", result.stderr)
        # Three seconds, less what the kernel lets through at once in the beginning.
        self.assertGreater(float(result.stdout), 1.5)

    def test_wrong_usage(self):
        for arguments, part in ((("--", "true"), "--throttle-device"),
                                (("--memory-limit", "1GiB"), "name the program"),
                                (("--memory-limit", "1GiB", "--"), "name the program"),
                                (("--memory-limit", "1GiB", "--fast", "--", "true"), "--fast"),
                                (("--memory-limit", "1GiB", "true"), "true"),
                                (("--throttle-device", "0", "--", "true"), "--throttle-device"),
                                (("--throttle-device", "quick", "--", "true"), "quick")):
            with self.subTest(arguments=arguments):
                self.assert_one_line(self.confine(*arguments), 2, part)
        self.assert_one_line(self.confine("--throttle-device", "1MB/s", "--disk-of", "absent", "--", "true"), 1, "absent")


class ColdPeersTest(unittest.TestCase):
    """`--cold` of the readers in bench/peers."""

    def test_what_stays_in_the_page_cache_is_no_cold_figure(self):
        sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench/peers"))
        import rounds
        with tempfile.NamedTemporaryFile(dir="/dev/shm") as file:
            file.write(bytes(MEBIBYTE))
            file.flush()
            with self.assertRaisesRegex(SystemExit, "100% stays"):
                rounds.timed(lambda: 0, [file.name])
            self.assertEqual(rounds.timed(lambda: 5)[0], 5)
