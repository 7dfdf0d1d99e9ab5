"""Kills and hinders a writer at every call, and looks at what it leaves.

Whatever happens to the program of writer_child.cpp, OUT is absent or as it was, or perfect;
running it again with `resume` ends with the file of an undisturbed run, and what was committed is not written again.
The class EveryCallTest takes long: it runs only when named, as in `python3 -m unittest write_faults_test.EveryCallTest`.
"""
import collections
import os
import re
import shutil
import signal
import subprocess
import unittest
from pathlib import Path

import h5py
import numpy as np

import under_strace
from h5_contents import contents
from writer_case import CHANGES, CHILD, SIZE_LIMITS, WriterTest, changes


@under_strace.required
class WriteFaultsTest(WriterTest):
    def test_killed_at_every_change(self):
        calls = changes(self.calls())
        self.assertGreater(len(calls), 40)
        complete = self.killed_at(calls)
        self.assertTrue(0 < complete < 5, "only after the file got its name")

    def test_every_fsync_counts(self):
        """An error of fsync or fdatasync that is ignored fails here."""
        calls = [call for call in self.calls() if call[0] in ("fsync", "fdatasync")]
        self.assertGreater(len(calls), 8)
        for name, number, _ in calls:
            with self.subTest(call=name, number=number):
                self.clear()
                run, trace = self.run_traced(f"{name}:error=EIO:when={number}")
                self.assert_failed_well(run)
                after = [line for line in trace if "(INJECTED)" in line][0]
                later = trace[trace.index(after) + 1:]
                file = re.search(r"sync\((\d+)\)", after)[1]
                self.assertFalse([line for line in later if re.search(rf"sync\({file}\)", line)], "it was tried again")
                if self.out.exists():
                    self.assertIn("the folder", run.stderr)
                self.assert_absent_or_perfect()
                self.assert_resumes(run)

    def test_a_full_disk_is_noticed_wherever_it_is_met(self):
        self.hindered([call for call in self.calls() if call[0] in ("pwrite64", "fallocate", "ftruncate")], "ENOSPC")

    def test_nothing_is_claimed_before_it_is_on_disk(self):
        """What a power cut needs, in the order of calls: a kill does not show a sync that is missing."""
        run, trace = self.run_traced("", everything=True, options=["-y"])
        self.assertEqual(run.returncode, 0, run.stderr)
        names = {".partial.journal>": "journal", ".partial>": "partial", "/out>": "folder"}
        unsynced, seen = set(), collections.Counter()
        for line in trace:
            call = re.match(r"\d+ +(\w+)\((?:\d+<([^>]*>))?", line)
            if not call or "= -1" in line:
                continue
            file = next((name for end, name in names.items() if call[2] and call[2].endswith(end)), None)
            seen[call[1], file] += 1
            if call[1] in ("pwrite64", "ftruncate") and file == "journal":
                self.assertNotIn("partial", unsynced, "a record of what is not on disk")
                unsynced.add(file)
            elif call[1] in ("pwrite64", "ftruncate") and file == "partial":
                self.assertNotIn("journal", unsynced, "changes of what is not saved yet, or of a lost group")
                unsynced.add(file)
            elif call[1] in ("fsync", "fdatasync") and file:
                unsynced.discard(file)
            elif call[1] == "openat" and "O_CREAT" in line and str(self.out) in line:
                unsynced.add("folder")
            elif call[1] == "write" and '"wrote' in line:
                self.assertNotIn("folder", unsynced, "chunks of a file whose name may be lost")
            elif call[1] == "renameat2":
                self.assertFalse(unsynced, "a file of this name that is not on disk")
                unsynced.add("folder")
            elif call[1] == "unlink":
                self.assertFalse(unsynced, "the journal may still be needed")
        self.assertEqual(seen["renameat2", None], 1)
        self.assertEqual(sum(f'unlink("{self.out}' in line for line in trace), 1)
        self.assertGreater(seen["pwrite64", "journal"], 4)
        self.assertGreater(seen["pwrite64", "partial"], 10)

    def hindered(self, calls, error):
        """Each of `calls` fails with `error`: the run fails well, or it did not matter."""
        for name, number, _ in calls:
            with self.subTest(call=name, number=number, error=error):
                self.clear()
                run, trace = self.run_traced(f"{name}:error={error}:when={number}")
                if name == "pread64" and not self.has_fired(trace):  # Another thread read that this time.
                    self.assertEqual(run.returncode, 0, run.stderr)
                    self.assert_perfect()
                    continue
                self.assert_fired(trace)
                self.assertTrue(run.returncode == 1 or self.out.exists())
                if run.returncode != 0:
                    self.assert_failed_well(run)
                self.assert_absent_or_perfect()
                self.assert_resumes(run)

    def starve(self, step):
        """Every step-th allocation fails, one a run."""
        self.clear()
        count = int(re.search(r"allocations (\d+)", self.run_child().stdout)[1])
        self.assertGreater(count, 200)
        failed = 0
        for number in range(1, count, step):
            with self.subTest(allocation=number):
                self.clear()
                run = self.run_child(env={**os.environ, "FAIL_ALLOCATION": str(number)})
                failed += run.returncode != 0
                # nlohmann-json allocates in destructors, so that a run may end while it is described.
                if run.returncode == -signal.SIGABRT:
                    self.assertEqual(run.stdout, "")
                elif run.returncode != 0:
                    self.assert_failed_well(run)
                self.assert_absent_or_perfect()
                self.assert_resumes(run)
        self.assertGreater(failed, count / step / 2)

    def test_memory_that_runs_out_costs_no_work(self):
        self.starve(29)

    def test_interrupted_calls_are_repeated(self):
        for name in ("pwrite64", "pread64", "fallocate", "ftruncate"):
            with self.subTest(name):
                self.clear()
                run, trace = self.run_traced(f"{name}:error=EINTR:when=1+2")
                self.assertEqual(run.returncode, 0, run.stderr)
                self.assertGreater(sum("EINTR" in line for line in trace), 0)
                self.assert_perfect()

    def test_a_file_size_limit_costs_no_work(self):
        """Nothing is written that has to be thrown away, and the process is not killed by SIGXFSZ."""
        for size in SIZE_LIMITS:
            with self.subTest(size):
                run = self.run_with_file_size_limit(size)
                if run.returncode != 0:
                    self.assertNotIn("wrote", run.stdout)
                self.assert_resumes(run)

    def test_the_previous_file_stays_until_the_new_one_is_complete(self):
        self.out.write_bytes(b"previous")
        for name, number, _ in [call for call in changes(self.calls("force")) if call[0] != "openat"][-12:]:
            for hindrance in ("signal=KILL", "error=EIO"):
                with self.subTest(call=name, number=number, hindrance=hindrance):
                    self.clear()
                    self.out.write_bytes(b"previous")
                    run, trace = self.run_traced(f"{name}:{hindrance}:when={number}", "force")
                    self.assert_fired(trace)
                    if self.out.read_bytes() != b"previous":
                        self.assert_perfect()
                    else:
                        self.assertNotEqual(run.returncode, 0)
                    second = self.run_child("resume", "force")
                    self.assertEqual(second.returncode, 0, second.stderr)
                    self.assert_perfect()
                    self.assertEqual(self.names(), ["file.h5"])


