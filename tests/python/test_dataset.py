import importlib.util
import inspect
import json
import pathlib
import pickle
import subprocess

import numpy as np
import pytest
from conftest import CHANNELS, HEIGHT, WIDTH, images_of, labels_of

import chunkio


def test_what_it_says(data):
    assert len(data) == 230
    assert data.shape == (230, HEIGHT, WIDTH, CHANNELS)
    assert data.class_names == []
    assert data.mean is None and data.std is None
    assert data.label_name == "labels"
    assert data.field_names == ["weights"]
    assert "230" in repr(data)


def test_one_sample(data):
    for row in (0, 7, 229, -1, -230, np.int64(5)):
        image, label = data[row]
        assert image.shape == (HEIGHT, WIDTH, CHANNELS)
        np.testing.assert_array_equal(image, images_of([int(row) % 230])[0])
        assert type(label) is int and label == labels_of([int(row) % 230])[0]
    for row in (230, -231):
        with pytest.raises(IndexError, match="no sample"):
            data[row]


@pytest.mark.parametrize("rows", [slice(100, 200), slice(None), slice(-5, None), slice(0, 230, 50), slice(9, 3), slice(200, 10, -60)])
def test_a_slice(data, rows):
    wanted = range(230)[rows]
    images, labels = data[rows]
    np.testing.assert_array_equal(images, images_of(wanted).reshape(images.shape))
    np.testing.assert_array_equal(labels, labels_of(wanted))


def test_what_is_read_is_a_copy(data):
    images, _ = data[0:3]
    images[:] = 0
    np.testing.assert_array_equal(data[0][0], images_of([0])[0])


def test_fields(data):
    np.testing.assert_array_equal(data.read_field("weights", slice(3, 5)), [[1.5, 6.0], [2.0, 8.0]])
    assert data.read_field("weights", slice(5, 5)).shape == (0, 2)
    with pytest.raises(LookupError, match="no field 'mask'"):
        data.read_field("mask")


def test_info_is_that_of_h5pack(data, request):
    program = request.config.getoption("--h5pack")
    if program is None:
        pytest.skip("no --h5pack")
    printed = subprocess.run([program, "info", data.path, "--json"], capture_output=True, check=True).stdout
    assert data.info == json.loads(printed)
    assert data.info["num_samples"] == 230


def test_shards_are_one_dataset(make_file):
    data = chunkio.Dataset(make_file([10, 7, 5]))
    assert len(data) == 22
    np.testing.assert_array_equal(data[8:12][0], images_of(range(8, 12)))


def test_paths_of_any_kind(make_file):
    assert len(chunkio.Dataset(pathlib.Path(make_file()))) == 230


def test_it_is_pickled_as_its_name(data):
    again = pickle.loads(pickle.dumps(data))
    assert again.path == data.path
    np.testing.assert_array_equal(again[3][0], data[3][0])


def test_errors_are_pythons(tmp_path, make_file):
    with pytest.raises(FileNotFoundError, match="nowhere.h5") as caught:
        chunkio.Dataset(tmp_path / "nowhere.h5")
    assert isinstance(caught.value, chunkio.Error) and caught.value.code == "not_found"
    (tmp_path / "text.h5").write_text("no HDF5")
    with pytest.raises(chunkio.Error, match="text.h5") as caught:
        chunkio.Dataset(tmp_path / "text.h5")
    assert caught.value.code == "corrupt_data"
    with pytest.raises(LookupError, match="pictures") as caught:
        chunkio.Dataset(make_file(), images="pictures")
    assert not isinstance(caught.value, OSError) and caught.value.code == "not_found"
    with pytest.raises(FileNotFoundError, match="part-00001-of-00002"):
        pathlib.Path(make_file([3, 3]).replace("*", "00001")).unlink()
        chunkio.Dataset(tmp_path / "part-*-of-00002.h5")
    with pytest.raises(FileNotFoundError, match="nowhere"):
        chunkio.Writer(tmp_path / "nowhere" / "x.h5", num_samples=1, shape=(6, 5, 3))
    with pytest.raises(ValueError, match="layout"):
        chunkio.Dataset(make_file(), layout="hwc")
    with pytest.raises(TypeError):
        chunkio.Dataset(make_file(), colour="red")
    with pytest.raises(ValueError, match="is not UTF-8"):
        chunkio.Dataset(b"\xff.h5")
    with pytest.raises(TypeError, match="takes a name and a slice"):
        chunkio.Dataset(make_file()).read_field("labels", 3)


def test_every_public_member_says_what_it_is():
    classes = [chunkio.Batch, chunkio.Dataset, chunkio.Error, chunkio.Loader, chunkio.Normalizer, chunkio.Tensor, chunkio.Writer]
    if importlib.util.find_spec("torch"):
        front_end = importlib.import_module("chunkio.torch")
        classes += [front_end.DataLoader, front_end.IterableDataset]
    silent = [thing.__name__ for thing in [*classes, chunkio.pack] if not thing.__doc__]
    for thing in classes:
        for name in dir(thing):
            member = inspect.getattr_static(thing, name)
            ours = (getattr(member, "__module__", None) or getattr(thing, "__module__", "")).startswith("chunkio")
            if not name.startswith("_") and ours and (callable(member) or isinstance(member, property)) and not inspect.getdoc(member):
                silent.append(f"{thing.__name__}.{name}")
    assert silent == []
