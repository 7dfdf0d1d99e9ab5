"""Rows of a CSR matrix, against NumPy, and against SciPy and PyTorch where they are installed."""

from __future__ import annotations

import pickle

import h5py
import numpy as np
import pytest

import chunkio

ROWS, COLUMNS = 500, 300


def make_matrix(seed=0, value=np.float32, index=np.int32):
    """indptr, indices and data; and the same as a dense array."""
    random = np.random.default_rng(seed)
    dense = np.where(random.random((ROWS, COLUMNS)) < 0.05, random.integers(1, 99, (ROWS, COLUMNS)), 0).astype(value)
    dense[7] = 0
    indptr = np.concatenate([[0], np.cumsum((dense != 0).sum(1))])
    row, column = np.nonzero(dense)
    return {"indptr": indptr, "indices": column.astype(index), "data": dense[row, column]}, dense


def write(path, arrays, labels=True, **options):
    with h5py.File(path, "w") as file:
        group = file.create_group("X")
        group.attrs.update({"encoding-type": "csr_matrix", "encoding-version": "0.1.0", "shape": (ROWS, COLUMNS)})
        for name, array in arrays.items():
            group.create_dataset(name, data=array, **options)
        if labels:
            file["labels"] = np.arange(ROWS) % 7
    return path


@pytest.fixture(params=[{}, {"chunks": (1,)}, {"chunks": (128,), "compression": "gzip"}], ids=["contiguous", "single", "gzip"])
def cells(request, tmp_path):
    arrays, dense = make_matrix()
    return chunkio.Dataset(write(tmp_path / "cells.h5ad", arrays, **request.param)), dense


def densified(rows):
    dense = np.zeros(rows.shape, np.float64)
    indptr, indices, values = (np.asarray(part) for part in (rows.indptr, rows.indices, rows.values))
    for i in range(len(rows)):
        dense[i, indices[indptr[i] : indptr[i + 1]]] = values[indptr[i] : indptr[i + 1]]
    return dense


def test_dataset(cells):
    data, dense = cells
    assert data.sparse and data.shape == (ROWS, COLUMNS) and data.leading_name == "X"
    assert data.dtype == np.float32 and data.layout is None
    rows, labels = data[10:20]
    assert isinstance(rows, chunkio.SparseTensor) and rows.shape == (10, COLUMNS) and len(rows) == 10
    np.testing.assert_array_equal(densified(rows), dense[10:20])
    np.testing.assert_array_equal(labels, np.arange(10, 20) % 7)
    row, label = data[7]
    assert row.shape == (1, COLUMNS) and len(np.asarray(row.values)) == 0 and label == 0
    assert data[0:0][0].shape == (0, COLUMNS)
    with pytest.raises(ValueError, match="side by side"):
        data[0:10:2]
    with pytest.raises(chunkio.Error, match=r"X is a sparse matrix.*dataset\[first:last\]"):
        data.read_field("X")
    assert repr(row) == "<chunkio.SparseTensor float32 [1,300], 0 values>"


def test_batches(cells):
    data, dense = cells
    loader = chunkio.Loader(data, batch_size=64, seed=5, window_bytes=8192)
    for _ in range(2):
        seen = []
        for batch in loader:
            rows, labels = batch
            ids = np.asarray(batch.sample_ids)
            np.testing.assert_array_equal(densified(rows), dense[ids])
            np.testing.assert_array_equal(np.asarray(labels), ids % 7)
            assert batch["X"].shape == batch.leading.shape == (batch.size, COLUMNS)
            assert str(COLUMNS) in repr(batch)
            seen += ids.tolist()
        assert sorted(seen) == list(range(ROWS))
        assert seen != sorted(seen)
    with pytest.raises(chunkio.Error, match="no images.*`leading`"):
        batch.images
    with pytest.raises(KeyError):
        batch["Y"]


def test_held_batches_stay(cells):
    data, dense = cells
    batches = [batch.leading for batch in chunkio.Loader(data, batch_size=32, order="sequential", max_held=2)]
    np.testing.assert_array_equal(np.concatenate([densified(rows) for rows in batches]), dense)