@under_strace.required
class ShortenedFileTest(WriterTest):
    """Rows were left out, so that libhdf5 changes more in the end."""
    ROWS = 23

    def end(self):
        """The changes from the last group on."""
        calls = changes(self.calls())
        names = [name for name, _, _ in calls]
        return calls[len(names) - 1 - names[::-1].index("ftruncate") - 30:]

    def leaves_unreadable(self, write):
        """Kills a run at this call. Returns whether libhdf5 can make nothing of what is left."""
        self.leave(f"{write[0]}:when={write[1]}")
        try:
            contents(f"{self.out}.partial")
        except (OSError, RuntimeError):
            return True
        return False

    def test_killed_at_every_change_of_the_end(self):
        self.killed_at(self.end())

    def test_killed_again_while_resuming(self):
        """The structure is half rewritten; what restores it is killed, too."""
        writes = [call for call in self.end() if call[0] == "pwrite64"]
        self.assertTrue(any(self.leaves_unreadable(write) for write in writes))
        kept = self.dir / "kept"
        shutil.copytree(self.out.parent, kept)

        def prepare():
            shutil.rmtree(self.out.parent)
            shutil.copytree(kept, self.out.parent)

        calls = changes(self.calls("resume"))
        self.killed_at(calls, "resume", prepare=prepare)


