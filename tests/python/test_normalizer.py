import gc
import os
import pickle

import h5py
import numpy as np
import pytest

import chunkio


@pytest.fixture
def batch(data):
    return next(iter(chunkio.Loader(data, batch_size=16)))


def test_it_is_value_less_mean_by_std(data, batch):
    normalized = np.asarray(chunkio.Normalizer(data, mean=[0.5, 0.4, 0.3], std=[0.2, 0.3, 0.4])(batch))
    pixels = np.asarray(batch.images).astype(np.float64) / 255
    expected = ((pixels - [0.5, 0.4, 0.3]) / [0.2, 0.3, 0.4]).transpose(0, 3, 1, 2)
    np.testing.assert_allclose(normalized, expected, atol=1e-5)
    assert normalized.dtype == np.float32 and normalized.flags.writeable
    last = np.asarray(chunkio.Normalizer(data, mean=[0.5], std=[0.5], layout="nhwc", dtype="float16")(batch))
    assert last.shape == (16, 6, 5, 3) and last.dtype == np.float16


def test_crops_and_flips(data, batch):
    normalize = chunkio.Normalizer(data, mean=[0], std=[1], padding=2, random_crop=True, flip=True, seed=3)
    assert np.array_equal(normalize(batch), normalize(batch))
    assert not np.array_equal(normalize(batch), normalize(batch, echo_pass=1))
    assert chunkio.Normalizer(data, mean=[0], std=[1], crop_height=2, crop_width=3)(batch).shape == (16, 3, 2, 3)


@pytest.mark.parametrize("stored", ["nhwc", "nchw"])
@pytest.mark.parametrize("layout", ["nhwc", "nchw"])
def test_random_resized_crops_are_pillows(tmp_path, stored, layout):
    pytest.importorskip("PIL")
    from epoch_order_reference import box_of, lo_hi, philox, stream_key
    from resize_reference import resized_channels

    pixels = np.random.default_rng(5).integers(0, 256, (40, 45, 61, 3), np.uint8)
    with h5py.File(tmp_path / "images.h5", "w") as file:
        file["images"] = pixels if stored == "nhwc" else pixels.transpose(0, 3, 1, 2)
        file["images"].attrs["layout"] = stored
    data = chunkio.Dataset(tmp_path / "images.h5")
    # Values from 0 to 255.
    normalizer = chunkio.Normalizer(
        data, layout=layout, mean=[0], std=[1 / 255], crop_height=24, crop_width=17, random_resized_crop=True,
        scale=(0.25, 1), ratio=(0.5, 2), flip=True)
    ranges = [2**30, 2**32, 2**23, 2**25]
    loader = chunkio.Loader(data, batch_size=16, seed=11)
    seen = {}
    for epoch, echo_pass in ((0, 0), (1, 0), (1, 2)):
        key = stream_key(11, epoch, 0, 4)
        loader.set_epoch(epoch)
        for batch in loader:
            values = np.asarray(normalizer(batch, echo_pass=echo_pass))
            values = values if layout == "nhwc" else values.transpose(0, 2, 3, 1)
            for row, value in zip(np.asarray(batch.sample_ids).tolist(), values):
                words = lambda block: philox((*lo_hi(row), echo_pass, block), key)  # noqa: E731
                top, left, height, width = box_of((45, 61), ranges, words)
                box = np.ascontiguousarray(pixels[row, top : top + height, left : left + width])
                wanted = resized_channels(box, (24, 17))
                wanted = wanted[:, ::-1] if words(0)[2] >= 2**31 else wanted
                np.testing.assert_array_equal(value, wanted)
                seen.setdefault(row, set()).add((top, left, height, width))
    assert len(seen) == 40 and sum(len(boxes) for boxes in seen.values()) > 110


def test_results_may_be_held(data, batch):
    normalize = chunkio.Normalizer(data, mean=[0], std=[1])
    held = [np.asarray(normalize(batch)) for _ in range(20)]
    assert len({array.ctypes.data for array in held}) == 20
    del held
    gc.collect()
    # What was dropped is used again.
    assert len({np.asarray(normalize(batch)).ctypes.data for _ in range(20)}) <= 4


def test_it_is_pickled(data, batch):
    normalizer = chunkio.Normalizer(data, mean=[0.5], std=[0.25], crop_height=4, crop_width=4, random_resized_crop=True,
                                    scale=(0.1, 0.9), flip=True, seed=3)
    again = pickle.loads(pickle.dumps(normalizer))
    np.testing.assert_array_equal(np.asarray(again(batch)), np.asarray(normalizer(batch)))


def test_bfloat16_is_for_dlpack(data, batch):
    tensor = chunkio.Normalizer(data, mean=[0], std=[1], dtype="bfloat16")(batch)
    assert tensor.dtype == "bfloat16"
    with pytest.raises(AttributeError, match="DLPack"):
        tensor.__array_interface__


@pytest.mark.skipif("san" in os.environ.get("LD_PRELOAD", ""), reason="sanitizers end the program instead")
def test_too_little_memory_is_told_without_names_of_cpp(data, batch):
    huge = chunkio.Normalizer(data, mean=[0], std=[1], padding=2**20, crop_height=2**20, crop_width=2**20)
    with pytest.raises(MemoryError) as caught:
        huge(batch)
    assert isinstance(caught.value, chunkio.Error) and caught.value.code == "out_of_resources"
    assert "std::" not in str(caught.value)


def test_refusals(data):
    with pytest.raises(ValueError, match="mean"):
        chunkio.Normalizer(data)
    with pytest.raises(ValueError, match="random_crop"):
        chunkio.Normalizer(data, mean=[0], std=[1], random_crop=True)
    with pytest.raises(ValueError, match="random_resized_crop excludes padding"):
        chunkio.Normalizer(data, mean=[0], std=[1], random_resized_crop=True, padding=2)
    with pytest.raises(ValueError, match="the scale of a random resized crop"):
        chunkio.Normalizer(data, mean=[0], std=[1], random_resized_crop=True, scale=(0.5, 2))
    with pytest.raises(TypeError, match="ratio cannot be 3"):
        chunkio.Normalizer(data, mean=[0], std=[1], random_resized_crop=True, ratio=3)
    with pytest.raises(ValueError, match="dtype"):
        chunkio.Normalizer(data, mean=[0], std=[1], dtype="float8")