def test_state(cells):
    data, _ = cells
    loader = chunkio.Loader(data, batch_size=32, seed=1, window_bytes=8192)
    batches = iter(loader)
    for _ in range(5):
        next(batches)
    state = loader.state_dict()
    rest = [np.asarray(batch.sample_ids) for batch in batches]
    other = chunkio.Loader(data, batch_size=32, seed=1, window_bytes=8192)
    other.load_state_dict(state)
    for expected, batch in zip(rest, other, strict=True):
        np.testing.assert_array_equal(expected, np.asarray(batch.sample_ids))


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_densifier(cells, dtype):
    data, dense = cells
    plain = chunkio.Densifier(data, dtype=dtype)
    for batch in chunkio.Loader(data, batch_size=100, seed=2):
        ids = np.asarray(batch.sample_ids)
        out = np.asarray(plain(batch))
        assert out.dtype == dtype and out.flags.writeable
        np.testing.assert_array_equal(out, dense[ids].astype(dtype))
        np.testing.assert_array_equal(out, np.asarray(pickle.loads(pickle.dumps(plain))(batch.leading)))
    binary = np.asarray(chunkio.Densifier(data, binary=True, num_threads=1)(data[:][0]))
    np.testing.assert_array_equal(binary, dense != 0)
    sums = dense.sum(1, keepdims=True, dtype=np.float64)
    scaled = np.log1p(np.divide(dense * 1e4, sums, out=np.zeros(dense.shape), where=sums != 0))
    logs = np.asarray(chunkio.Densifier(data, row_sum=1e4, log1p=True)(data[:][0]))
    np.testing.assert_allclose(logs, scaled, rtol=1e-6)


def test_densifier_refuses(cells, tmp_path):
    data, _ = cells
    with pytest.raises(ValueError, match="binary"):
        chunkio.Densifier(data, binary=True, log1p=True)
    with pytest.raises(TypeError, match="Batch or a SparseTensor"):
        chunkio.Densifier(data)(np.ones((2, COLUMNS)))
    with pytest.raises(ValueError, match="row_sum"):
        chunkio.Densifier(data, row_sum=-1)
    with h5py.File(tmp_path / "dense.h5", "w") as file:
        file["x"] = np.ones((4, 5), np.float32)
    with pytest.raises(ValueError, match="no sparse rows"):
        chunkio.Densifier(chunkio.Dataset(tmp_path / "dense.h5"))


@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_scipy(tmp_path, index):
    sparse = pytest.importorskip("scipy.sparse")
    arrays, dense = make_matrix(index=index)
    data = chunkio.Dataset(write(tmp_path / "cells.h5", arrays))
    for batch in chunkio.Loader(data, batch_size=50, seed=3):
        rows = batch.leading
        matrix = rows.to_scipy()
        assert isinstance(matrix, sparse.csr_matrix) and matrix.shape == (50, COLUMNS)
        assert np.shares_memory(matrix.data, np.asarray(rows.values))
        np.testing.assert_array_equal(matrix.toarray(), dense[np.asarray(batch.sample_ids)])


@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_torch(tmp_path, index):
    torch = pytest.importorskip("torch")
    arrays, dense = make_matrix(index=index)
    data = chunkio.Dataset(write(tmp_path / "cells.h5", arrays))
    for batch in chunkio.Loader(data, batch_size=50, seed=3):
        matrix = batch.leading.to_torch()
        assert matrix.layout == torch.sparse_csr and tuple(matrix.shape) == (50, COLUMNS)
        np.testing.assert_array_equal(matrix.to_dense().numpy(), dense[np.asarray(batch.sample_ids)])


