"""h5pack csr on what does not fit its memory."""

import json
import unittest

import h5py
import numpy as np

from support import CliTest


class LargeCsrTest(CliTest):
    def test_memory_is_bounded(self):
        """Four million lines of a CSV with 32 MiB."""
        random = np.random.default_rng(0)
        with open(self.dir / "r.csv", "w") as file:
            file.write("user,item,rating\n")
            for _ in range(40):
                users, items = random.integers(0, 50_000, 100_000), random.zipf(1.2, 100_000) % 20_000
                file.write("".join(f"{user},{item},{item % 5}\n" for user, item in zip(users, items)))
        report = self.pack_with_little("r.csv")
        self.assertEqual(report["entries"] + report["duplicates"], 4_000_000)

    def test_memory_is_bounded_for_long_columns(self):
        """Forty columns of a hundred thousand entries, stored by columns and compressed."""
        rows, columns = 100_000, 40
        with h5py.File(self.dir / "m.h5ad", "w") as file:
            matrix = file.create_group("X")
            matrix.attrs.update({"encoding-type": "csc_matrix", "encoding-version": "0.1.0",
                                 "shape": np.array([rows, columns])})
            matrix["indptr"] = np.arange(columns + 1) * rows
            indices, data = (matrix.create_dataset(name, (rows * columns,), dtype, chunks=(10_000,), compression="gzip")
                             for name, dtype in (("indices", np.int32), ("data", np.float32)))
            for column in range(columns):
                part = slice(column * rows, (column + 1) * rows)
                indices[part], data[part] = np.arange(rows), column + 1
            file.create_dataset("obs/_index", (rows,), h5py.string_dtype())[:] = [f"cell {row}" for row in range(rows)]
            file["obs"].attrs["_index"] = "_index"
        report = self.pack_with_little("m.h5ad")
        self.assertEqual((report["rows"], report["entries"]), (rows, rows * columns))
        with h5py.File(self.dir / "out.h5ad") as file:
            np.testing.assert_array_equal(file["X/data"][:columns], np.arange(columns) + 1)

    def pack_with_little(self, source):
        out, peak = self.h5pack_peak("csr", source, "-o", "out.h5ad", "--memory-budget", "32MiB", "--json", "--quiet")
        report = json.loads(out)
        self.assertGreater(report["buckets"], 3)
        self.assert_memory(peak, 32 << 20)
        return report


if __name__ == "__main__":
    unittest.main()
