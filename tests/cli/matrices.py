"""Small matrices in each kind of file, and what tests of packing them share."""

import h5py
import numpy as np

from support import CliTest

M = 37


def random_matrix(rows=200, columns=M, density=0.15, seed=3):
    """Dense [N,M]; some rows and columns are empty."""
    random = np.random.default_rng(seed)
    dense = np.where(random.random((rows, columns)) < density, random.integers(1, 1000, (rows, columns)), 0)
    dense[5] = dense[rows - 1] = 0
    dense[:, 7] = 0
    return dense


def compressed(dense):
    """data, indices, indptr of the rows."""
    rows, columns = np.nonzero(dense)
    return dense[rows, columns], columns, np.searchsorted(rows, np.arange(len(dense) + 1))


def npz_bytes(form, dense, dtype=np.float64, index_dtype=np.int32, **changes):
    """What scipy.sparse.save_npz() writes."""
    if form == "coo":
        rows, columns = np.nonzero(dense)
        # In no order.
        mixed = np.random.default_rng(0).permutation(len(rows))
        arrays = {"row": rows[mixed], "col": columns[mixed]}
        data = dense[rows, columns][mixed]
    else:
        data, indices, indptr = compressed(dense if form == "csr" else dense.T)
        arrays = {"indices": indices, "indptr": indptr}
    arrays = {name: array.astype(index_dtype) for name, array in arrays.items()}
    arrays |= {"format": np.array(form.encode()), "shape": np.array(dense.shape), "data": data.astype(dtype)}
    arrays |= changes
    return {name: array for name, array in arrays.items() if array is not None}


def mtx_text(dense, field="real", symmetry="general"):
    rows, columns = np.nonzero(np.tril(dense) if symmetry != "general" else dense)
    lines = [f"%%MatrixMarket matrix coordinate {field} {symmetry}", "% a comment", "",
             f"{dense.shape[0]} {dense.shape[1]} {len(rows)}"]
    for row, column in zip(rows, columns):
        lines.append(f"{row + 1} {column + 1}" + ("" if field == "pattern" else f" {dense[row, column]}"))
    return "\n".join(lines) + "\n"


def anndata_file(path, dense, form="csr", group="X", text=None, index="_index", attribute=str, nullable=False,
                 **options):
    """What anndata writes: names are texts of any length, or of the type `text`, attributes of the type `attribute`.

    nullable: names may be missing, as pandas 3 has them.
    """
    def stored(count):
        return options | ({"chunks": (min(options["chunks"][0], count),)} if "chunks" in options else {})

    rows, columns = dense.shape
    data, indices, indptr = compressed(dense if form == "csr" else dense.T)
    with h5py.File(path, "w") as file:
        file.attrs.update({"encoding-type": attribute("anndata"), "encoding-version": attribute("0.1.0")})
        matrix = file.create_group(group)
        for name, array in (("data", data.astype(np.float32)), ("indices", indices.astype(np.int32)),
                            ("indptr", indptr.astype(np.int32))):
            matrix.create_dataset(name, data=array, **stored(len(array)))
        matrix.attrs.update({"encoding-type": attribute(f"{form}_matrix"), "encoding-version": attribute("0.1.0"),
                             "shape": np.array(dense.shape)})
        for table, count, word in (("obs", rows, "cell"), ("var", columns, "Gen-é")):
            names = [f"{word} {i}" * (1 + i % 3) for i in range(count)]
            path_of_names = f"{table}/{index}"
            if nullable:
                file.create_group(path_of_names).attrs["encoding-type"] = attribute("nullable-string-array")
                file[f"{path_of_names}/mask"] = np.zeros(count, bool)
                path_of_names += "/values"
            if text is None:
                file.create_dataset(path_of_names, data=np.array(names, object), dtype=h5py.string_dtype(),
                                    **stored(count))
            else:
                file.create_dataset(path_of_names, data=np.array([name.encode() for name in names]).astype(text),
                                    **stored(count))
            file[table].attrs.update({"encoding-type": attribute("dataframe"), "_index": attribute(index)})
        file["obs/score"] = (np.arange(rows) / 4).astype(np.float32)
        file["obs/batch"] = (np.arange(rows) % 3).astype(np.int8)
        file["obs/kind/codes"] = np.zeros(rows, np.int8)
        file["obsm/pca"] = np.zeros((rows, 5))
    return [f"cell {i}" * (1 + i % 3) for i in range(rows)], [f"Gen-é {i}" * (1 + i % 3) for i in range(columns)]


class MatrixTest(CliTest):
    def save_npz(self, name, form, dense, pack=np.savez_compressed, **changes):
        pack(self.dir / name, **npz_bytes(form, dense, **changes))

    def pack(self, *arguments):
        report, = self.h5pack_json("csr", *arguments, "-o", "out.h5ad", "--force")
        return report

    def read(self, path="out.h5ad", rows_of_source=None):
        """The matrix in the order of the source, dense, and what is known of it; all invariants are checked.

        rows_of_source: of which the file holds some.
        """
        with h5py.File(self.dir / path) as file:
            x = file["X"]
            indptr, indices, data = x["indptr"][:], x["indices"][:], x["data"][:]
            rows, columns = x.attrs["shape"]
            source = file["obs/source_index"][:]
            digests = file["obs/sample_digests"][:]
            names = [name.decode() for name in file["obs/_index"][:]], [name.decode() for name in file["var/_index"][:]]
            attributes = dict(file.attrs)
            self.assertEqual(x.attrs["encoding-type"], b"csr_matrix")
            for name in ("indptr", "indices", "data"):
                self.assertIsNone(x[name].chunks)
        self.assertEqual(attributes["chunkio_format"], 3)
        self.assertEqual((indptr.dtype, indices.dtype), (np.int64, np.int32))
        self.assertEqual((indptr[0], indptr[-1], len(indptr)), (0, len(data), rows + 1))
        if rows_of_source is None:
            self.assertEqual(sorted(source), list(range(rows)))
        self.assertEqual(len(digests), rows)
        dense = np.zeros((rows_of_source or rows, columns), data.dtype)
        for row in range(rows):
            part = slice(indptr[row], indptr[row + 1])
            self.assertTrue((np.diff(indices[part]) > 0).all())
            dense[source[row], indices[part]] = data[part]
        self.order, self.names, self.attributes = source, names, attributes
        return dense