def test_torch_data_loader(tmp_path):
    torch = pytest.importorskip("torch")
    import chunkio.torch

    arrays, dense = make_matrix()
    path = write(tmp_path / "cells.h5ad", arrays)
    small = {"batch_size": 64, "seed": 3, "sample_ids": True}
    for x, labels, rows in chunkio.torch.DataLoader(path, **small):
        assert x.dtype == torch.float32
        np.testing.assert_array_equal(x.numpy(), dense[rows.numpy()])
        np.testing.assert_array_equal(labels.numpy(), rows.numpy() % 7)
    for x, _, rows in chunkio.torch.DataLoader(path, dtype=torch.bfloat16, binary=True, **small):
        np.testing.assert_array_equal(x.float().numpy(), dense[rows.numpy()] != 0)
    for x, _, rows in chunkio.torch.DataLoader(path, row_sum=100, log1p=True, **small):
        sums = x.exp().sub(1).sum(1)
        np.testing.assert_allclose(sums[rows != 7], 100, rtol=1e-4)
    for x, _, rows in chunkio.torch.DataLoader(path, dtype=None, **small):
        assert x.layout == torch.sparse_csr
        np.testing.assert_array_equal(x.to_dense().numpy(), dense[rows.numpy()])
    for wrong in ({"flip": True}, {"mean": 0.5}, {"memory_format": torch.channels_last}):
        with pytest.raises(ValueError, match=r"cells\.h5ad has rows of a CSR matrix"):
            chunkio.torch.DataLoader(path, **wrong)
    with pytest.raises(ValueError, match="need a dtype"):
        chunkio.torch.DataLoader(path, dtype=None, binary=True)


def test_damage(tmp_path):
    arrays, _ = make_matrix()
    arrays["indices"][40] = COLUMNS
    data = chunkio.Dataset(write(tmp_path / "damaged.h5", arrays))
    with pytest.raises(chunkio.Error, match=r"damaged\.h5 are damaged: a column"):
        list(chunkio.Loader(data, batch_size=50))
    arrays["indptr"][3] = 0
    data = chunkio.Dataset(write(tmp_path / "offsets.h5", arrays))
    with pytest.raises(chunkio.Error, match=r"row 2 lies at"):
        chunkio.Loader(data, batch_size=50)


def test_columns_as_rows(tmp_path):
    arrays, dense = make_matrix()
    path = write(tmp_path / "cells.h5ad", arrays, labels=False)
    with h5py.File(path, "a") as file:
        file["X"].attrs.update({"encoding-type": "csc_matrix", "shape": (COLUMNS, ROWS)})
    with pytest.raises(chunkio.Error, match=r"stored by columns"):
        chunkio.Dataset(path)
    data = chunkio.Dataset(path, columns_as_rows=True)
    assert data.shape == (ROWS, COLUMNS)
    np.testing.assert_array_equal(densified(data[3:9][0]), dense[3:9])
    again = pickle.loads(pickle.dumps(data))
    assert again.shape == (ROWS, COLUMNS)


def test_categories(tmp_path):
    arrays, _ = make_matrix()
    path = write(tmp_path / "m.h5ad", arrays)
    with h5py.File(path, "a") as file:
        file["obs/kind/codes"] = (np.arange(ROWS) % 3 - 1).astype(np.int8)
        file["obs/kind/categories"] = np.array(["T-Zelle", "größer"], object)
        file["obs/batch"] = np.zeros(ROWS, np.int8)
    data = chunkio.Dataset(path, labels="obs/kind/codes")
    assert data.categories("obs/kind/codes") == ["T-Zelle", "größer"]
    assert data.categories("obs/batch") is None
    assert data[4][1] == 0
    with pytest.raises(LookupError, match="obs/none"):
        data.categories("obs/none")


def test_a_dense_matrix_leads_before_graphs(tmp_path):
    """AnnData with a dense X and a graph between its cells."""
    arrays, dense = make_matrix()
    path = write(tmp_path / "cells.h5ad", arrays)
    with h5py.File(path, "r+") as file:
        graph = file.create_group("obsp/connectivities")
        file.move("X/data", "obsp/connectivities/data")
        file.move("X/indices", "obsp/connectivities/indices")
        file.move("X/indptr", "obsp/connectivities/indptr")
        graph.attrs.update({"encoding-type": "csr_matrix", "encoding-version": "0.1.0", "shape": (ROWS, ROWS)})
        del file["X"]
        file["X"] = dense
    data = chunkio.Dataset(path)
    assert not data.sparse and data.leading_name == "X" and data.shape == (ROWS, COLUMNS)
    assert chunkio.Dataset(path, images="obsp/connectivities").sparse
