"""h5pack append csr: the rows of a sparse file, then those of another source; a whole output, or none."""

import json
import unittest

import h5py
import numpy as np

import under_strace
from matrices import M, MatrixTest, anndata_file, mtx_text, random_matrix
from support import flip, tree


class CsrAppendTest(MatrixTest):
    def setUp(self):
        super().setUp()
        self.first, self.second = random_matrix(60), random_matrix(40, seed=5)
        self.names_of_first = anndata_file(self.dir / "one.h5ad", self.first)
        self.names_of_second = anndata_file(self.dir / "two.h5ad", self.second)
        self.both = np.concatenate([self.first, self.second])
        self.h5pack("csr", "one.h5ad", "-o", "old.h5ad", "--seed", 3)
        self.append = ["append", "old.h5ad", "csr", "two.h5ad", "-o", "new.h5ad"]

    def rows(self, name):
        with h5py.File(self.dir / name) as file:
            return {column: file["obs"][column][:] for column in file["obs"]}

    def test_rows_of_the_file_come_first(self):
        before = tree(self.dir)
        report, = self.h5pack_json(*self.append)
        self.assertEqual((report["command"], report["rows"], report["entries"]),
                         ("append csr", 100, np.count_nonzero(self.both)))
        after = tree(self.dir)
        after.pop("new.h5ad")
        self.assertEqual(after, before)
        self.h5pack("verify", "new.h5ad")
        np.testing.assert_array_equal(self.read("new.h5ad"), self.both)
        names = self.names_of_first[0] + self.names_of_second[0]
        self.assertEqual(self.names, ([names[row] for row in self.order], self.names_of_first[1]))
        old, new = self.rows("old.h5ad"), self.rows("new.h5ad")
        for column, values in old.items():
            np.testing.assert_array_equal(new[column][:60], values, column)
        np.testing.assert_array_equal(new["source_index"][60:], np.arange(60, 100))
        np.testing.assert_array_equal(new["score"][60:], np.arange(40) / 4)
        step, = json.loads(self.attributes["options"])["appended"]
        self.assertEqual((step["source"]["path"], step["num_samples"], step["first_source_row"]), ("two.h5ad", 60, 60))

    def test_shuffled_and_twice(self):
        self.h5pack(*self.append, "--order", "shuffled", "--seed", 5)
        np.testing.assert_array_equal(self.read("new.h5ad"), self.both)
        self.assertNotEqual(sorted(self.order[:60]), list(range(60)))
        self.h5pack("append", "new.h5ad", "csr", "two.h5ad", "-o", "newer.h5ad")
        self.h5pack("verify", "newer.h5ad")
        np.testing.assert_array_equal(self.read("newer.h5ad"), np.concatenate([self.both, self.second]))
        self.assertEqual(list(self.order[100:]), list(range(100, 140)))

    def test_other_kinds_of_source(self):
        self.h5pack("csr", "one.h5ad", "-o", "plain.h5ad", "--dtype", "uint16")
        (self.dir / "two.mtx").write_text(mtx_text(self.second, "integer"))
        self.assert_refused(["append", "plain.h5ad", "csr", "two.mtx", "-o", "new.h5ad"], 1, ["two.mtx"], "add it")
        with h5py.File(self.dir / "bare.h5ad", "w") as file, h5py.File(self.dir / "plain.h5ad") as plain:
            plain.copy("X", file)
        self.h5pack("append", "bare.h5ad", "csr", "two.mtx", "-o", "new.h5ad")
        found = self.read("new.h5ad")
        self.assertEqual(found.dtype, np.uint16)
        order = self.rows("plain.h5ad")["source_index"]
        np.testing.assert_array_equal(found, np.concatenate([self.first[order], self.second]))

    def test_what_is_refused(self):
        anndata_file(self.dir / "narrow.h5ad", self.second[:, :-1])
        append = ["append", "old.h5ad", "csr"]
        self.assert_refused([*append, "narrow.h5ad", "-o", "new.h5ad"], 1, [f"{M - 1} columns", f"has {M}"], "same columns")
        with h5py.File(self.dir / "two.h5ad", "a") as file:
            names = file["var/_index"][:]
            file["var/_index"][...] = names[::-1]
        self.assert_refused(self.append, 1, ["column 0", "two.h5ad", "old.h5ad"], "one order")
        anndata_file(self.dir / "two.h5ad", self.second, nullable=True)
        with h5py.File(self.dir / "two.h5ad", "a") as file:
            names = file["var/_index/values"][:]
            file["var/_index/values"][...] = names[::-1]
        self.assert_refused(self.append, 1, ["column 0", "two.h5ad", "old.h5ad"], "one order")
        anndata_file(self.dir / "two.h5ad", self.second)
        with h5py.File(self.dir / "two.h5ad", "a") as file:
            del file["obs/score"]
        self.assert_refused(self.append, 1, ["'score'", "two.h5ad"], "add it")
        self.assert_refused([*append, "one.h5ad", "-o", "old.h5ad", "--force"], 1, ["old.h5ad"], "-o|another")
        self.assert_refused(["append", "old.h5ad", "folder", ".", "-o", "new.h5ad"], 1, ["sparse matrix"], "csr SOURCE")
        self.assertFalse((self.dir / "new.h5ad").exists())

    def test_damage_of_the_file_is_not_copied(self):
        with h5py.File(self.dir / "old.h5ad") as file:
            place = file["X/data"].id.get_offset() + 4 * int(file["X/indptr"][7])
        flip(self.dir / "old.h5ad", place)
        self.assert_refused(self.append, 1, ["old.h5ad"], "again|repair|digest")
        self.assertFalse((self.dir / "new.h5ad").exists())

    @under_strace.required
    def test_killed_at_every_change(self):
        self.assert_whole_or_absent_when_killed("new.h5ad", [*self.append, "--threads", 1, "--quiet"])


if __name__ == "__main__":
    unittest.main()