class UnfinishedFilesTest(WriterTest):
    """What a killed writer of version 2 of the journal left is resumed for ever."""
    ROWS = 23
    LEFT = Path(__file__).parents[1] / "golden" / "format" / "unfinished"
    # Name -> the chunks that it had committed.
    COMMITTED = {"v2-pixels": 4, "v2-structure": 6}

    def take(self, name):
        self.clear()
        for suffix in (".partial", ".partial.journal"):
            shutil.copyfile(self.LEFT / f"{name}.h5{suffix}", f"{self.out}{suffix}")

    def test_each_is_resumed_to_the_end(self):
        self.assertEqual({path.name.split(".")[0] for path in self.LEFT.iterdir()}, set(self.COMMITTED))
        for name, chunks in self.COMMITTED.items():
            with self.subTest(name):
                self.take(name)
                run = self.run_child("resume")
                self.assertEqual((run.returncode, run.stderr), (0, ""))
                self.assertEqual(self.names(), ["file.h5"])
                said = run.stdout.splitlines()
                self.assertEqual([line for line in said if line.startswith("resumed ")],
                                 [f"resumed {chunk}" for chunk in range(chunks)])
                self.assertEqual([line for line in said if line.startswith("wrote ")],
                                 [f"wrote {chunk}" for chunk in range(chunks, 6)])
                # What a file says of itself may become more; what it holds does not.
                self.assertEqual(datasets(contents(self.out)), datasets(self.reference))

    def test_each_is_left_alone_by_another_run(self):
        for name in self.COMMITTED:
            with self.subTest(name):
                self.take(name)
                before = [path.read_bytes() for path in sorted(self.out.parent.iterdir())]
                run = subprocess.run([CHILD, self.out, "26", "22", "resume"], capture_output=True, text=True, timeout=60)
                self.assert_failed_well(run)
                self.assertIn('"rows" was 23 and is now 22', run.stderr)
                self.assertEqual([path.read_bytes() for path in sorted(self.out.parent.iterdir())], before)


def datasets(found):
    """Of contents(): without attributes."""
    return {name: value for name, value in found.items() if "@" not in name}


@under_strace.required
class LargeChunksTest(WriterTest):
    """Chunks that bypass the page cache where the file system allows it."""
    SAMPLE, OPTIONS = (150, 160, 3), ("large",)

    test_killed_at_every_change = WriteFaultsTest.test_killed_at_every_change
    test_a_full_disk_is_noticed_wherever_it_is_met = WriteFaultsTest.test_a_full_disk_is_noticed_wherever_it_is_met
    test_interrupted_calls_are_repeated = WriteFaultsTest.test_interrupted_calls_are_repeated
    test_nothing_is_claimed_before_it_is_on_disk = WriteFaultsTest.test_nothing_is_claimed_before_it_is_on_disk
    hindered = WriteFaultsTest.hindered

    def large_writes(self, trace):
        return [line for line in trace if re.search(r"pwrite64\(.* 2\d{5}, \d+\)", line)]

    def test_a_file_system_may_refuse_writes_round_the_cache(self):
        """Some open a file that way and then want no such write, or take a part of it."""
        _, trace = self.run_traced("")
        first = 1 + [line for line in trace if "pwrite64(" in line].index(self.large_writes(trace)[0])
        for outcome in ("error=EINVAL", "retval=4096"):
            with self.subTest(outcome):
                self.clear()
                run, trace = self.run_traced(f"pwrite64:{outcome}:when={first}")
                self.assertIn("(INJECTED)", self.large_writes(trace)[0])
                self.assertEqual(run.returncode, 0, run.stderr)
                self.assert_perfect()


