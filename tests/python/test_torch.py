import gc
import json
import pickle

import numpy as np
import pytest
from conftest import SAMPLE_BYTES, ids, images_of, labels_of, skip_batches

torch = pytest.importorskip("torch")
import chunkio.torch  # noqa: E402

SMALL = {"batch_size": 16, "seed": 7, "window_bytes": 4 * 9 * SAMPLE_BYTES}
SCALE = {"mean": [0.5, 0.4, 0.3], "std": [0.2, 0.3, 0.4]}


def rows_of(path):
    """The row numbers of an epoch, batch by batch."""
    return [ids(batch) for batch in chunkio.Loader(chunkio.Dataset(path), **SMALL)]


def normalized(rows):
    pixels = images_of(rows).astype(np.float64) / 255
    return ((pixels - SCALE["mean"]) / SCALE["std"]).transpose(0, 3, 1, 2)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("memory_format", [torch.contiguous_format, torch.channels_last])
def test_batches_are_normalised(make_file, dtype, memory_format):
    path = make_file()
    loader = chunkio.torch.DataLoader(path, dtype=dtype, memory_format=memory_format, **SMALL, **SCALE)
    tolerance = {torch.float32: 1e-5, torch.float16: 2e-2, torch.bfloat16: 2e-1}[dtype]
    for rows, (images, labels) in zip(rows_of(path), loader):
        assert images.dtype == dtype and images.shape == (len(rows), 3, 6, 5)
        assert images.is_contiguous(memory_format=memory_format)
        np.testing.assert_allclose(images.double().numpy(), normalized(rows), atol=tolerance)
        assert labels.tolist() == labels_of(rows).tolist()
        images.mul_(2)  # it is the caller's own


def test_uint8_as_stored(make_file):
    path = make_file()
    for rows, (images, labels) in zip(rows_of(path), chunkio.torch.DataLoader(path, dtype=None, **SMALL)):
        assert images.dtype == torch.uint8
        np.testing.assert_array_equal(images.numpy(), images_of(rows))
    for option in ("flip", "random_resized_crop"):
        with pytest.raises(ValueError, match="dtype None"):
            chunkio.torch.DataLoader(path, dtype=None, **{option: True})
    with pytest.raises(ValueError, match="no sparse rows"):
        chunkio.torch.DataLoader(path, binary=True)


def test_what_is_held_stays(make_file):
    path = make_file()
    loader = chunkio.torch.DataLoader(path, **SMALL, **SCALE)
    held = list(loader)
    assert loader.stats()["copied_batches"] == 0
    del loader
    gc.collect()
    for rows, (images, labels) in zip(rows_of(path), held):
        np.testing.assert_allclose(images.numpy(), normalized(rows), atol=1e-5)


def test_crops_flips_and_transforms(make_file):
    path = make_file()
    options = {"padding": 2, "random_crop": True, "flip": True, **SMALL, **SCALE}
    first = [images for images, _ in chunkio.torch.DataLoader(path, **options)]
    again = [images for images, _ in chunkio.torch.DataLoader(path, num_threads=1, **options)]
    assert all(torch.equal(a, b) for a, b in zip(first, again))
    plain = [images for images, _ in chunkio.torch.DataLoader(path, **SMALL, **SCALE)]
    assert not torch.equal(first[0], plain[0])
    loader = chunkio.torch.DataLoader(path, crop_size=4, transform=lambda images, labels: {"x": images, "y": labels}, **SMALL, **SCALE)
    assert next(iter(loader))["x"].shape == (16, 3, 4, 4)
    zoomed = {"crop_size": (4, 3), "random_resized_crop": True, "scale": (0.5, 1), **SMALL, **SCALE}
    first = [images for images, _ in chunkio.torch.DataLoader(path, **zoomed)]
    again = [images for images, _ in chunkio.torch.DataLoader(path, num_threads=1, **zoomed)]
    assert all(torch.equal(a, b) for a, b in zip(first, again)) and first[0].shape == (16, 3, 4, 3)
    for number in (0.5, np.float32(0.5), torch.tensor(0.5), [0.5]):
        loader = chunkio.torch.DataLoader(path, crop_size=np.int64(4), mean=number, std=number, **SMALL)
        assert next(iter(loader))[0].shape == (16, 3, 4, 4)


