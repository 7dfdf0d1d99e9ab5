import gc

import numpy as np
import pytest
from conftest import images_of, ids

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
