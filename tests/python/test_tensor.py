import gc
import importlib.util

import numpy as np
import pytest
from conftest import ids, images_of, labels_of

import chunkio


@pytest.fixture
def batch(data):
    return next(iter(chunkio.Loader(data, batch_size=16, fields=["weights"])))


def test_numpy_sees_the_memory_itself(batch):
    first, second = np.asarray(batch.images), np.asarray(batch.images)
    assert first.ctypes.data == second.ctypes.data
    assert not first.flags.writeable
    assert first.flags.c_contiguous and first.dtype == np.uint8
    assert np.asarray(batch.labels).dtype == np.int64
    assert np.asarray(batch["weights"]).dtype == np.float32


def test_dlpack(batch):
    array = np.from_dlpack(batch.images)
    assert array.ctypes.data == np.asarray(batch.images).ctypes.data
    assert batch.images.__dlpack_device__() == (1, 0)
    copied = batch.images.__dlpack__(copy=True)
    assert "dltensor" in repr(copied)
    assert "dltensor_versioned" in repr(batch.images.__dlpack__(max_version=(1, 0)))
    with pytest.raises(BufferError, match="host memory"):
        batch.images.__dlpack__(dl_device=(2, 0))


class Legacy:
    """What a producer from before DLPack 1.0 answers, and a consumer from then asks for."""

    def __init__(self, tensor):
        self.tensor = tensor

    def __dlpack__(self, **_):
        return self.tensor.__dlpack__()

    def __dlpack_device__(self):
        return self.tensor.__dlpack_device__()


def consumers():
    yield np.from_dlpack
    if importlib.util.find_spec("torch"):
        import torch

        yield torch.from_dlpack


@pytest.mark.parametrize("producer", [Legacy, lambda tensor: tensor])
def test_consumers_of_dlpack_see_what_a_batch_holds(data, producer):
    for take in consumers():
        loader = chunkio.Loader(data, order="sequential", batch_size=100, fields=["weights"])
        for batch in loader:
            held = batch.images, batch.labels, batch["weights"], batch.sample_ids
            tensors = [take(producer(tensor)) for tensor in held]
            rows = ids(batch)
            wanted = [images_of(rows), labels_of(rows), np.outer(rows, [0.5, 2.0]).astype(np.float32), rows]
            for got, values in zip(tensors, wanted):
                np.testing.assert_array_equal(np.asarray(got), values)
    assert producer is Legacy or not np.from_dlpack(batch.images).flags.writeable


def test_arrays_outlive_everything(data):
    loader = chunkio.Loader(data, batch_size=16)
    batch = next(iter(loader))
    rows, array, other = ids(batch), np.asarray(batch.images), np.from_dlpack(batch.images)
    del loader, batch
    gc.collect()
    np.testing.assert_array_equal(array, images_of(rows))
    np.testing.assert_array_equal(other, images_of(rows))


def test_what_a_tensor_says(batch):
    tensor = batch.images
    assert tensor.shape == (16, 6, 5, 3) and tensor.ndim == 4 and tensor.nbytes == 16 * 90
    assert tensor.dtype == "uint8" and len(tensor) == 16
    # NumPy wants a dtype of whatever has that attribute, and JAX asks NumPy.
    assert isinstance(tensor.dtype, np.dtype) and np.result_type(tensor, np.float64) == np.float64
    assert repr(tensor) == "<chunkio.Tensor uint8 [16,6,5,3]>"


def test_without_labels_there_is_none(tmp_path):
    with chunkio.Writer(tmp_path / "x.h5", num_samples=3, shape=(6, 5, 3), labels=False) as writer:
        writer.append(images_of(range(3)))
    images, labels = next(iter(chunkio.Loader(chunkio.Dataset(tmp_path / "x.h5"), batch_size=3)))
    assert labels is None and images.shape == (3, 6, 5, 3)