def test_fields(make_file):
    images, labels, fields = next(iter(chunkio.torch.DataLoader(make_file(), fields=["weights"], **SMALL, **SCALE)))
    assert fields["weights"].shape == (16, 2) and fields["weights"].dtype == torch.float32


def test_sample_ids(make_file):
    path = make_file()
    loader = chunkio.torch.DataLoader(path, sample_ids=True, **SMALL, **SCALE)
    for rows, (_, labels, sample_ids) in zip(rows_of(path), loader):
        assert sample_ids.dtype == torch.int64 and sample_ids.tolist() == rows
    loader = chunkio.torch.DataLoader(path, sample_ids=True, fields=["weights"], **SMALL, **SCALE)
    _, _, fields, sample_ids = next(iter(loader))
    assert fields["weights"][:, 0].tolist() == (sample_ids * 0.5).tolist()


def test_epochs_and_states(make_file):
    path = make_file()
    loader = chunkio.torch.DataLoader(path, **SMALL, **SCALE)
    assert len(loader) == 15 and loader.batch_size == 16 and len(loader.dataset) == 230
    first = [labels.tolist() for _, labels in loader]
    second = [labels.tolist() for _, labels in loader]
    assert first != second
    loader.set_epoch(1)
    skip_batches(loader, 6)
    state = json.loads(json.dumps(loader.state_dict()))
    again = chunkio.torch.DataLoader(path, **SMALL, **SCALE)
    again.load_state_dict(state)
    rest = [labels.tolist() for _, labels in pickle.loads(pickle.dumps(loader))]
    assert [labels.tolist() for _, labels in again] == rest == second[6:]


@pytest.mark.parametrize("taken", [0, 1, 14, 15])
def test_what_is_made_ahead_was_not_delivered(make_file, taken):
    path = make_file()
    plain = chunkio.Loader(chunkio.Dataset(path), **SMALL)
    loader = chunkio.torch.DataLoader(path, sample_ids=True, **SMALL, **SCALE)
    batches, expected = iter(loader), iter(plain)
    for _ in range(taken):
        next(expected)
        next(batches)
    assert loader.state_dict() == plain.state_dict()
    loader.load_state_dict(loader.state_dict())
    assert [rows.tolist() for *_, rows in loader] == [ids(batch) for batch in expected] or taken == 15


def test_states_of_either_version_of_the_order_go_on(make_file):
    path = make_file()
    options = {**SMALL, **SCALE, "window_bytes": 1 << 20, "sample_ids": True}
    for version in (1, 2):
        loader = chunkio.torch.DataLoader(path, order_version=version, **options)
        skip_batches(loader, 5)
        again = chunkio.torch.DataLoader(path, order_version=3 - version, **options)
        again.load_state_dict(loader.state_dict())
        rest = [rows.tolist() for *_, rows in pickle.loads(pickle.dumps(loader))]
        assert rest and [rows.tolist() for *_, rows in again] == rest


def test_a_state_that_is_refused_loses_nothing(make_file):
    path = make_file()
    other = chunkio.torch.DataLoader(path, **{**SMALL, "seed": SMALL.get("seed", 0) + 1}, **SCALE).state_dict()
    loader = chunkio.torch.DataLoader(path, sample_ids=True, **SMALL, **SCALE)
    delivered = []
    for number, (*_, rows) in enumerate(loader):
        delivered.append(rows.tolist())
        if number == 3:
            with pytest.raises(ValueError):
                loader.load_state_dict(other)
    assert delivered == [list(rows) for rows in rows_of(path)]


def test_what_was_made_before_damage_is_delivered(make_file):
    loader = chunkio.torch.DataLoader(make_file(), sample_ids=True, **SMALL, **SCALE)
    reader = loader._loader._loader

    class Damaged:
        def __init__(self, core, whole):
            self.core, self.left = core, whole

        def next(self, *, wait=True):
            if self.left == 0:
                raise chunkio.Error("damaged")
            batch = self.core.next(wait=wait)
            self.left -= 1  # not of one that is not there yet
            return batch

    whole = rows_of(loader.dataset.path)
    reader._loader = Damaged(reader._loader, 3)
    delivered = []
    with pytest.raises(chunkio.Error, match="damaged"):
        for *_, rows in loader:
            delivered.append(rows.tolist())
    assert delivered == [list(rows) for rows in whole[:3]]


