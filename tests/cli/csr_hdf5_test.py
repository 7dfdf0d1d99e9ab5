"""h5pack csr of HDF5 files: AnnData, 10x Genomics, groups as scipy has them, and what csr itself packed."""

import csv
import json
import pathlib
import subprocess
import sys
import unittest

import h5py
import numpy as np

from matrices import M, MatrixTest, anndata_file, compressed, mtx_text, random_matrix
from support import flip

try:
    import anndata
except ImportError:
    anndata = None

SCRIPT = pathlib.Path(__file__).parent.parent / "scripts" / "make_sparse_file.py"
ROWS, COLUMNS = 230, 50


class CsrHdf5Test(MatrixTest):
    def assert_names(self, names):
        self.assertEqual(self.names, ([names[0][row] for row in self.order], names[1]))

    def test_anndata(self):
        dense = random_matrix()
        options = {"gzip": {"chunks": (50,), "compression": "gzip", "shuffle": True}, "plain": {}, "lzf": {
            "chunks": (64,), "compression": "lzf"}, "chunked": {"chunks": (33,)}}
        for form in ("csr", "csc"):
            for storage, more in options.items():
                for text in (None, "S40"):
                    with self.subTest(form, storage=storage, text=text):
                        names = anndata_file(self.dir / "m.h5ad", dense, form, text=text, **more)
                        report = self.pack("m.h5ad")
                        self.assertEqual((report["entries"], report["dtype"], report["source"]["format"]),
                                         (np.count_nonzero(dense), "float32", form))
                        np.testing.assert_array_equal(self.read(), dense)
                        self.assert_names(names)
                        self.assertNotEqual(list(self.order), sorted(self.order))
                        self.pack("m.h5ad", "--transpose")
                        np.testing.assert_array_equal(self.read(), dense.T)
                        self.assert_names(names[::-1])

    def test_names_that_may_be_missing(self):
        for form in ("csr", "csc"):
            names = anndata_file(self.dir / "m.h5ad", random_matrix(), form, nullable=True)
            left_out = self.pack("m.h5ad")["left_out"]
            self.read()
            self.assert_names(names)
            self.assertFalse([name for name in left_out if "_index" in name], left_out)

    def add_kinds(self, path, texts, codes, nullable=False):
        """A column of texts, as anndata has it."""
        with h5py.File(self.dir / path, "a") as file:
            del file["obs/kind"]
            file["obs/kind/codes"] = codes
            name = "obs/kind/categories"
            if nullable:
                file[f"{name}/mask"] = np.zeros(len(texts), bool)
                name += "/values"
            file[name] = np.array(texts, object)

    def kinds(self, path):
        with h5py.File(self.dir / path) as file:
            return [text.decode() for text in file["obs/kind/categories"]], file["obs/kind/codes"][:]

    def test_categories(self):
        texts, codes = ["T-Zelle", "B", "größer"], (np.arange(200) % 4 - 1).astype(np.int8)
        for nullable in (False, True):
            anndata_file(self.dir / "m.h5ad", random_matrix())
            self.add_kinds("m.h5ad", texts, codes, nullable)
            self.assertEqual(self.pack("m.h5ad")["left_out"], ["obsm/pca"])
            self.read()
            found, numbers = self.kinds("out.h5ad")
            self.assertEqual((found, numbers.dtype), (texts, np.int8))
            np.testing.assert_array_equal(numbers, codes[self.order])
        info, = self.h5pack_json("info", "out.h5ad")
        self.assertIn("obs/kind/codes", [field["name"] for field in info["fields"]])
        self.assertFalse([text for text in info["left_out"] if "kind" in text])
        # Shards, what becomes of them, and rows behind others that number the same texts differently.
        self.h5pack("csr", "m.h5ad", "-o", "s.h5ad", "--shards", 3)
        self.pack("s-*-of-00003.h5ad", "--order", "source")
        np.testing.assert_array_equal(self.kinds("out.h5ad")[1], codes)
        anndata_file(self.dir / "more.h5ad", random_matrix(40))
        for wide in (np.int8, np.int32):
            self.add_kinds("more.h5ad", ["größer", "B"], np.array([1, 0, -1, 0] * 10, wide))
            self.h5pack("append", "out.h5ad", "csr", "more.h5ad", "-o", "all.h5ad", "--force")
            found, numbers = self.kinds("all.h5ad")
            self.assertEqual(numbers.dtype, np.int8)
            self.assertEqual((found, list(numbers[:200]), list(numbers[200:])), (texts, list(codes), [1, 2, -1, 2] * 10))
        self.h5pack("verify", "all.h5ad")
        self.h5pack("export", "all.h5ad", "-o", "e")
        with open(self.dir / "e" / "rows.csv", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual([row["obs/kind/codes"] for row in rows],
                         ["" if code < 0 else texts[code] for code in [*codes, *[1, 2, -1, 2] * 10]])

    @unittest.skipIf(anndata is None, "no anndata")
    def test_anndata_reads_categories(self):
        texts, codes = ["T-Zelle", "B"], (np.arange(200) % 3 - 1).astype(np.int8)
        anndata_file(self.dir / "m.h5ad", random_matrix())
        self.add_kinds("m.h5ad", texts, codes)
        self.pack("m.h5ad")
        self.read()
        table = anndata.read_h5ad(self.dir / "out.h5ad").obs["kind"]
        self.assertEqual(list(table.cat.categories), texts)
        self.assertEqual([None if value != value else value for value in table],
                         [None if code < 0 else texts[code] for code in codes[self.order]])

    def test_categories_that_do_not_fit(self):
        for name in ("one.h5ad", "two.h5ad"):
            anndata_file(self.dir / name, random_matrix())
        self.add_kinds("one.h5ad", ["a", "b"], np.zeros(200, np.int8))
        self.h5pack("csr", "one.h5ad", "-o", "old.h5ad")
        append = ["append", "old.h5ad", "csr", "two.h5ad", "-o", "new.h5ad"]
        self.add_kinds("two.h5ad", ["a", "c"], np.zeros(200, np.int8))
        self.assert_refused(append, 1, ["'c'", "'kind'", "two.h5ad", "old.h5ad"], "together|remove")
        self.add_kinds("two.h5ad", ["a"], np.full(200, 5, np.int8))
        self.assert_refused(append, 1, ["two.h5ad", "category 5 of 1"], "write it again")
        self.assert_refused(["csr", "two.h5ad", "-o", "new.h5ad"], 1, ["two.h5ad", "'kind'", "number 5"], "are -1 to 0")
        with h5py.File(self.dir / "two.h5ad", "a") as file:
            del file["obs/kind"]
            file["obs/kind"] = np.zeros(200, np.int8)
        self.assert_refused(append, 1, ["'kind'", "categories in 'old.h5ad'", "numbers in 'two.h5ad'"], "the same in both")
        # Unsigned numbers have no -1.
        self.add_kinds("two.h5ad", ["a"], np.full(200, -1, np.int8))
        self.add_kinds("one.h5ad", ["a"], np.zeros(200, np.uint8))
        self.h5pack("csr", "one.h5ad", "-o", "old.h5ad", "--force")
        self.assert_refused(append, 1, ["'kind'", "old.h5ad", "uint8", "-1"], "together")
        # Numbers beside them that are no places, or categories that are no texts, are only numbers.
        for codes, texts in ((np.zeros(200, np.float32), ["a"]), (np.zeros(200, np.int8), [7])):
            self.add_kinds("two.h5ad", ["a"], codes)
            with h5py.File(self.dir / "two.h5ad", "a") as file:
                if texts == [7]:
                    del file["obs/kind/categories"]
                    file["obs/kind/categories"] = [7]
            left_out = self.pack("two.h5ad")["left_out"]
            self.assertIn("obs/kind/codes", left_out)
            self.assertEqual("obs/kind/categories int64 [1]" in left_out, texts == [7])
        # Files that number them differently have none in common.
        for i, texts in enumerate((["a", "b"], ["b", "a"])):
            anndata_file(self.dir / f"s-0000{i}-of-00002.h5ad", random_matrix())
            self.add_kinds(f"s-0000{i}-of-00002.h5ad", texts, np.zeros(200, np.int8))
        self.assertIn("obs/kind/codes", self.pack("s-*-of-00002.h5ad")["left_out"])

    def test_what_does_not_fit_the_rows_is_told(self):
        anndata_file(self.dir / "m.h5ad", random_matrix())
        with h5py.File(self.dir / "m.h5ad", "a") as file:
            file["obs/short"] = np.zeros(150, np.int8)
            file["obs/sample_digests"] = np.zeros(200)
            file["obs/word"] = np.array(["text"] * 200, object)
            del file["obs/_index"]
            file["obs/_index"] = np.array(["name"] * 199, object)
        report = self.pack("m.h5ad")
        self.assertEqual(sorted(report["left_out"]), [
            "obs/_index string [199]", "obs/kind/codes", "obs/sample_digests", "obs/short int8 [150]",
            "obs/word string [200]", "obsm/pca"])
        self.read()
        self.assertEqual(self.names[0], [str(row) for row in self.order])

    def test_damage_is_not_copied(self):
        anndata_file(self.dir / "m.h5ad", random_matrix())
        self.pack("m.h5ad")
        self.assertIn("all 200 rows match their digests", self.h5pack("verify", "out.h5ad"))
        with h5py.File(self.dir / "out.h5ad") as file:
            place = file["X/data"].id.get_offset() + 4 * int(file["X/indptr"][7])
        flip(self.dir / "out.h5ad", place)
        self.assertIn("DAMAGED, 199 of 200 rows match", self.run_h5pack("verify", "out.h5ad").stdout)
        for command in (["csr", "out.h5ad", "-o", "new.h5ad"], ["csr", "out.h5ad", "-o", "new.h5ad", "--dry-run"],
                        ["append", "m.h5ad", "csr", "out.h5ad", "-o", "new.h5ad"], ["export", "out.h5ad", "-o", "new"]):
            with self.subTest(command):
                self.assert_refused(command, 1, ["out.h5ad", "digest"], "again")

    def test_numbers_of_rows_are_carried_over(self):
        dense = random_matrix()
        anndata_file(self.dir / "m.h5ad", dense)
        report = self.pack("m.h5ad")
        self.assertEqual(report["left_out"], ["obs/kind/codes", "obsm/pca"])
        self.assertIn("not carried over: 'obs/kind/codes'", self.h5pack("csr", "m.h5ad", "-o", "two.h5ad"))
        with h5py.File(self.dir / "out.h5ad") as file:
            order = file["obs/source_index"][:]
            self.assertEqual((file["obs/score"].dtype, file["obs/batch"].dtype), (np.float32, np.int8))
            np.testing.assert_array_equal(file["obs/score"], order / 4)
            np.testing.assert_array_equal(file["obs/batch"], order % 3)
        epoch, = self.h5pack_json("stream", "out.h5ad", "--batch", 8, "--fields", "obs/score")
        self.assertEqual(epoch["images"], 200)
        # Rows of the output are other ones, or lie across those of the file.
        self.assertEqual(self.pack("m.h5ad", "--transpose")["left_out"], ["obs/kind/codes", "obsm/pca", "batch", "score"])
        anndata_file(self.dir / "m.h5ad", dense, "csc")
        self.assertEqual(self.pack("m.h5ad")["left_out"], [
            "obs/batch int8 [200]", "obs/kind/codes int8 [200]", "obs/score float32 [200]", "obsm/pca float64 [200,5]"])
        with h5py.File(self.dir / "out.h5ad") as file:
            self.assertEqual(sorted(file["obs"]), ["_index", "sample_digests", "source_index"])

    def test_a_layer_and_an_index_of_another_name(self):
        dense = random_matrix()
        names = anndata_file(self.dir / "m.h5ad", dense, group="layers/counts", index="barcode")
        self.pack("m.h5ad", "--images", "layers/counts", "--dtype", "uint16")
        found = self.read()
        np.testing.assert_array_equal(found, dense)
        self.assertEqual(found.dtype, np.uint16)
        self.assert_names(names)
        self.assertEqual(json.loads(self.attributes["options"])["source"]["images"], "layers/counts")
        self.assert_refused(["csr", "m.h5ad", "-o", "new.h5ad", "--images", "layers/none"], 1, ["layers/none"], "counts")

    def test_what_others_write(self):
        for case in ("anndata", "gzip", "latest", "lzf", "big_endian", "unsigned", "layer", "genomics", "root_group",
                     "old_anndata", "scaleoffset"):
            with self.subTest(case):
                subprocess.run([sys.executable, SCRIPT, case, self.dir / "m.h5"], check=True)
                report = self.pack("m.h5")
                self.assertEqual((report["rows"], report["columns"]), (ROWS, COLUMNS))
                found = self.read()
                row, column = 20, (5 * 0 + 3 * 20) % COLUMNS
                self.assertEqual(found[row, column], 100 * row + column)
                self.assertEqual(np.count_nonzero(found), report["entries"])
        self.assertEqual(self.names[1], [str(i) for i in range(COLUMNS)])

    def test_10x_genomics(self):
        dense = random_matrix()
        data, indices, indptr = compressed(dense)
        for genes in ("features/id", "genes"):
            with h5py.File(self.dir / "m.h5", "w") as file:
                for name, array in {"data": data, "indices": indices, "indptr": indptr,
                                    "shape": np.array([M, 200])}.items():
                    file.create_dataset(f"matrix/{name}", data=array, compression="gzip")
                file["matrix/barcodes"] = np.array([f"AC{i}-1".encode() for i in range(200)])
                file[f"matrix/{genes}"] = np.array([f"ENSG{i}".encode() for i in range(M)])
            self.assertEqual(self.pack("m.h5")["dtype"], "int64")
            np.testing.assert_array_equal(self.read(), dense)
            self.assert_names(([f"AC{i}-1" for i in range(200)], [f"ENSG{i}" for i in range(M)]))

    def test_orders_of_what_csr_packed(self):
        """Rows keep the numbers that they had in the first source."""
        dense = random_matrix()
        names = anndata_file(self.dir / "m.h5ad", dense)
        self.h5pack("csr", "m.h5ad", "-o", "first.h5ad", "--seed", 3)
        orders = {}
        for order in ("stored", "source", "shuffled"):
            self.pack("first.h5ad", "--order", order, "--seed", 9)
            np.testing.assert_array_equal(self.read(), dense)
            self.assert_names(names)
            orders[order] = list(self.order)
            self.assertEqual((self.attributes["order"], self.attributes["seed"]),
                             {"stored": (b"shuffled", 3), "source": (b"source", 9), "shuffled": (b"shuffled", 9)}[order])
        with h5py.File(self.dir / "first.h5ad") as file:
            self.assertEqual(orders["stored"], list(file["obs/source_index"]))
            np.testing.assert_array_equal(file["obs/sample_digests"][:][np.argsort(orders["stored"])],
                                          self.digests_by_source())
        self.assertEqual(orders["source"], list(range(200)))
        self.assertNotEqual(orders["shuffled"], orders["stored"])

    def digests_by_source(self):
        with h5py.File(self.dir / "out.h5ad") as file:
            return file["obs/sample_digests"][:][np.argsort(file["obs/source_index"][:])]

    def test_some_rows(self):
        dense = random_matrix()
        wanted = [*range(10, 20), 0, 199, 55]
        anndata_file(self.dir / "m.h5ad", dense)
        self.save_npz("m.npz", "coo", dense)
        (self.dir / "m.mtx").write_text(mtx_text(dense))
        for name in ("m.h5ad", "m.npz", "m.mtx"):
            for order in ("shuffled", "source"):
                with self.subTest(name, order=order):
                    report = self.pack(name, "--rows", "10:20,0,199,55", "--order", order)
                    self.assertEqual((report["rows"], report["columns"]), (13, M))
                    found = self.read(rows_of_source=200)
                    self.assertEqual(sorted(self.order), sorted(wanted))
                    np.testing.assert_array_equal(found[wanted], dense[wanted])
                    self.assertEqual(report["entries"], np.count_nonzero(dense[wanted]))
                    report, = self.h5pack_json("csr", name, "-o", "x.h5ad", "--rows", "10:20,0,199,55", "--dry-run")
                    self.assertEqual((report["rows"], report["entries"]), (13, np.count_nonzero(dense[wanted])))
            self.assert_refused(["csr", name, "-o", "new.h5ad", "--rows", "100:201"], 2, [name, "no row 200"], "--rows")

    def test_memory_is_small_whatever_a_column_has(self):
        """Columns of 30,000 entries, of which not one fits at once."""
        random = np.random.default_rng(2)
        dense = np.where(random.random((30_000, 40)) < 0.9, random.integers(1, 9, (30_000, 40)), 0)
        anndata_file(self.dir / "m.h5ad", dense, "csc", chunks=(1000,), compression="gzip")
        report = self.pack("m.h5ad", "--memory-budget", "6MiB")
        self.assertGreater(report["buckets"], 5)
        np.testing.assert_array_equal(self.read(), dense)
        self.assert_refused(["csr", "m.h5ad", "-o", "new.h5ad", "--memory-budget", "1MiB"], 1, ["m.h5ad"], "raise")

    # ---- Shards ----

    def test_shards(self):
        dense = random_matrix()
        names = anndata_file(self.dir / "m.h5ad", dense)
        self.pack("m.h5ad", "--seed", 5)
        self.read()
        order = list(self.order)
        report, = self.h5pack_json("csr", "m.h5ad", "-o", "s.h5ad", "--seed", 5, "--shards", 3)
        self.assertEqual((report["path"], report["shards"], report["rows"]), ("s-*-of-00003.h5ad", 3, 200))
        files = sorted(path.name for path in self.dir.glob("s*"))
        self.assertEqual(files, [f"s-0000{i}-of-00003.h5ad" for i in range(3)])
        self.assertEqual(report["bytes"], sum((self.dir / name).stat().st_size for name in files))
        found = np.zeros_like(dense)
        joined, attributes = [], []
        for name in files:
            found += self.read(name, rows_of_source=200).astype(int)
            joined += list(self.order)
            attributes.append(self.attributes)
            self.assert_names(names)
        self.assertEqual(joined, order)
        np.testing.assert_array_equal(found, dense)
        self.assertEqual([a["shard_first_row"] for a in attributes], [0, 66, 133])
        self.assertEqual(len({a["shard_set"] for a in attributes}), 1)
        info, = self.h5pack_json("info", "s-*-of-00003.h5ad")
        self.assertEqual((info["shape"], info["sparse"]["num_entries"]), ([200, M], np.count_nonzero(dense)))
        whole, shards = (self.h5pack_json("stream", name, "--batch", 8, "--digest")[0]
                         for name in ("out.h5ad", "s-*-of-00003.h5ad"))
        self.assertEqual((whole["images"], whole["pixel_digest"]), (shards["images"], shards["pixel_digest"]))
        self.assertEqual(self.run_h5pack("verify", "s-*-of-00003.h5ad").returncode, 0)
        # Joined again.
        self.pack("s-*-of-00003.h5ad", "--order", "source")
        np.testing.assert_array_equal(self.read(), dense)
        self.assertEqual(list(self.order), list(range(200)))
        self.assert_names(names)

    def test_wrong_shards(self):
        anndata_file(self.dir / "m.h5ad", random_matrix())
        pack = ["csr", "m.h5ad", "-o", "s.h5ad", "--shards"]
        self.assert_refused([*pack, 0], 2, ["--shards"], "1")
        self.assert_refused([*pack, 5000], 2, ["4096"], "1 to")
        self.assert_refused([*pack, 201], 2, ["m.h5ad", "200 rows", "201 shards"], "at most 200")
        (self.dir / "s-00001-of-00002.h5ad").write_bytes(b"x")
        self.assert_refused([*pack, 2], 1, ["'s-00001-of-00002.h5ad' exists"], "--force")
        self.h5pack(*pack, 2, "--force")
        self.assert_refused(["csr", "s-*-of-00002.h5ad", "-o", "s-00001-of-00002.h5ad", "--force"], 1,
                            ["s-00001-of-00002.h5ad", "input"], "another")
        (self.dir / "s-00000-of-00002.h5ad").unlink()
        self.assert_refused(["csr", "s-*-of-00002.h5ad", "-o", "new.h5ad"], 1, ["s-00000-of-00002.h5ad"], "missing")

    def test_rows_are_added_as_another_file(self):
        """What append of a sparse matrix says to do."""
        first, second = random_matrix(seed=1), random_matrix(seed=2)
        for i, dense in enumerate((first, second)):
            anndata_file(self.dir / "m.h5ad", dense)
            self.h5pack("csr", "m.h5ad", "-o", f"both-0000{i}-of-00002.h5ad")
        info, = self.h5pack_json("info", "both-*-of-00002.h5ad")
        self.assertEqual(info["shape"], [400, M])
        epoch, = self.h5pack_json("stream", "both-*-of-00002.h5ad", "--batch", 8)
        self.assertEqual(epoch["images"], 400)


if __name__ == "__main__":
    unittest.main()
