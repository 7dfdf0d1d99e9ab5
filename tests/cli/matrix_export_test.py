"""h5pack export of sparse matrices: other programs read what was packed, and it packs to the same again."""

import csv
import unittest
import zipfile

import h5py
import numpy as np

from matrices import M, MatrixTest, random_matrix

try:
    import scipy.io
    import scipy.sparse
except ImportError:
    scipy = None


class MatrixExportTest(MatrixTest):
    def setUp(self):
        super().setUp()
        self.dense = random_matrix()
        self.save_npz("m.npz", "csr", self.dense)
        self.pack("m.npz", "--dtype", "float32")
        self.read()

    def table(self, path):
        with open(self.dir / path, newline="") as file:
            return list(csv.reader(file))

    def arrays(self, path="e/matrix.npz"):
        with zipfile.ZipFile(self.dir / path) as archive:
            self.assertIsNone(archive.testzip())
        with np.load(self.dir / path) as archive:
            return dict(archive)

    def test_npz(self):
        report, = self.h5pack_json("export", "out.h5ad", "-o", "e")
        self.assertEqual((report["matrix"], report["rows"], report["columns"], report["entries"]),
                         ("matrix.npz", 200, M, np.count_nonzero(self.dense)))
        self.assertEqual(sorted(path.name for path in (self.dir / "e").iterdir()),
                         ["columns.csv", "matrix.npz", "rows.csv"])
        arrays = self.arrays()
        self.assertEqual({name: str(array.dtype) for name, array in arrays.items()},
                         {"indices": "int32", "indptr": "int32", "format": "|S3", "shape": "int64", "data": "float32"})
        self.assertEqual((arrays["format"].item(), list(arrays["shape"])), (b"csr", [200, M]))
        with h5py.File(self.dir / "out.h5ad") as file:
            for name in ("indices", "indptr", "data"):
                np.testing.assert_array_equal(arrays[name], file[f"X/{name}"])
        self.assertEqual(self.table("e/rows.csv"), [["name", "obs/source_index"],
                                                    *([str(row), str(row)] for row in self.order)])
        self.assertEqual(self.table("e/columns.csv"), [["name"], *([str(i)] for i in range(M))])

    @unittest.skipIf(scipy is None, "no scipy")
    def test_scipy_reads_both(self):
        for form in ("npz", "mtx"):
            self.h5pack("export", "out.h5ad", "-o", form, "--format", form)
        for matrix in (scipy.sparse.load_npz(self.dir / "npz/matrix.npz"), scipy.io.mmread(self.dir / "mtx/matrix.mtx")):
            np.testing.assert_array_equal(matrix.toarray(), self.dense[self.order])

    def test_packed_again_it_is_the_same(self):
        for dtype in ("float32", "float64", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64"):
            dense = self.dense % 100 * (1 if dtype[0] != "f" else 1 / 3)
            self.save_npz("m.npz", "csr", dense, dtype=dtype)
            self.pack("m.npz", "--order", "source")
            expected = self.read()
            for form in ("npz", "mtx"):
                with self.subTest(dtype, form=form):
                    self.h5pack("export", "out.h5ad", "-o", "e", "--format", form, *(["--force"] if form == "mtx" else []))
                    self.h5pack("csr", f"e/matrix.{form}", "-o", "again.h5ad", "--dtype", dtype, "--force")
                    found = self.read("again.h5ad")
                    self.assertEqual(found.dtype, dtype)
                    np.testing.assert_array_equal(found, expected)
            self.h5pack("export", "out.h5ad", "-o", "e", "--force")
            self.assertEqual(self.arrays()["data"].dtype, dtype)
            for path in (self.dir / "e").iterdir():
                path.unlink()
            (self.dir / "e").rmdir()

    def test_names_are_any_text(self):
        names = ["a,b", "two\nlines", 'say "so"', "Jörg", " blank "]
        quoted = ['"a,b"', '"two\nlines"', '"say ""so"""', "Jörg", " blank "]
        (self.dir / "r.csv").write_text("who,what\n" + "".join(f"{name},x{i}\n" for i, name in enumerate(quoted)))
        self.pack("r.csv", "--order", "source")
        self.h5pack("export", "out.h5ad", "-o", "e")
        self.assertEqual([row[0] for row in self.table("e/rows.csv")[1:]], names)
        self.assertEqual([row[0] for row in self.table("e/columns.csv")[1:]], [f"x{i}" for i in range(5)])

    def test_shards_and_third_party_files(self):
        self.h5pack("csr", "m.npz", "-o", "s.h5ad", "--shards", 4, "--dtype", "float32")
        self.h5pack("export", "s-*-of-00004.h5ad", "-o", "shards")
        self.h5pack("export", "out.h5ad", "-o", "one")
        shards, one = self.arrays("shards/matrix.npz"), self.arrays("one/matrix.npz")
        for name in one:
            np.testing.assert_array_equal(shards[name], one[name])
        self.assertEqual(self.table("shards/rows.csv"), self.table("one/rows.csv"))

    def test_a_folder_appears_whole_or_not_at_all(self):
        self.h5pack("export", "out.h5ad", "-o", "e")
        self.assert_refused(["export", "out.h5ad", "-o", "e"], 1, ["'e' exists"], "--force")
        self.h5pack("export", "out.h5ad", "-o", "e", "--force", "--format", "mtx")
        self.assertEqual(sorted(path.name for path in (self.dir / "e").iterdir()),
                         ["columns.csv", "matrix.mtx", "rows.csv"])
        (self.dir / "e" / "mine.txt").write_text("x")
        self.assert_refused(["export", "out.h5ad", "-o", "e", "--force"], 1, ["mine.txt"], "remove it")
        self.write_h5("i.h5", images=np.zeros((4, 8, 8, 3), np.uint8))
        self.assert_refused(["export", "i.h5", "-o", "new", "--format", "npz"], 2, ["i.h5"], "--format")
        # A file that is damaged leaves no folder.
        with h5py.File(self.dir / "out.h5ad", "r+") as file:
            file["X/indices"][700] = M
        self.assert_refused(["export", "out.h5ad", "-o", "new"], 1, ["out.h5ad", "digest"], "again")
        with h5py.File(self.dir / "out.h5ad", "r+") as file:
            del file["obs/sample_digests"]
        self.assert_refused(["export", "out.h5ad", "-o", "new"], 1, ["out.h5ad", f"column {M} of {M}"], "write it again")


if __name__ == "__main__":
    unittest.main()