@under_strace.required
class FilteredFileTest(WriterTest):
    """libhdf5 places the chunks, and has the file open all the time. There is nothing to resume."""
    OPTIONS = ("filter",)

    def assert_resumes(self, earlier, *arguments):
        run = self.run_child("resume", *arguments)
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        self.assertNotIn("resumed", run.stdout)
        self.assert_perfect()
        self.assertEqual(self.names(), ["file.h5"])

    def test_chunks_are_compressed(self):
        with h5py.File(self.dir / "reference.h5") as file:
            self.assertEqual(file["images"].compression, "gzip")
            self.assertLess(file["images"].id.get_chunk_info(0).size, 4 * int(np.prod(self.SAMPLE)))

    def test_killed_at_every_change(self):
        calls = changes(self.calls())
        self.assertGreater(len(calls), 10)
        complete = self.killed_at(calls)
        self.assertTrue(0 < complete < 3, "only after the file got its name")

    def test_every_call_fails(self):
        """No error of the disk is lost in libhdf5, also those that it reports late or not at all."""
        calls = [call for call in self.calls() if call[0] in CHANGES - {"flock", "unlink", "openat"}]
        for error in ("EIO", "ENOSPC"):
            for name, number, _ in calls:
                with self.subTest(call=name, number=number, error=error):
                    self.clear()
                    self.out.write_bytes(b"previous")
                    name = name.replace("renameat2", "rename")
                    run, trace = self.run_traced(f"{name}:error={error}:when={number}", "force")
                    self.assertTrue(any("(INJECTED)" in line for line in trace))
                    self.assert_failed_well(run)
                    if self.out.read_bytes() != b"previous":
                        self.assertIn("the folder", run.stderr)
                        self.assert_perfect()
                    self.assertEqual(self.names(), ["file.h5"])

    def test_a_disk_that_lies(self):
        self.lied_to(lambda: self.assertEqual(self.names(), []))

    def test_a_file_size_limit(self):
        for size in SIZE_LIMITS:
            with self.subTest(size):
                self.run_with_file_size_limit(size)


@under_strace.required
class EncodedFileTest(WriterTest):
    """Images that stay encoded: the structure comes last, and takes the place of these few bytes, which are moved."""
    OPTIONS = ("encoded",)

    def assert_resumes(self, earlier, *arguments):
        run = self.run_child("resume", *arguments)
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        self.assert_perfect()
        self.assertEqual(self.names(), ["file.h5"])

    test_every_fsync_counts = WriteFaultsTest.test_every_fsync_counts
    test_a_full_disk_is_noticed_wherever_it_is_met = WriteFaultsTest.test_a_full_disk_is_noticed_wherever_it_is_met
    test_nothing_is_claimed_before_it_is_on_disk = WriteFaultsTest.test_nothing_is_claimed_before_it_is_on_disk
    test_memory_that_runs_out_costs_no_work = WriteFaultsTest.test_memory_that_runs_out_costs_no_work
    test_interrupted_calls_are_repeated = WriteFaultsTest.test_interrupted_calls_are_repeated
    test_a_file_size_limit_costs_no_work = WriteFaultsTest.test_a_file_size_limit_costs_no_work
    hindered = WriteFaultsTest.hindered
    starve = WriteFaultsTest.starve

    def test_killed_at_every_change(self):
        calls = changes(self.calls())
        self.assertGreater(len(calls), 20)
        complete = self.killed_at(calls)
        self.assertTrue(0 < complete < 5, "only after the file got its name")

    def test_a_disk_that_lies(self):
        def after_a_failure():
            self.assertFalse(self.out.exists())
            run = self.run_child("resume")
            self.assertEqual((run.returncode, run.stderr), (0, ""))
            self.assert_perfect()

        self.assertLess(self.lied_to(after_a_failure), 20, "records of the journal")

    def lengths(self):
        return [int(np.prod(self.SAMPLE)) - row % 5 for row in range(self.ROWS)]

    def check_reference(self):
        lengths, size = self.lengths(), int(np.prod(self.SAMPLE))
        data = b"".join(bytes((row * size + i) % 251 for i in range(length)) for row, length in enumerate(lengths))
        self.assertEqual(self.reference["images/data"][3], data)
        self.assertEqual(self.reference["images/indptr"][3], np.cumsum([0, *lengths]).tobytes())
        self.assertEqual(self.reference["images/orientations"][3], bytes(1 + row % 8 for row in range(self.ROWS)))
        self.assertEqual(self.reference["images/sizes"][1], (self.ROWS, 2))
        self.assertEqual(self.reference["labels"][3], (np.arange(self.ROWS) % 3).tobytes())
        self.assertEqual(self.reference["further/ids"][3], (np.arange(self.ROWS) * 2 % 3).tobytes())

    def test_what_was_reserved_and_is_not_needed_is_given_back(self):
        """Of images that were announced and skipped."""
        self.clear()
        run = subprocess.run([CHILD, self.out, "4000", str(self.ROWS), *self.OPTIONS], capture_output=True, text=True,
                             timeout=60)
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        status = self.out.stat()
        self.assertLess(status.st_blocks * 512, status.st_size + (64 << 10))
        self.assert_perfect()