def test_an_interrupted_wait_loses_nothing(make_file):
    path = make_file()
    loader = chunkio.torch.DataLoader(path, sample_ids=True, **SMALL, **SCALE)
    batches = iter(loader)
    rows = next(batches)[2].tolist()
    look_ahead, calls = loader._loader._look_ahead, []

    def interrupted():
        calls.append(1)
        if len(calls) == 1:
            raise KeyboardInterrupt
        return look_ahead()

    loader._loader._look_ahead = interrupted
    with pytest.raises(KeyboardInterrupt):
        next(batches)
    again = chunkio.torch.DataLoader(path, sample_ids=True, **SMALL, **SCALE)
    again.load_state_dict(loader.state_dict())
    rows += [row for *_, part in again for row in part.tolist()]
    assert sorted(rows) == list(range(230))


def test_pytorchs_own_loader(make_file):
    path = make_file()
    dataset = chunkio.torch.IterableDataset(path, dtype=None, **SMALL)
    loader = torch.utils.data.DataLoader(dataset, batch_size=None, num_workers=0)
    assert [labels.tolist() for _, labels in loader] == [labels_of(rows).tolist() for rows in rows_of(path)]
    with pytest.raises(RuntimeError, match="num_workers=0"):
        next(iter(torch.utils.data.DataLoader(dataset, batch_size=None, num_workers=1)))


def test_ranks_of_launchers(make_file, monkeypatch):
    path = make_file()
    whole = rows_of(path)
    for names in (("RANK", "WORLD_SIZE"), ("SLURM_PROCID", "SLURM_NTASKS")):
        monkeypatch.setenv(names[0], "1")
        monkeypatch.setenv(names[1], "2")
        loader = chunkio.torch.DataLoader(path, dtype=None, **SMALL)
        assert len(loader) == 8
        assert len(chunkio.torch.DataLoader(path, dtype=None, distributed=False, **SMALL)) == len(whole) == 15
        monkeypatch.delenv(names[0])
        if names[0] == "RANK":
            with pytest.raises(ValueError, match="RANK"):
                chunkio.torch.DataLoader(path, dtype=None, **SMALL)
        monkeypatch.delenv(names[1])
    with pytest.raises(ValueError, match="torchrun"):
        chunkio.torch.DataLoader(path, dtype=None, distributed=True, **SMALL)


def test_refusals(make_file):
    path = make_file()
    with pytest.raises(ValueError, match="mean"):
        chunkio.torch.DataLoader(path)
    with pytest.raises(ValueError, match="dtype"):
        chunkio.torch.DataLoader(path, dtype=torch.int64)
    for option, value in {"distributed": "x", "crop_size": (4,), "memory_format": None, "device": "meta"}.items():
        with pytest.raises(ValueError, match=option):
            chunkio.torch.DataLoader(path, **{option: value}, **SCALE)
    for option, value in {"fields": "weights", "transform": 3}.items():
        with pytest.raises(TypeError, match=option):
            chunkio.torch.DataLoader(path, **{option: value}, **SCALE)
    with pytest.raises(TypeError, match="shuffle"):
        chunkio.torch.DataLoader(path, shuffle=True, **SCALE)
    if not torch.cuda.is_available():
        with pytest.raises((ValueError, chunkio.Error, RuntimeError)):
            chunkio.torch.DataLoader(path, device="cuda:0", **SCALE)


def test_options_stay_those_of_the_caller(make_file):
    """Where there is no device, too: options are read before it is opened."""
    loader = {"batch_size": 4, "fields": ("weights",)}
    device = {"device": 4711, "mean": [0.5, 0.4, 0.3], "std": [0.2, 0.3, 0.4]}
    given = (dict(loader), dict(device))
    with pytest.raises(chunkio.Error):
        chunkio._core.DeviceLoader(chunkio.Dataset(make_file()), loader, device)
    assert (loader, device) == given
