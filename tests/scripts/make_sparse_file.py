#!/usr/bin/env python3
"""Writes one HDF5 file with a sparse matrix, as AnnData, 10x Genomics and others do: make_sparse_file.py CASE FILE.

The matrix is that of support/sparse_files.hpp: 230 rows, 50 columns.
"""
import sys

import h5py
import numpy as np

ROWS, COLUMNS = 230, 50


def columns_of(row):
    if row == 17:
        return list(range(COLUMNS))
    return sorted((5 * j + 3 * row) % COLUMNS for j in range(7 * row % 11))


def matrix(first=0, rows=ROWS, value=np.float32, index=np.int32):
    indices = [columns_of(row) for row in range(first, first + rows)]
    data = [100 * row + column for row, columns in enumerate(indices, first) for column in columns]
    return {"data": np.array(data).astype(value), "indices": np.array(sum(indices, [])).astype(index),
            "indptr": np.cumsum([0] + [len(columns) for columns in indices]).astype(np.int64)}


def write(file, group, arrays, attributes, **options):
    for name, array in arrays.items():
        file.create_dataset(f"{group}/{name}", data=array, **(options if name != "shape" else {}))
    file[group].attrs.update(attributes)


def anndata(first=0, rows=ROWS, group="X", kind="csr_matrix", change=None, shape=None, libver=None, value=np.float32,
            index=np.int32, user_block=0, **options):
    """A file with a CSR matrix and its attributes, and columns `label` and `weight` of the observations."""
    def make(path):
        with h5py.File(path, "w", libver=libver, userblock_size=user_block) as file:
            arrays = matrix(first, rows, value, index)
            if change is not None:
                change(arrays)
            write(file, group, arrays, {"encoding-type": kind, "encoding-version": "0.1.0",
                                        "shape": np.array(shape or (rows, COLUMNS))}, **options)
            numbers = np.arange(first, first + rows)
            file["obs/label"] = numbers % 7
            file["obs/weight"] = (numbers / 2).astype(np.float32)
            file["obs/_index"] = [f"cell {i}" for i in numbers]
    return make


def by_columns(path):
    """The matrix is that of the columns of X, each with a name, and of rows with names of one length."""
    anndata(kind="csc_matrix", shape=(COLUMNS, ROWS), chunks=(64,), compression="gzip")(path)
    with h5py.File(path, "r+") as file:
        file.move("obs", "var")
        file["obs/name"] = np.array([f"gene {i}".encode() for i in range(COLUMNS)])
        file["obs"].attrs["_index"] = "name"


def several(*groups):
    def make(path):
        with h5py.File(path, "w") as file:
            for group in groups:
                write(file, group, matrix(), {"encoding-type": "csr_matrix", "shape": np.array((ROWS, COLUMNS))})
    return make


def genomics(path):
    """Cells one after the other, and a shape that counts features first."""
    with h5py.File(path, "w") as file:
        arrays = matrix(value=np.int32, index=np.int64)
        arrays["shape"] = np.array([COLUMNS, ROWS], np.int32)
        write(file, "matrix", arrays, {})
        file["matrix/barcodes"] = np.array([b"ACGT-1"] * ROWS)
        file["matrix/features/id"] = np.array([b"ENSG1"] * COLUMNS)


def root_group(path):
    with h5py.File(path, "w") as file:
        for name, array in matrix().items():
            file[name] = array
        file.attrs["shape"] = (ROWS, COLUMNS)
        file["labels"] = np.arange(ROWS) % 7


def without_shape(path):
    with h5py.File(path, "w") as file:
        write(file, "X", matrix(), {})


def old_anndata(path):
    with h5py.File(path, "w") as file:
        write(file, "X", matrix(), {"h5sparse_format": "csr", "h5sparse_shape": np.array((ROWS, COLUMNS))})


def long_row(path):
    """A row of 2^20 values among short ones."""
    lengths = np.full(2000, 3)
    lengths[1000] = 1 << 20
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    indices = np.concatenate([np.arange(length) for length in lengths]).astype(np.int32)
    with h5py.File(path, "w") as file:
        write(file, "X", {"data": indices.astype(np.float32), "indices": indices, "indptr": indptr},
              {"encoding-type": "csr_matrix", "shape": np.array((2000, 1 << 20))})


def at(name, place, value):
    def change(arrays):
        arrays[name][place] = value
    return anndata(change=change)


def shorter(arrays):
    arrays["indices"] = arrays["indices"][:-1]


CASES = {
    "anndata": anndata(),
    "chunked": anndata(chunks=(64,)),
    "latest": anndata(libver="latest", chunks=(64,)),
    "gzip": anndata(chunks=(64,), compression="gzip", shuffle=True),
    "lzf": anndata(chunks=(100,), compression="lzf"),
    "scaleoffset": anndata(value=np.int32, chunks=(64,), scaleoffset=0),
    "big_endian": anndata(value=">f8", index=">i8"),
    "unsigned": anndata(value=np.uint16, index=np.uint16),
    "layer": anndata(group="layers/counts", value=np.int64, index=np.int64),
    "genomics": genomics,
    "root_group": root_group,
    "old_anndata": old_anndata,
    "first_part": anndata(rows=100),
    "second_part": anndata(first=100, rows=ROWS - 100),
    "long_row": long_row,
    "several": several("layers/counts", "layers/scaled"),
    "several_with_x": several("layers/counts", "X"),
    "by_columns": by_columns,
    "user_block": anndata(user_block=1024),
    "columns_first": anndata(kind="csc_matrix"),
    "without_shape": without_shape,
    "bad_shape": anndata(shape=(ROWS + 1, COLUMNS)),
    "no_columns": anndata(shape=(ROWS, 0)),
    "bad_start": at("indptr", 0, 1),
    "bad_end": at("indptr", ROWS, 10**9),
    "decreasing": at("indptr", 100, 0),
    "beyond": at("indptr", 100, 10**12),
    "fewer_indices": anndata(change=shorter),
    "column_too_large": at("indices", 600, COLUMNS),
    "column_negative": at("indices", 600, -1),
}

if __name__ == "__main__":
    CASES[sys.argv[1]](sys.argv[2])
