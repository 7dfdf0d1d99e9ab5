"""h5pack csr that is killed, stopped, short of space, or given damaged files: there is a whole output, or none."""

import collections
import itertools
import gzip
import os
import random
import re
import resource
import signal
import time
import unittest

import h5py
import numpy as np

import under_strace
from h5_contents import assert_contents, contents
from matrices import MatrixTest, anndata_file, mtx_text, random_matrix
from support import STOPPED

# Calls that change a file or a folder.
CHANGES = {"openat", "flock", "fallocate", "ftruncate", "pwrite64", "fsync", "renameat2", "unlink"}


class CsrFaultsTest(MatrixTest):
    def setUp(self):
        super().setUp()
        random = np.random.default_rng(1)
        users, items = random.integers(0, 2000, 60_000), random.integers(0, 300, 60_000)
        (self.dir / "r.csv").write_text("user,item,value\n" + "".join(
            f"{user},{item},{i % 9}\n" for i, (user, item) in enumerate(zip(users, items))))
        # With this little memory entries go through two temporary files.
        self.command = ["csr", "r.csv", "-o", "out.h5ad", "--memory-budget", "1300KiB", "--threads", 1, "--quiet"]
        report, = self.h5pack_json(*self.command)
        self.assertGreater(report["buckets"], 1)
        self.reference = contents(self.dir / "out.h5ad")
        (self.dir / "out.h5ad").unlink()
        self.ways = itertools.cycle(["--force", "--resume"])

    def left(self):
        return sorted(path.name for path in self.dir.iterdir() if path.name != "r.csv")

    def assert_goes_on(self):
        """The same command again, after whatever was left."""
        self.h5pack(*self.command, next(self.ways))
        assert_contents(self, self.dir / "out.h5ad", self.reference)
        self.assertEqual(self.left(), ["out.h5ad"])
        (self.dir / "out.h5ad").unlink()

    def calls(self, wanted, *more, least=15):
        """(name, which of that name) of each such call of the first thread once the output is named."""
        result, trace = self.traced([], *self.command, *more)
        self.assertEqual(result.returncode, 0, result.stderr)
        lines = trace.splitlines()
        first, counts, found = lines[0].split()[0], collections.Counter(), []
        begin = next(i for i, line in enumerate(lines) if "O_TMPFILE" in line)
        for i, line in enumerate(lines):
            call = re.match(rf"{first} +(\w+)\(", line)
            if call:
                counts[call[1]] += 1
                if i >= begin and call[1] in wanted:
                    found.append((call[1], counts[call[1]]))
        self.assertGreaterEqual(len(found), least)
        for path in self.dir.glob("out*"):
            path.unlink()
        return found

    @under_strace.required
    def test_killed_at_every_change(self):
        complete = 0
        for name, number in self.calls(CHANGES):
            with self.subTest(call=name, number=number):
                result, trace = self.traced(["-e", f"inject={name}:signal=KILL:when={number}"], *self.command)
                self.assertEqual(result.returncode, -signal.SIGKILL, trace[-300:])
                if (self.dir / "out.h5ad").exists():
                    complete += 1
                    assert_contents(self, self.dir / "out.h5ad", self.reference)
                # Temporary files of entries have no name.
                self.assertLessEqual(set(self.left()), {"out.h5ad", "out.h5ad.partial"})
                self.assert_goes_on()
        self.assertTrue(0 < complete < 5, complete)

    @under_strace.required
    def test_every_change_fails(self):
        for error in ("EIO", "ENOSPC"):
            for name, number in self.calls({"fallocate", "ftruncate", "pwrite64", "fsync", "renameat2"}):
                with self.subTest(error, call=name, number=number):
                    result, trace = self.traced(["-e", f"inject={name}:error={error}:when={number}"], *self.command)
                    self.assertIn("(INJECTED)", trace)
                    if result.returncode != 0:
                        self.assert_one_line(result, 1)
                        if not (self.dir / "out.h5ad").exists():
                            self.assertEqual(self.left(), [])
                    if (self.dir / "out.h5ad").exists():
                        assert_contents(self, self.dir / "out.h5ad", self.reference)
                    self.assert_goes_on()

    @under_strace.required
    def test_a_disk_that_lies(self):
        """Each write to the output, in turn, is said to be done and is not: noticed, or without effect."""
        path = ["-P", self.dir / "out.h5ad.partial"]
        _, trace = self.traced(path, *self.command)
        (self.dir / "out.h5ad").unlink()
        results = re.findall(r" pwrite64\(.* = (\d+)$", trace, re.MULTILINE)
        self.assertGreater(len(results), 5)
        noticed = 0
        for number, result in enumerate(results, 1):
            with self.subTest(number=number):
                run, trace = self.traced([*path, "-e", f"inject=pwrite64:retval={result}:when={number}"], *self.command)
                self.assertIn("(INJECTED)", trace)
                if run.returncode == 0:
                    assert_contents(self, self.dir / "out.h5ad", self.reference)
                    (self.dir / "out.h5ad").unlink()
                else:
                    noticed += 1
                    self.assert_one_line(run, 1)
                self.assertEqual(self.left(), [])
        self.assertGreater(noticed, 0)

    @under_strace.required
    def test_shards_are_whole_each(self):
        """Those that have their names when the run is killed are complete, and say what is missing."""
        self.h5pack(*self.command, "--shards", 3)
        files = [f"out-0000{i}-of-00003.h5ad" for i in range(3)]
        expected = [contents(self.dir / name) for name in files]
        seen = set()
        for name, number in self.calls({"renameat2", "fsync"}, "--shards", 3, "--force", least=6):
            with self.subTest(call=name, number=number):
                self.traced(["-e", f"inject={name}:signal=KILL:when={number}"], *self.command, "--shards", 3, "--force")
                there = [i for i, file in enumerate(files) if (self.dir / file).exists()]
                seen.add(len(there))
                self.assertEqual(there, list(range(len(there))))
                for i in there:
                    assert_contents(self, self.dir / files[i], expected[i])
                if 0 < len(there) < 3:
                    self.assertIn("missing", self.run_h5pack("info", "out-*-of-00003.h5ad").stderr)
                before = [(self.dir / files[i]).stat() for i in there]
                self.h5pack(*self.command, "--shards", 3, "--resume")
                self.assertEqual(self.left(), files)
                self.assertEqual([(self.dir / files[i]).stat().st_ino for i in there], [one.st_ino for one in before])
                for file, wanted in zip(files, expected):
                    assert_contents(self, self.dir / file, wanted)
                self.h5pack("verify", "out-*-of-00003.h5ad")
                for path in self.dir.glob("out*"):
                    path.unlink()
        self.assertEqual(seen, {0, 1, 2, 3})

    @unittest.skipIf(os.environ.get("CHUNKIO_SANITIZE"), "sanitizers write files of their own")
    def test_a_file_size_limit(self):
        for size in (1, 1 << 16, 900_000):
            with self.subTest(size):
                result = self.run_h5pack(*self.command, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size)))
                self.assert_one_line(result, 1, "free some space")
                self.assertEqual(self.left(), [])

    def test_signals(self):
        chance = random.Random(4)
        stopped = 0
        fifo = self.dir / "fifo"
        os.mkfifo(fifo)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP) * 4:
            with self.subTest(number):
                process = self.start(["csr", "fifo", "-o", "out.h5ad", "--memory-budget", "1300KiB", "--quiet"])
                text = (self.dir / "r.csv").read_bytes()
                with open(fifo, "wb") as pipe:
                    pipe.write(text[:chance.randrange(1 << 16, len(text))])
                    pipe.flush()
                    process.send_signal(number)
                    begun = time.monotonic()
                    code, _, errors = self.end(process)
                # Without more to read, and before the program would be ended.
                self.assertLess(time.monotonic() - begun, 4)
                self.assertIn(code, (STOPPED[number], -number), errors)
                self.assertLessEqual(len(errors.splitlines()), 1, errors)
                stopped += code == STOPPED[number]
                self.assertEqual(self.left(), ["fifo"])
        self.assertGreater(stopped, 0)

    # ---- Damaged sources ----

    def damage(self, name, whole, rounds, check, places=None):
        """Flips a bit, or cuts the file: the result is a matrix, or one line that names the file.

        places: where bits are flipped.
        """
        chance = random.Random(7)
        refused = 0
        for _ in range(rounds):
            data = bytearray(whole)
            at = chance.randrange(len(data)) if places is None else chance.choice(places)
            if chance.random() < 0.2:
                del data[at:]
            else:
                data[at] ^= 1 << chance.randrange(8)
            (self.dir / name).write_bytes(data)
            result = self.run_h5pack("csr", name, "-o", "out.h5ad", "--force", "--quiet")
            with self.subTest(name, at=at):
                if result.returncode != 0:
                    refused += 1
                    self.assert_one_line(result, 1, name)
                    self.assertFalse((self.dir / "out.h5ad").exists())
                else:
                    check()
                    (self.dir / "out.h5ad").unlink()
                self.assertEqual(self.left(), [name])
        (self.dir / name).unlink()
        self.assertGreater(refused, rounds // 20)

    def test_damaged_text(self):
        """A digit that became another is no damage that anybody could see."""
        dense = random_matrix(30)
        text = mtx_text(dense).encode()
        self.damage("m.mtx", text, 150, self.read)
        self.damage("m.csv", b"user,item,value\n" + b"".join(b"u%d,i%d,%d\n" % (i % 30, i % 7, i) for i in range(100)), 150,
                    lambda: None)

        def is_the_matrix():
            np.testing.assert_array_equal(self.read(), dense)
        self.damage("m.mtx.gz", gzip.compress(text, mtime=0), 150, is_the_matrix)

    def test_damaged_hdf5(self):
        """Of what libhdf5 itself needs to find a dataset, version 1.10 survives no damage for sure."""
        dense = random_matrix(40)
        for case, options in {"csr": {}, "csc": {"form": "csc"}, "gzip": {"compression": "gzip", "chunks": (40,)}}.items():
            anndata_file(self.dir / "x", dense, attribute=np.bytes_, **options)
            whole = (self.dir / "x").read_bytes()
            places = self.stored_bytes("x")
            (self.dir / "x").unlink()
            self.damage(f"{case}.h5ad", whole, 150, lambda: None, places)

    def stored_bytes(self, path):
        """The places of all bytes of the matrix and its names."""
        places = []
        with h5py.File(self.dir / path) as file:
            for name in ("X/data", "X/indices", "X/indptr", "obs/_index", "var/_index"):
                data = file[name].id
                if file[name].chunks is None:
                    places += range(data.get_offset(), data.get_offset() + data.get_storage_size())
                for number in range(data.get_num_chunks() if file[name].chunks else 0):
                    chunk = data.get_chunk_info(number)
                    places += range(chunk.byte_offset, chunk.byte_offset + chunk.size)
        return places

    def test_damaged_names_never_leave_their_heap(self):
        """libhdf5 1.10 would write past its memory here."""
        # Those of attributes libhdf5 reads itself.
        anndata_file(self.dir / "m.h5ad", random_matrix(40), attribute=np.bytes_)
        whole = (self.dir / "m.h5ad").read_bytes()
        heaps = [match.start() for match in re.finditer(b"GCOL", whole)]
        self.assertTrue(heaps)
        with h5py.File(self.dir / "m.h5ad") as file:
            references = file["obs/_index"].id.get_offset()
        chance = random.Random(3)
        refused = 0
        for at in [*(heap + chance.randrange(200) for heap in heaps for _ in range(60)),
                   *(references + chance.randrange(16 * 40) for _ in range(150))]:
            data = bytearray(whole)
            data[at] ^= 1 << chance.randrange(8)
            (self.dir / "m.h5ad").write_bytes(data)
            result = self.run_h5pack("csr", "m.h5ad", "-o", "out.h5ad", "--force", "--quiet")
            with self.subTest(at=at):
                if result.returncode != 0:
                    refused += 1
                    self.assert_one_line(result, 1, "m.h5ad")
        self.assertGreater(refused, 50)

    def test_names_that_lie(self):
        anndata_file(self.dir / "m.h5ad", random_matrix(40), attribute=np.bytes_)
        whole = (self.dir / "m.h5ad").read_bytes()
        with h5py.File(self.dir / "m.h5ad") as file:
            reference = file["obs/_index"].id.get_offset()
        address = int.from_bytes(whole[reference + 4:reference + 12], "little")

        def refused(at, value, what):
            data = bytearray(whole)
            data[at:at + len(value)] = value
            (self.dir / "m.h5ad").write_bytes(data)
            self.assert_refused(["csr", "m.h5ad", "-o", "new.h5ad", "--trust"], 1, ["m.h5ad: its names refer to", what],
                                "copy or download")

        refused(reference, (1 << 30).to_bytes(4, "little"), "longer than they are")
        refused(reference + 4, (1 << 60).to_bytes(8, "little"), "outside")
        refused(reference + 4, (8).to_bytes(8, "little"), "no global heap")
        refused(reference + 12, (60_000).to_bytes(4, "little"), "does not exist")
        refused(address + 8, (1 << 40).to_bytes(8, "little"), "too large")
        refused(address + 16 + 8, (1 << 40).to_bytes(8, "little"), "cut")


if __name__ == "__main__":
    unittest.main()
