"""h5pack on files that a CSR matrix leads."""

import pathlib
import subprocess
import sys
import unittest

import h5py

from matrices import anndata_file, random_matrix
from support import CliTest

SCRIPT = pathlib.Path(__file__).parent.parent / "scripts" / "make_sparse_file.py"
ROWS, COLUMNS = 230, 50


class SparseTest(CliTest):
    def sparse_file(self, case, name=None):
        name = name or f"{case}.h5"
        subprocess.run([sys.executable, SCRIPT, case, self.dir / name], check=True)
        return name

    def test_info(self):
        name = self.sparse_file("gzip")
        info = self.h5pack_json("info", name)[0]
        self.assertEqual((info["leading"], info["shape"], info["dtype"]), ("X", [ROWS, COLUMNS], "float32"))
        with h5py.File(self.dir / name) as file:
            values = len(file["X/data"])
        self.assertEqual(info["sparse"], {"columns": COLUMNS, "num_entries": values, "index_dtype": "int32"})
        self.assertEqual([field["name"] for field in info["fields"]], ["obs/label", "obs/weight"])
        text = self.h5pack("info", name)
        self.assertRegex(text, rf"CSR matrix, {values / ROWS:.1f} entries a row \(\d+\.\d\d %\), columns int32")
        self.assertIn("filtered by shuffle + deflate", text)
        self.assertIsNone(self.h5pack_json("info", self.images())[0]["sparse"])

    def images(self):
        self.write_h5("images.h5", images={"shape": (4, 8, 8, 3), "dtype": "u1"})
        return "images.h5"

    def test_stream(self):
        digests = set()
        for case in ("anndata", "gzip", "latest", "lzf"):
            with self.subTest(case):
                epochs = self.h5pack_json("stream", self.sparse_file(case), "--batch", 7, "--epochs", 2, "--fields",
                                          "obs/weight", "--digest", "--window-bytes", "2KiB")
                self.assertEqual([epoch["images"] for epoch in epochs], [ROWS, ROWS])
                self.assertNotEqual(epochs[0]["order_digest"], epochs[1]["order_digest"])
                digests |= {epoch["pixel_digest"] for epoch in epochs}
        self.assertEqual(len(digests), 1)
        self.assertRegex(self.h5pack("stream", "anndata.h5"), r"230 samples of X, float32 \[50\]")

    def test_verify(self):
        self.assertIn("no digests", self.h5pack("verify", self.sparse_file("anndata")))
        for case, words in (("column_too_large", "a column is none of the 50"), ("decreasing", "row 99 lies at entries")):
            with self.subTest(case):
                result = self.run_h5pack("verify", self.sparse_file(case))
                self.assertEqual(result.returncode, 4, result.stderr)
                self.assertIn(words, result.stdout)

    def test_verify_reads_names_of_any_length(self):
        for options in {}, {"chunks": (30,), "compression": "gzip"}, {"chunks": (30,), "compression": "lzf"}:
            anndata_file(self.dir / "m.h5ad", random_matrix(), **options)
            result = self.run_h5pack("verify", "m.h5ad")
            self.assertEqual(result.returncode, 0, result.stdout + result.stderr)

    def test_doctor(self):
        report = self.h5pack_json("doctor", self.sparse_file("anndata"), "--step-ms", 1, "--batch", 8, "--seconds",
                                  0.2)[0]
        self.assertEqual(report["samples"], ROWS)

    def test_what_needs_images_says_so(self):
        self.sparse_file("anndata")
        for command in (["preview", "anndata.h5", "-o", "out.png"], ["tune", "anndata.h5"]):
            with self.subTest(command[0]):
                self.assert_refused(command, 1, ["anndata.h5"], "images")
        (self.dir / "photos").mkdir()
        for command in (["repack", "anndata.h5", "-o", "out.h5"], ["append", "anndata.h5", "folder", "photos", "-o", "out.h5"],
                        ["link", "anndata.h5", "-o", "out.h5"]):
            with self.subTest(command[0]):
                self.assert_refused(command, 1, ["anndata.h5", "holds a sparse matrix"], "h5pack (csr|append)")

    def test_what_csr_packs_is_read(self):
        entries = [(row, column) for row in range(1, 41) for column in range(1, 9) if row * column % 3 == 1]
        (self.dir / "m.mtx").write_text(f"%%MatrixMarket matrix coordinate real general\n40 8 {len(entries)}\n" + "".join(
            f"{row} {column} {row * 10 + column}\n" for row, column in entries))
        digests = set()
        for order in ("source", "shuffled"):
            self.h5pack("csr", "m.mtx", "-o", f"{order}.h5ad", "--order", order)
            info = self.h5pack_json("info", f"{order}.h5ad")[0]
            self.assertEqual((info["format_version"], info["order"], info["shape"]), (3, order, [40, 8]))
            self.assertEqual(info["sparse"]["num_entries"], len(entries))
            self.assertEqual([field["name"] for field in info["fields"]], ["obs/source_index"])
            epoch = self.h5pack_json("stream", f"{order}.h5ad", "--batch", 7, "--digest")[0]
            self.assertEqual(epoch["images"], 40)
            digests.add(epoch["pixel_digest"])  # of rows as the source counts them
            self.assertEqual(self.run_h5pack("verify", f"{order}.h5ad").returncode, 0)
        self.assertEqual(len(digests), 1)

    def test_damage_is_one_line(self):
        for case, words in (("columns_first", "CSC"), ("without_shape", "shape"), ("bad_end", "indptr")):
            for command in ("info", "stream", "verify"):
                with self.subTest(case + " " + command):
                    result = self.run_h5pack(command, self.sparse_file(case))
                    self.assertIn(result.returncode, (1, 4))
                    self.assertIn(words, result.stderr + result.stdout)
                    self.assertEqual((result.stderr + result.stdout).strip().count("\n"), 0, result.stderr)


if __name__ == "__main__":
    unittest.main()
