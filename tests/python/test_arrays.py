"""Files that other numbers than images lead."""

from __future__ import annotations

import pickle

import h5py
import numpy as np
import pytest

import chunkio

N, WIDTH = 100, 784


def vectors_of(rows):
    return (np.asarray(rows)[:, None] * 1024 + np.arange(WIDTH)[None]).astype(np.float32)


@pytest.fixture
def path(tmp_path):
    name = str(tmp_path / "vectors.h5")
    with h5py.File(name, "w") as file:
        file.create_dataset("x", data=vectors_of(np.arange(N)), chunks=(9, WIDTH), compression="gzip")
        file["labels"] = np.arange(N) % 7
        file["id"] = np.arange(N) + 1000
    return name


def test_a_dataset_reads_its_arrays(path):
    data = chunkio.Dataset(path)
    assert data.shape == (N, WIDTH) and data.dtype == np.float32 and data.leading_name == "x"
    assert data.layout is None and data.field_names == ["id"] and data.info["images"] is None
    row, label = data[7]
    np.testing.assert_array_equal(row, vectors_of([7])[0])
    assert row.dtype == np.float32 and label == 0
    rows, labels = data[10:20]
    np.testing.assert_array_equal(rows, vectors_of(np.arange(10, 20)))
    np.testing.assert_array_equal(labels, np.arange(10, 20) % 7)
    np.testing.assert_array_equal(data.read_field("x", slice(3, 5)), vectors_of([3, 4]))
    assert repr(data).endswith(f"[{N}, {WIDTH}]>")


def test_a_loader_delivers_them_by_name(path):
    loader = chunkio.Loader(chunkio.Dataset(path), batch_size=16, seed=7, window_bytes=4 * 9 * WIDTH * 4, fields=["id"])
    for _ in range(2):
        seen = []
        for batch in loader:
            rows = np.asarray(batch.sample_ids)
            x = np.asarray(batch["x"])
            assert x.dtype == np.float32 and x.shape == (len(rows), WIDTH)
            np.testing.assert_array_equal(x, vectors_of(rows))
            np.testing.assert_array_equal(np.asarray(batch.leading), x)
            np.testing.assert_array_equal(np.asarray(batch["id"]), rows + 1000)
            leading, labels = batch
            np.testing.assert_array_equal(np.asarray(leading), x)
            np.testing.assert_array_equal(np.asarray(labels), rows % 7)
            with pytest.raises(chunkio.Error, match="no images: x float32"):
                batch.images
            seen.extend(rows)
        assert sorted(seen) == list(range(N))
    assert "[4,784]" in repr(batch)


def test_a_loader_of_them_goes_on_where_it_was_pickled(path):
    loader = chunkio.Loader(chunkio.Dataset(path), batch_size=16, seed=7)
    batches = iter(loader)
    next(batches)
    again = pickle.loads(pickle.dumps(loader))
    for left, right in zip(batches, again):
        np.testing.assert_array_equal(np.asarray(left["x"]), np.asarray(right["x"]))


def test_images_are_also_called_so(data):
    batch = next(iter(chunkio.Loader(data)))
    assert data.leading_name == "images" and data.dtype == np.uint8
    np.testing.assert_array_equal(np.asarray(batch["images"]), np.asarray(batch.images))
    np.testing.assert_array_equal(np.asarray(batch.leading), np.asarray(batch.images))


def test_what_needs_images_says_so(path):
    with pytest.raises(chunkio.Error, match=r"x float32 \[100,784\] are no images"):
        chunkio.Normalizer(chunkio.Dataset(path), mean=[0], std=[1])


def test_what_leads_is_named_where_it_cannot_be_told(tmp_path):
    name = str(tmp_path / "two.h5")
    with h5py.File(name, "w") as file:
        file["a"] = vectors_of(np.arange(N))
        file["b"] = vectors_of(np.arange(N))[:, :3]
    with pytest.raises(chunkio.Error, match=r"a float32 \[100,784\], b float32 \[100,3\]; name one .* images"):
        chunkio.Dataset(name)
    assert chunkio.Dataset(name, images="b").shape == (N, 3)


def test_torch_delivers_them_as_stored(path):
    torch = pytest.importorskip("torch")
    import chunkio.torch

    x, labels = next(iter(chunkio.torch.DataLoader(path, batch_size=16, dtype=None)))
    assert x.dtype == torch.float32 and tuple(x.shape) == (16, WIDTH) and len(labels) == 16
    with pytest.raises(chunkio.Error, match="are no images"):
        chunkio.torch.DataLoader(path, batch_size=16)
