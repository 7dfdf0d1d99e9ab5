"""h5pack csr: every kind of source gives the matrix that it holds, row by row, and damage is named."""

import gzip
import io
import json
import os
import struct
import subprocess
import unittest
import zipfile

import h5py
import numpy as np

from matrices import M, MatrixTest, compressed, mtx_text, npz_bytes, random_matrix
from support import H5PACK, contents

try:
    import scipy.sparse
except ImportError:
    scipy = None
try:
    import anndata
except ImportError:
    anndata = None

class CsrTest(MatrixTest):
    def test_npz(self):
        dense = random_matrix()
        for form in ("csr", "csc", "coo"):
            for save in (np.savez, np.savez_compressed):
                for index_dtype in (np.int32, np.int64):
                    with self.subTest(form, save=save.__name__, index_dtype=index_dtype.__name__):
                        self.save_npz("m.npz", form, dense, save, index_dtype=index_dtype)
                        report = self.pack("m.npz")
                        self.assertEqual((report["rows"], report["columns"], report["entries"], report["dtype"]),
                                         (200, M, np.count_nonzero(dense), "float64"))
                        np.testing.assert_array_equal(self.read(), dense)
        self.assertNotEqual(list(self.order), sorted(self.order))
        self.assertEqual(self.names[0], [str(row) for row in self.order])
        self.assertEqual(self.names[1], [str(column) for column in range(M)])
        self.assertEqual(json.loads(self.attributes["options"])["source"]["kind"], "npz")
        self.assertEqual(list(self.dir.glob("out*")), [self.dir / "out.h5ad"])

    def test_element_types(self):
        dense = random_matrix() % 100
        for dtype in ("float32", "float64", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64"):
            with self.subTest(dtype):
                self.save_npz("m.npz", "csr", dense, dtype=dtype)
                self.pack("m.npz")
                found = self.read()
                self.assertEqual(found.dtype, dtype)
                np.testing.assert_array_equal(found, dense)
                self.save_npz("m.npz", "csr", dense)
                self.pack("m.npz", "--dtype", dtype)
                found = self.read()
                self.assertEqual(found.dtype, dtype)
                np.testing.assert_array_equal(found, dense)
        self.save_npz("m.npz", "csr", dense != 0, dtype=bool)
        self.pack("m.npz")
        np.testing.assert_array_equal(self.read(), dense != 0)

    def test_integers_of_64_bits(self):
        largest = {"uint64": 2**64 - 1, "int64": 2**63 - 1}
        for dtype, most in largest.items():
            dense = np.zeros((3, 4), dtype)
            dense[1, 2], dense[2, 0] = most, np.iinfo(dtype).min if dtype == "int64" else 1
            self.save_npz("m.npz", "csr", dense, dtype=dtype)
            (self.dir / "m.mtx").write_text(mtx_text(dense, "integer"))
            for source in ("m.npz", "m.mtx", "out.h5ad"):
                with self.subTest(dtype, source=source):
                    if source == "out.h5ad":
                        (self.dir / "out.h5ad").rename(self.dir / "in.h5ad")
                        self.pack("in.h5ad", "--order", "source")
                    else:
                        self.pack(source, "--dtype", dtype)
                    found = self.read()
                    self.assertEqual(found.dtype, dtype)
                    np.testing.assert_array_equal(found, dense)
            (self.dir / "m.csv").write_text(f"row,column,value\na,b,+{most}\na,c,-0\n")
            self.pack("m.csv", "--dtype", dtype)
            self.assertEqual(self.read().max(), most)
            for wrong in (most + 1, -(2**63) - 1, "1e400", "1.5"):
                (self.dir / "m.csv").write_text(f"row,column,value\na,b,{wrong}\n")
                self.assert_refused(["csr", "m.csv", "-o", "x.h5ad", "--dtype", dtype], 1, ["m.csv", str(wrong), dtype],
                                    "another --dtype")
        (self.dir / "m.csv").write_text(f"row,column,value\na,b,{2**64 - 1}\na,b,1\n")
        self.assert_refused(["csr", "m.csv", "-o", "x.h5ad", "--dtype", "uint64", "--duplicates", "sum"], 1,
                            ["m.csv", "uint64"], "another --dtype")

    def test_names_are_utf8(self):
        for name in ("caf\xe9", "\xc0\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xc3"):
            (self.dir / "m.csv").write_bytes(b"row,column\na,b\n" + name.encode("latin-1") + b",b\nc,b\n")
            shown = "".join(c if c < "\x7f" else f"\\x{ord(c):02x}" for c in name)
            self.assert_refused(["csr", "m.csv", "-o", "x.h5ad"], 1, ["m.csv", f"'{shown}'", "UTF-8"], "convert it")
        names = ["caf\u00e9", "\u0800", "\ud7ff", "\uffff", "\U00010000", "\U0010ffff"]
        (self.dir / "m.csv").write_text("".join(f"{name},b\n" for name in ["row", *names]), encoding="utf-8")
        self.pack("m.csv", "--order", "source")
        self.read()
        self.assertEqual(self.names[0], names)

    def test_order_and_seed(self):
        dense = random_matrix()
        self.save_npz("m.npz", "csr", dense)
        orders = []
        for options in ([], ["--seed", 1], ["--seed", 1, "--threads", 1], ["--order", "source"]):
            self.pack("m.npz", *options)
            np.testing.assert_array_equal(self.read(), dense)
            orders.append(list(self.order))
        self.assertNotEqual(orders[0], orders[1])
        self.assertEqual(orders[1], orders[2])
        self.assertEqual(orders[3], list(range(200)))
        self.assertEqual(self.attributes["order"], b"source")

    def test_mtx(self):
        dense = random_matrix()
        square = np.tril(random_matrix(M, M))
        both = square + np.tril(square, -1).T
        skew = np.tril(square, -1) - np.tril(square, -1).T
        cases = {
            "real": (mtx_text(dense + 0.0), dense), "integer": (mtx_text(dense, "integer"), dense),
            "pattern": (mtx_text(dense, "pattern"), dense != 0),
            "symmetric": (mtx_text(square, symmetry="symmetric"), both),
            "skew": (mtx_text(np.tril(square, -1), "integer", "skew-symmetric"), skew),
            "windows": (mtx_text(dense).replace("\n", "\r\n"), dense),
            "no last line end": (mtx_text(dense)[:-1], dense),
        }
        for case, (text, expected) in cases.items():
            for name in ("m.mtx", "m.mtx.gz"):
                with self.subTest(case, name=name):
                    text_bytes = text.encode()
                    (self.dir / name).write_bytes(gzip.compress(text_bytes) if name.endswith("gz") else text_bytes)
                    self.assertEqual(self.pack(name)["dtype"], "float32")
                    np.testing.assert_array_equal(self.read(), expected)
                    self.pack(name, "--transpose")
                    np.testing.assert_array_equal(self.read(), expected.T)
        # Two members, as bgzip and concatenated files have.
        text = mtx_text(dense).encode()
        (self.dir / "m.mtx.gz").write_bytes(gzip.compress(text[:1000]) + gzip.compress(text[1000:]))
        self.pack("m.mtx.gz")
        np.testing.assert_array_equal(self.read(), dense)

    def write_ratings(self, name="r.csv", header="userId,movieId,rating,timestamp"):
        random = np.random.default_rng(5)
        users, movies = random.integers(0, 40, 900), random.integers(0, 30, 900)
        values = random.integers(1, 11, 900) / 2
        rows = [f"u{user},{movie * 17},{value},{1112486027 + i}"
                for i, (user, movie, value) in enumerate(zip(users, movies, values))]
        (self.dir / name).write_text("\n".join([header, *rows]) + "\n")
        first = lambda column: list(dict.fromkeys(column))
        names = first(f"u{user}" for user in users), first(str(movie * 17) for movie in movies)
        last, total = {}, {}
        for user, movie, value in zip(users, movies, values):
            key = names[0].index(f"u{user}"), names[1].index(str(movie * 17))
            last[key] = value
            total[key] = total.get(key, 0) + value
        def dense(entries):
            matrix = np.zeros((len(names[0]), len(names[1])))
            for key, value in entries.items():
                matrix[key] = value
            return matrix
        return names, dense(last), dense(total)

    def test_ratings(self):
        names, last, total = self.write_ratings()
        report = self.pack("r.csv", "--row-from", "userId", "--column-from", "movieId", "--value-from", "rating")
        np.testing.assert_array_equal(self.read(), last)
        self.assertEqual(self.names, ([names[0][row] for row in self.order], names[1]))
        self.assertEqual(report["entries"] + report["duplicates"], 900)
        self.assertIn("the last one was kept", self.h5pack("csr", "r.csv", "-o", "two.h5ad"))
        self.pack("r.csv", "--duplicates", "sum")
        np.testing.assert_array_equal(self.read(), total)
        self.pack("r.csv", "--duplicates", "sum", "--value-from", "none", "--dtype", "uint16")
        found = self.read()
        self.assertEqual((found.sum(), found.dtype), (900, np.uint16))
        self.pack("r.csv", "--transpose")
        np.testing.assert_array_equal(self.read(), last.T)
        self.assert_refused(["csr", "r.csv", "-o", "new.h5ad", "--duplicates", "fail"], 1, ["r.csv", "several entries"], "--duplicates")

    def test_ratings_through_a_pipe_and_compressed(self):
        _, last, _ = self.write_ratings()
        data = (self.dir / "r.csv").read_bytes()
        for text in (data, gzip.compress(data)):
            subprocess.run([H5PACK, "csr", "-", "-o", "out.h5ad", "--force", "--quiet"], input=text, cwd=self.dir,
                           check=True, stdout=subprocess.DEVNULL)
            np.testing.assert_array_equal(self.read(), last)
        # A pipe changes while it is read.
        subprocess.run(f"cat r.csv | '{H5PACK}' csr /dev/fd/0 -o out.h5ad --force --quiet", shell=True, cwd=self.dir,
                       check=True, stdout=subprocess.DEVNULL)
        np.testing.assert_array_equal(self.read(), last)

    def test_names_are_any_text(self):
        rows = ['"a,b"', '"two\nlines"', '"say ""so"""', "Jörg", " blank ", "1"]
        (self.dir / "r.csv").write_text("who,what\n" + "".join(f"{row},x{i % 2}\n" for i, row in enumerate(rows)))
        report = self.pack("r.csv", "--order", "source")
        self.read()
        self.assertEqual(self.names, (["a,b", "two\nlines", 'say "so"', "Jörg", " blank ", "1"], ["x0", "x1"]))
        self.assertEqual((report["rows"], report["entries"]), (6, 6))

    def test_a_small_budget_gives_the_same_file(self):
        random = np.random.default_rng(1)
        lines = [f"{user},{item},{i % 9}" for i, (user, item) in enumerate(zip(random.zipf(1.3, 300_000) % 20_000,
                                                                             random.integers(0, 3000, 300_000)))]
        (self.dir / "r.csv").write_text("user,item,value\n" + "\n".join(lines))
        whole = self.pack("r.csv")
        with h5py.File(self.dir / "out.h5ad") as file:
            expected = {name: file[name][:] for name in ("X/data", "X/indices", "X/indptr", "obs/sample_digests", "obs/_index")}
        self.assertEqual(whole["buckets"], 1)
        small = self.pack("r.csv", "--memory-budget", "4MiB")
        self.assertGreater(small["buckets"], 2)
        self.assertEqual(whole["duplicates"], small["duplicates"])
        self.assertGreater(whole["duplicates"], 0)
        with h5py.File(self.dir / "out.h5ad") as file:
            for name, values in expected.items():
                np.testing.assert_array_equal(file[name][:], values)
        self.assert_refused(["csr", "r.csv", "-o", "new.h5ad", "--memory-budget", "1MiB"], 1, ["r.csv"], "raise")

    def test_resume(self):
        self.save_npz("m.npz", "csr", random_matrix())
        command = ["csr", "m.npz", "-o", "out.h5ad"]
        self.h5pack(*command, "--resume")  # nothing is there
        before = (self.dir / "out.h5ad").stat().st_ino
        self.assertEqual(self.h5pack(*command, "--resume"), "out.h5ad: complete already, 200 rows\n")
        report, = self.h5pack_json(*command, "--resume")
        self.assertEqual((report["rows"], report["columns"], report["complete_already"]), (200, M, True))
        self.assertEqual((self.dir / "out.h5ad").stat().st_ino, before)
        (self.dir / "out.h5ad.partial").write_bytes(b"what a kill left")
        (self.dir / "out.h5ad").unlink()
        self.h5pack(*command, "--resume")
        self.read()
        for options, message in ((["--seed", 2], '"--seed" is 0 there and 2 here'),
                                 (["--rows", "0:200"], '"--rows" is "all" there'),
                                 (["--dtype", "int32"], '"--dtype"'), (["--transpose"], '"source"')):
            self.assert_fails([*command, "--resume", *options], "out.h5ad.*of another run.*" + message)
        (self.dir / "m.npz").touch()
        self.assert_fails([*command, "--resume"], "digest of sizes and times of the source files")
        self.h5pack(*command, "--resume", "--force")
        self.assert_fails(["csr", "-", "-o", "x.h5ad", "--resume"], "standard input is gone", code=2)

    def test_resume_of_shards(self):
        dense = random_matrix()
        self.save_npz("m.npz", "csr", dense, np.savez)
        command = ["csr", "m.npz", "-o", "out.h5ad", "--shards", 4, "--resume"]
        files = [self.dir / f"out-0000{i}-of-00004.h5ad" for i in range(4)]
        self.h5pack(*command)
        whole = [contents(file) for file in files]
        for missing, written in (((3,), {3}), ((2, 3), {2, 3}), ((1,), {1, 2, 3}), ((0, 1, 2, 3), {0, 1, 2, 3})):
            with self.subTest(missing):
                before = [file.stat().st_ino for file in files]
                for i in missing:
                    files[i].rename(self.dir / f"kept{i}")  # so that its number is not given away
                report, = self.h5pack_json(*command)
                self.assertEqual(report["shards_complete_already"], 4 - len(written))
                self.assertEqual(report["entries"], np.count_nonzero(dense))
                self.assertEqual({i for i in range(4) if files[i].stat().st_ino != before[i]}, written)
                self.assertEqual([contents(file) for file in files], whole)
                self.h5pack("verify", "out-*-of-00004.h5ad")
        self.assertIn("complete already, 200 rows", self.h5pack(*command))
        # The same options, but other bytes of the same size and time.
        stat = (self.dir / "m.npz").stat()
        files[3].unlink()
        self.save_npz("m.npz", "csr", np.roll(dense, 1, axis=0), np.savez)
        os.utime(self.dir / "m.npz", ns=(stat.st_atime_ns, stat.st_mtime_ns))
        self.assert_fails(command, "another matrix than that of the shards that are complete")

    def test_shards_without_entries(self):
        dense = random_matrix()
        dense[100:] = 0
        self.save_npz("m.npz", "csr", dense)
        for options in ([], ["--dry-run"]):
            self.assert_refused(["csr", "m.npz", "-o", "x.h5ad", "--rows", "100:200", *options], 1, ["m.npz"], "no entries")
        command = ["csr", "m.npz", "-o", "new.h5ad", "--order", "source", "--shards"]
        self.assert_refused([*command, 4], 2, ["m.npz", "new-00002-of-00004.h5ad"], "fewer shards")
        self.assert_fails(["csr", "m.npz", "-o", "new.h5ad", "--rows", "100:200"], "no entries")
        self.assertEqual(list(self.dir.glob("new*")), [])

    def test_dry_run_and_output(self):
        dense = random_matrix()
        self.save_npz("m.npz", "csr", dense)
        report, = self.h5pack_json("csr", "m.npz", "-o", "new.h5ad", "--dry-run")
        self.assertEqual((report["rows"], report["entries"], report["dry_run"]), (200, np.count_nonzero(dense), True))
        self.assertFalse((self.dir / "new.h5ad").exists())
        self.pack("m.npz")
        self.assert_refused(["csr", "m.npz", "-o", "out.h5ad"], 1, ["out.h5ad", "exists"], "--force")
        self.assert_refused(["csr", "m.npz", "-o", "m.npz", "--force"], 1, ["m.npz", "input"], "another")
        self.assert_refused(["csr", "m.npz", "-o", "no/new.h5ad"], 1, ["no folder"], "make it")
        (self.dir / "new.h5ad.partial").write_bytes(b"x")
        self.assert_refused(["csr", "m.npz", "-o", "new.h5ad"], 1, ["new.h5ad.partial is left over"], "--force")

    def test_wrong_csv(self):
        def refused(text, what, *options, code=1, way_out="."):
            (self.dir / "r.csv").write_text(text)
            self.assert_refused(["csr", "r.csv", "-o", "new.h5ad", *options], code, ["r.csv", what], way_out)

        head = "user,item,rating\n"
        refused(head + "a,b,1\nc,d\n", "line 3 has 2 fields, the header has 3")
        refused(head + "a,b,1\n\n\nc,d,1,5\n", "line 5 has 4 fields")
        refused(head + "a,b,good\n", "line 2: 'good' is no number", way_out="--value-from")
        refused(head + "a,b,\n", "line 2: '' is no number")
        refused(head + "a,b,1112486027\n", "line 2: 1112486027 does not fit float32 exactly", way_out="--dtype")
        refused(head + "a,b,1.5\n", "line 2: 1.5 does not fit int32", "--dtype", "int32", way_out="--dtype")
        refused(head + "a,b,300\n", "line 2: 300 does not fit uint8", "--dtype", "uint8")
        refused(head + "a,b,1e300\n", "line 2: 1e300 does not fit")
        refused(head + ",b,1\n", "line 2 has an empty 'user'")
        refused(head + 'a,"b,1\n', "line 2: a quoted field is never closed")
        refused(head + 'a,b"c,1\n', "line 2: a quote inside")
        refused(head, "no entries")
        refused("", "empty")
        refused("one\n1\n", "one column")
        refused(head + "a,b,1\n", "no column 'movie'", "--column-from", "movie", code=2, way_out="user")
        refused(head + "a,b,1\n", "used twice", "--column-from", "user", code=2, way_out="--column-from")
        refused(head + "a,b\0,1\n", "zero bytes")
        # Far from the begin, so that another thread may come to later lines first.
        lines = "".join(f"u{i},{i % 100},1\n" for i in range(400_000))
        refused(head + lines + "x,y\n" + lines + "x\n" + lines, "line 400002 has 2 fields")

    def test_wrong_mtx(self):
        def refused(text, what, code=1):
            (self.dir / "m.mtx").write_bytes(text.encode() if isinstance(text, str) else text)
            self.assert_refused(["csr", "m.mtx", "-o", "new.h5ad"], code, ["m.mtx", what], ".")

        head = "%%MatrixMarket matrix coordinate real general\n"
        refused(head + "3 3 2\n1 1 1\n", "line 3: the file ends after 1 of 2 entries")
        refused(head + "3 3 1\n1 1 1\n2 2 2\n", "line 4: the header counts 1 entries, and there are more")
        refused(head + "3 3 1\n4 1 1\n", "line 3: row '4'; they are numbered from 1 to 3")
        refused(head + "3 3 0\n", "no entries")
        refused(head + "3 3 1\n1 0 1\n", "line 3: column '0'")
        refused(head + "3 3 1\n-1 1 1\n", "line 3: row '-1'")
        refused(head + "3 3 1\n1 1\n", "line 3: an entry without a value")
        refused(head + "3 3 1\n1 1 1 1\n", "line 3: more than one entry")
        refused(head + "3 3 1\n1 1 x\n", "line 3: 'x' is no number")
        refused(head + "3 three 1\n", "line 2: 'three'")
        refused(head + "% only\n", "before the line of its size")
        refused(head + "0 3 0\n", "line 2: '0'")
        refused(head + "5000000000 3 1\n1 1 1\n", "less than 2^32")
        refused(head + "4000000000 3 1\n1 1 1\n", "tables of 4000000000 rows")
        refused(head.replace("coordinate", "array") + "3 3\n", "line 1: 'array' is not supported")
        refused(head.replace("real", "complex") + "3 3 1\n1 1 1 1\n", "'complex' is not supported")
        refused(head.replace("general", "symmetric") + "3 4 1\n1 1 1\n", "as many rows as columns")
        whole = gzip.compress((head + "3 3 1\n1 1 1\n" * 1).encode())
        refused(whole[:-12], "ends early")
        damaged = bytearray(gzip.compress(mtx_text(random_matrix()).encode()))
        damaged[len(damaged) // 2] ^= 0xff
        refused(bytes(damaged), "")

    def test_wrong_npz(self):
        dense = random_matrix(20)
        data, indices, indptr = compressed(dense)
        count = len(data)

        def refused(what, form="csr", way_out=".", **changes):
            self.save_npz("m.npz", form, dense, **changes)
            self.assert_refused(["csr", "m.npz", "-o", "new.h5ad"], 1, ["m.npz", what], way_out)

        refused("'indices.npy' has", indices=indices[:-1].astype(np.int32))
        refused("'indptr.npy' has 20 elements, 21 are expected", indptr=indptr[:-1])
        refused("has column -1", indices=np.where(np.arange(count) == 3, -1, indices))
        refused(f"has column {M} of {M}", indices=np.where(np.arange(count) == 3, M, indices))
        refused("does not ascend", indptr=np.where(np.arange(21) == 4, count, indptr))
        refused("does not ascend", indptr=indptr + 1)
        refused("entry 0 has row 20 of 20", "coo", row=np.full(count, 20))
        refused("'row.npy' has", "coo", row=np.zeros(3, np.int32))
        refused("it has no 'shape.npy'", shape=None)
        refused("1 to 2^32 - 1", shape=np.array([-20, M]))
        refused("1 to 2^32 - 1", shape=np.array([20, 1 << 40]))
        refused("a matrix of format 'bsr'", way_out="tocsr", format=np.array(b"bsr"))
        refused("no sparse matrix", way_out="save_npz", format=None)
        refused("'<c16'", dtype=np.complex128)
        refused("'>f4'", dtype=">f4")
        refused("holds fractions", indices=indices + 0.5)
        refused("more than one axis", data=np.ones((count, 1)))
        # A bomb by what it says: 2^60 elements in a few bytes.
        for name, size in (("data", 1 << 40), ("indices", 1 << 40), ("indptr", 1 << 33)):
            with self.subTest(name):
                self.save_npz("m.npz", "csr", dense)
                self.forge("m.npz", f"{name}.npy", size)
                self.assert_refused(["csr", "m.npz", "-o", "new.h5ad"], 1, ["m.npz"], ".")
        self.save_npz("m.npz", "csr", dense)
        whole = (self.dir / "m.npz").read_bytes()
        for cut in (4, 30, len(whole) // 2, len(whole) - 1):
            (self.dir / "m.npz").write_bytes(whole[:cut])
            self.assert_refused(["csr", "m.npz", "-o", "new.h5ad"], 1, ["m.npz"], ".")
        random = np.random.default_rng(0)
        for at in random.integers(0, len(whole), 200):
            damaged = bytearray(whole)
            damaged[at] ^= 1 << int(random.integers(8))
            (self.dir / "m.npz").write_bytes(damaged)
            done = self.run_h5pack("csr", "m.npz", "-o", "out.h5ad", "--force", "--quiet")
            self.assertIn(done.returncode, (0, 1), done.stderr)
            if done.returncode == 0:
                np.testing.assert_array_equal(self.read(), dense)

    def forge(self, name, member, size):
        """Rewrites an archive so that one array says it has `size` elements, of the bytes that go with it."""
        with zipfile.ZipFile(self.dir / name) as archive:
            members = {each: archive.read(each) for each in archive.namelist()}
        header = members[member]
        dtype = np.load(io.BytesIO(header)).dtype
        fake = io.BytesIO()
        np.lib.format.write_array_header_1_0(fake, {"descr": dtype.str, "fortran_order": False, "shape": (size,)})
        members[member] = fake.getvalue() + header[-16:]
        with zipfile.ZipFile(self.dir / name, "w", zipfile.ZIP_DEFLATED, allowZip64=True) as archive:
            for each, content in members.items():
                with archive.open(each, "w", force_zip64=True) as out:
                    out.write(content)
        raw = bytearray((self.dir / name).read_bytes())
        # The size in the directory, which is what is trusted first.
        at = raw.rfind(member.encode()) - 46
        self.assertEqual(raw[at:at + 4], b"PK\x01\x02")
        raw[at + 24:at + 28] = struct.pack("<I", min(size * dtype.itemsize + len(fake.getvalue()), 0xfffffffe))
        (self.dir / name).write_bytes(raw)

    def test_what_is_no_matrix(self):
        (self.dir / "folder").mkdir()
        self.assert_refused(["csr", "folder", "-o", "new.h5ad"], 1, ["folder"], "name an")
        self.assert_refused(["csr", "absent.csv", "-o", "new.h5ad"], 1, ["absent.csv"], "cannot open")
        (self.dir / "m.bin").write_bytes(b"\0\1\2\3" * 10)
        self.assert_refused(["csr", "m.bin", "-o", "new.h5ad"], 1, ["m.bin", "neither"], "npz")
        self.write_h5("m.h5", images=np.zeros((2, 2, 2, 3), np.uint8))
        self.assert_refused(["csr", "m.h5", "-o", "new.h5ad"], 1, ["m.h5", "no sparse matrix"], "--images")
        self.save_npz("m.npz", "csr", random_matrix())
        self.assert_refused(["csr", "m.npz", "-o", "new.h5ad", "--row-from", "x"], 2, ["m.npz"], "CSV")
        self.assert_refused(["csr", "m.npz", "-o", "new.h5ad", "--images", "x"], 2, ["m.npz"], "HDF5")

    def test_duplicates_are_summed(self):
        dense = np.zeros((3, 4), int)
        rows, columns, values = [0, 0, 2, 0], [1, 1, 3, 0], [5, 6, 1, 2]
        self.save_npz("m.npz", "coo", dense, row=np.array(rows), col=np.array(columns), data=np.array(values, np.uint8))
        report = self.pack("m.npz")
        self.assertEqual((report["entries"], report["duplicates"]), (3, 1))
        np.testing.assert_array_equal(self.read(), [[2, 11, 0, 0], [0] * 4, [0, 0, 0, 1]])
        self.save_npz("m.npz", "coo", dense, row=np.array(rows), col=np.array(columns),
                      data=np.array([200, 100, 1, 2], np.uint8))
        self.assert_refused(["csr", "m.npz", "-o", "new.h5ad"], 1, ["m.npz", "row 0, column 1", "does not fit uint8"], "--dtype")

    @unittest.skipIf(scipy is None, "no scipy")
    def test_scipy_reads_and_writes_it(self):
        matrix = scipy.sparse.random(300, 50, 0.1, format="csr", random_state=1)
        for form in ("csr", "csc", "coo"):
            scipy.sparse.save_npz(self.dir / "m.npz", matrix.asformat(form))
            self.pack("m.npz")
            np.testing.assert_array_equal(self.read(), matrix.toarray())
        with h5py.File(self.dir / "out.h5ad") as file:
            x = file["X"]
            back = scipy.sparse.csr_matrix((x["data"][:], x["indices"][:], x["indptr"][:]), x.attrs["shape"])
            back.check_format()
            np.testing.assert_array_equal(back.toarray(), matrix.toarray()[file["obs/source_index"][:]])

    @unittest.skipIf(anndata is None, "no anndata")
    def test_anndata_reads_it(self):
        _, last, _ = self.write_ratings()
        self.pack("r.csv")
        self.read()
        for backed in (None, "r"):
            found = anndata.read_h5ad(self.dir / "out.h5ad", backed=backed)
            self.assertEqual((list(found.obs_names), list(found.var_names)), self.names)
            self.assertEqual(list(found.obs["source_index"]), list(self.order))
            np.testing.assert_array_equal(found.X[:].toarray(), last[self.order])


if __name__ == "__main__":
    unittest.main()
