"""Random sparse matrices and options, each row against SciPy's, and dense rows against NumPy's.

SPARSE_CASES says how many (40), SPARSE_SEED which ones; the seed of a failure is in its message.
"""

import os
import random

import h5py
import numpy as np
import pytest

import chunkio

sparse = pytest.importorskip("scipy.sparse")

CASES = int(os.environ.get("SPARSE_CASES", 40))
SEED = int(os.environ.get("SPARSE_SEED") or random.randrange(2**32))


def draw_matrix(rng, value, index):
    """Rows of many lengths, some without values."""
    rows, columns = rng.choice([1, 2, 17, 300, 1500]), rng.choice([1, 5, 64, 3000])
    numbers = np.random.default_rng(rng.randrange(2**32))
    density = rng.choice([0, 0.001, 0.05, 0.9])
    matrix = sparse.random(rows, columns, density, format="csr", random_state=numbers, dtype=np.float64,
                           data_rvs=lambda count: numbers.integers(1, 100, count))
    if matrix.nnz == 0:
        matrix = sparse.csr_matrix(([3.0], ([rng.randrange(rows)], [rng.randrange(columns)])), (rows, columns))
    matrix.sort_indices()
    return matrix.data.astype(value), matrix.indices.astype(index), matrix.indptr.astype(index), matrix.shape


def write(path, rng, data, indices, indptr, shape):
    options = {}
    if len(data) and rng.random() < 0.6:
        options["chunks"] = (min(len(data), rng.choice([1, 64, 1000] if len(data) < 3000 else [1000, 65536])),)
        options |= rng.choice([{}, {"compression": "gzip"}, {"compression": "gzip", "shuffle": True}, {"compression": "lzf"}])
    with h5py.File(path, "w", libver=rng.choice(["earliest", ("v108", "v110")])) as file:
        group = file.create_group("X")
        group.attrs.update({"encoding-type": "csr_matrix", "encoding-version": "0.1.0", "shape": shape})
        for name, array in (("data", data), ("indices", indices), ("indptr", indptr)):
            group.create_dataset(name, data=array, **(options if name != "indptr" else {}))


def expected_rows(rng, shape):
    """All, or those of two ranges."""
    if shape[0] < 20 or rng.random() < 0.6:
        return list(range(shape[0]))
    ends = sorted(rng.sample(range(shape[0] + 1), 4))
    return [*range(ends[0], ends[1]), *range(ends[2], ends[3])]


def dense_of(matrix, options):
    dense = matrix.toarray().astype(np.float32)
    if options.get("binary"):
        return (dense != 0).astype(np.float32)
    if "row_sum" in options:
        sums = dense.sum(1, keepdims=True, dtype=np.float64)
        dense = np.where(sums != 0, dense * (options["row_sum"] / np.where(sums != 0, sums, 1)).astype(np.float32), dense)
    return np.log1p(dense) if options.get("log1p") else dense


@pytest.mark.parametrize("case", range(CASES))
def test_rows_are_scipys(tmp_path, case):
    rng = random.Random(SEED + case)
    value = rng.choice([np.float32, np.float64, np.int32, np.uint8, np.int64, np.uint16])
    index = rng.choice([np.int32, np.int64])
    arrays = draw_matrix(rng, value, index)
    shape = arrays[3]
    write(tmp_path / "x.h5ad", rng, *arrays)
    matrix = sparse.csr_matrix(arrays[:3], shape=shape)
    rows = expected_rows(rng, shape)
    options = {"batch_size": rng.choice([1, 7, 64, 500]), "order": rng.choice(["chunk_shuffled", "sequential", "random"]),
               "seed": rng.randrange(2**64), "num_threads": rng.choice([1, 2, 4]),
               "window_bytes": rng.choice([4096, 1 << 20]), "direct_io": rng.choice([False, True]),
               "resident": rng.choice(["none", "host"]), "max_held": rng.choice([1, 3])}
    if len(rows) < shape[0]:
        options["rows"] = np.isin(np.arange(shape[0]), rows)
    about = f"SPARSE_SEED={SEED} case {case}: {shape} {value.__name__} { {name: options[name] for name in options if name != 'rows'} }"
    dense_options = rng.choice([{}, {"binary": True}, {"row_sum": 100.0}, {"log1p": True}, {"row_sum": 5.0, "log1p": True}])
    loader = chunkio.Loader(chunkio.Dataset(tmp_path / "x.h5ad"), **options)
    densify = chunkio.Densifier(chunkio.Dataset(tmp_path / "x.h5ad"), num_threads=rng.choice([1, 3]), **dense_options)
    for epoch in range(2):
        seen = []
        for batch in loader:
            ids = np.asarray(batch.sample_ids)
            seen += ids.tolist()
            wanted, got = matrix[ids], batch.leading.to_scipy()
            assert got.dtype == value, about
            for name in ("indptr", "indices", "data"):
                np.testing.assert_array_equal(getattr(got, name), getattr(wanted, name), about)
            np.testing.assert_allclose(np.asarray(densify(batch)), dense_of(wanted, dense_options), rtol=1e-6, err_msg=about)
        assert sorted(seen) == rows and (options["order"] != "sequential" or seen == rows), about
    if options["resident"] == "host":  # either epoch may have brought a group: they are read at once
        once = loader.stats()["bytes_read"]
        assert sum(len(batch.sample_ids) for batch in loader) == len(rows), about
        assert loader.stats()["bytes_read"] == once, about