class LargeEncodedFileTest(EncodedFileTest):
    """More bytes of images lie where they were written first."""
    SAMPLE, OPTIONS = (150, 160, 3), ("encoded", "large")
    assert_resumes = WriterTest.assert_resumes

    def test_killed_again_while_resuming(self):
        """After a run that was killed while it wrote the structure."""
        writes = [call for call in changes(self.calls()) if call[0] == "pwrite64"]
        self.leave(f"pwrite64:when={writes[-2][1]}")
        kept = self.dir / "kept"
        shutil.copytree(self.out.parent, kept)

        def prepare():
            shutil.rmtree(self.out.parent)
            shutil.copytree(kept, self.out.parent)

        self.killed_at(changes(self.calls("resume")), "resume", prepare=prepare)

    def test_what_was_written_is_read_back_before_it_is_gone_on_with(self):
        """A byte of the first part that was committed is another one by now: all is written again."""
        writes = [call for call in changes(self.calls()) if call[0] == "pwrite64"]
        run = self.leave(f"pwrite64:when={writes[-2][1]}")
        self.assertIn("wrote 1", run.stdout)
        with open(f"{self.out}.partial", "r+b") as file:
            file.seek((1 << 20) + 7)
            byte = file.read(1)
            file.seek((1 << 20) + 7)
            file.write(bytes([byte[0] ^ 1]))
        again = self.run_child("resume")
        self.assertEqual((again.returncode, again.stderr), (0, ""))
        self.assertNotIn("resumed", again.stdout)
        self.assert_perfect()


@under_strace.required
class EveryCallTest(WriteFaultsTest):
    """The same, and more of it: takes minutes."""

    def test_killed_at_every_call(self):
        # The first call is that of strace, which starts the program.
        self.killed_at(self.calls(everything=True)[1:], everything=True)

    def test_every_call_fails(self):
        calls = [call for call in self.calls() if call[0] not in ("close", "fsync", "fdatasync")]
        for error in ("EIO", "ENOSPC", "EDQUOT"):
            self.hindered(calls, error)

    def test_every_allocation_fails(self):
        self.starve(1)

    def test_a_disk_that_lies(self):
        def after_a_failure():
            self.assertFalse(self.out.exists())
            run = self.run_child("resume")
            if run.returncode != 0:
                self.assert_failed_well(run)
            self.assert_absent_or_perfect()

        self.assertLess(self.lied_to(after_a_failure), 20, "records of the journal")

    def test_a_small_disk(self):
        """A file system of its own, too small in many ways."""
        disk = self.out.parent
        for size in (4096, 8192, 65536, 1 << 20, 1064960, 1073152, 1 << 21, 2146304, 2162688, 2228224, 3 << 20, 5 << 20,
                     6 << 20, 7 << 20, 8 << 20):
            with self.subTest(size):
                mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "none", disk]
                if subprocess.run(mount, stderr=subprocess.DEVNULL).returncode != 0:
                    self.skipTest("file systems may not be mounted here")
                try:
                    run = self.run_child()
                    if run.returncode != 0:
                        self.assert_failed_well(run)
                        self.assertIn("no_space", run.stderr)
                        self.assertNotIn("wrote", run.stdout)
                    self.assert_absent_or_perfect()
                    subprocess.run(["mount", "-o", "remount,size=64m", disk], check=True)
                    self.assert_resumes(run)
                finally:
                    subprocess.run(["umount", disk], check=True)


def load_tests(loader, *_):
    """All but the long ones."""
    suite = unittest.TestSuite()
    for case in (WriteFaultsTest, ShortenedFileTest, UnfinishedFilesTest, LargeChunksTest, FilteredFileTest,
                 EncodedFileTest, LargeEncodedFileTest):
        suite.addTests(loader.loadTestsFromTestCase(case))
    return suite
